/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "buffer.h"

#include <stdlib.h>
#include <string.h>

void iggy_sdk_buffer_reset(struct iggy_buffer *buffer) {
    buffer->len = 0;
    buffer->failed = false;
}

void iggy_sdk_buffer_free(struct iggy_buffer *buffer) {
    free(buffer->data);
    *buffer = (struct iggy_buffer){0};
}

bool iggy_sdk_buffer_reserve(struct iggy_buffer *buffer, size_t more) {
    if (buffer->failed) return false;
    if (more <= buffer->cap - buffer->len) return true;
    size_t cap = buffer->cap ? buffer->cap : 256;
    while (cap - buffer->len < more && cap <= SIZE_MAX / 2) cap *= 2;
    uint8_t *data = cap - buffer->len >= more ? realloc(buffer->data, cap) : NULL;
    if (!data) {
        buffer->failed = true;
        return false;
    }
    buffer->data = data;
    buffer->cap = cap;
    return true;
}

void iggy_sdk_buffer_append(struct iggy_buffer *buffer, const void *data, size_t len) {
    if (len == 0 || !iggy_sdk_buffer_reserve(buffer, len)) return;
    memcpy(buffer->data + buffer->len, data, len);
    buffer->len += len;
}

void iggy_sdk_buffer_byte(struct iggy_buffer *buffer, uint8_t byte) {
    iggy_sdk_buffer_append(buffer, &byte, 1);
}
