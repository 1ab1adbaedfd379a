/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void log_printf(const struct log *log, enum iggy_log_level level, const char *format, ...) {
    char message[512];
    va_list args;
    va_start(args, format);
    int written = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (written < 0) return;
    size_t len = (size_t)written < sizeof message ? (size_t)written : sizeof message - 1;
    log->write((uint8_t)level, (const uint8_t *)log->target, strlen(log->target),
               (const uint8_t *)message, len);
}
