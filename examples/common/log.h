/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Formatted log records. */
#ifndef EXAMPLES_COMMON_LOG_H
#define EXAMPLES_COMMON_LOG_H

#include "connector.h"

/* Where a plugin's records go: the host's callback, under the plugin's name. */
struct log {
    iggy_log_fn *write;
    const char *target;
};

#ifdef __GNUC__
__attribute__((format(printf, 3, 4)))
#endif
void log_printf(const struct log *log, enum iggy_log_level level, const char *format, ...);

#endif
