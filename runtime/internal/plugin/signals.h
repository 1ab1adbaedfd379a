// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

#ifndef HOST_SIGNALS_H
#define HOST_SIGNALS_H

#include <stdint.h>

/* Adds SA_ONSTACK to every signal handler that lacks it. Returns those signals: bit n is
 * signal n + 1. */
uint64_t host_repair_signal_handlers(void);

/* Returns the signals whose handler lacks SA_ONSTACK, in the same form. */
uint64_t host_unguarded_signal_handlers(void);

#endif
