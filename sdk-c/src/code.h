/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* What callbacks return. */
#ifndef IGGY_SDK_CODE_H
#define IGGY_SDK_CODE_H

#include "connector.h"

/* The host knows three codes; a callback may return anything. */
static inline int32_t iggy_sdk_code(int32_t code) {
    return code == IGGY_OK || code == IGGY_INVALID ? code : IGGY_FAILED;
}

#endif
