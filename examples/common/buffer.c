/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "buffer.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void buffer_reset(struct buffer *buffer) {
    buffer->len = 0;
    buffer->failed = false;
}

void buffer_free(struct buffer *buffer) {
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}

bool buffer_reserve(struct buffer *buffer, size_t more) {
    if (buffer->failed) return false;
    if (more <= buffer->cap - buffer->len) return true;
    size_t cap = buffer->cap ? buffer->cap : 256;
    while (cap - buffer->len < more && cap <= SIZE_MAX / 2) cap *= 2;
    uint8_t *bytes = cap - buffer->len >= more ? realloc(buffer->bytes, cap) : NULL;
    if (!bytes) {
        buffer->failed = true;
        return false;
    }
    buffer->bytes = bytes;
    buffer->cap = cap;
    return true;
}

void buffer_byte(struct buffer *buffer, uint8_t byte) {
    if (buffer_reserve(buffer, 1)) buffer->bytes[buffer->len++] = byte;
}

void buffer_append(struct buffer *buffer, const void *bytes, size_t len) {
    if (len == 0 || !buffer_reserve(buffer, len)) return;
    memcpy(buffer->bytes + buffer->len, bytes, len);
    buffer->len += len;
}

void buffer_text(struct buffer *buffer, const char *text) {
    buffer_append(buffer, text, strlen(text));
}

void buffer_printf(struct buffer *buffer, const char *format, ...) {
    char text[128];
    va_list args;
    va_start(args, format);
    int written = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (written < 0 || (size_t)written >= sizeof text) buffer->failed = true;
    else buffer_append(buffer, text, (size_t)written);
}
