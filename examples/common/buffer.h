/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Bytes that grow. After an allocation failed every further call is harmless,
 * and `failed` tells at the end: one check, not one for each append. */
#ifndef EXAMPLES_COMMON_BUFFER_H
#define EXAMPLES_COMMON_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
    uint8_t *bytes;
    size_t len;
    size_t cap;
    bool failed;
};

/* Empties the buffer and forgets a failure; the memory is kept for reuse. */
void buffer_reset(struct buffer *buffer);
void buffer_free(struct buffer *buffer);
bool buffer_reserve(struct buffer *buffer, size_t more);
void buffer_byte(struct buffer *buffer, uint8_t byte);
void buffer_append(struct buffer *buffer, const void *bytes, size_t len);
void buffer_text(struct buffer *buffer, const char *text);
#ifdef __GNUC__
__attribute__((format(printf, 2, 3)))
#endif
void buffer_printf(struct buffer *buffer, const char *format, ...);

#endif
