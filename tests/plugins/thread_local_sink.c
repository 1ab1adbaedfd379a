/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* As much of a sink as tells where its library's variables of a thread lie. */
#include "connector.h"

static __thread char block[25];

const char *iggy_sink_version(void) { return block; }
