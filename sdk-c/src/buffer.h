/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Bytes that grow. After an allocation failed every further call is harmless, and
 * `failed` tells at the end. */
#ifndef IGGY_SDK_BUFFER_H
#define IGGY_SDK_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct iggy_buffer {
    uint8_t *data;
    size_t len;
    size_t cap;
    bool failed;
};

/* Empties the buffer and forgets a failure; the memory is kept for reuse. */
void iggy_sdk_buffer_reset(struct iggy_buffer *buffer);
void iggy_sdk_buffer_free(struct iggy_buffer *buffer);
bool iggy_sdk_buffer_reserve(struct iggy_buffer *buffer, size_t more);
void iggy_sdk_buffer_append(struct iggy_buffer *buffer, const void *data, size_t len);
void iggy_sdk_buffer_byte(struct iggy_buffer *buffer, uint8_t byte);

#endif
