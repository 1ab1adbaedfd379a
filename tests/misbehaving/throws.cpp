/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * throws: lets an exception out of open.
 */
#include <stdexcept>

#include "connector.h"

int32_t iggy_sink_open(uint32_t, const uint8_t *, size_t, iggy_log_fn *) {
    throw std::runtime_error("nobody catches this");
}

int32_t iggy_sink_consume(uint32_t, const uint8_t *, size_t, const uint8_t *, size_t,
                          const uint8_t *, size_t) {
    return IGGY_INVALID;
}

int32_t iggy_sink_close(uint32_t) { return IGGY_INVALID; }

const char *iggy_sink_version(void) { return "1.0.0"; }
