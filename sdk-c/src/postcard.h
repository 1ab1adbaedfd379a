/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* The building blocks of the wire format, abi/wire.md. */
#ifndef IGGY_SDK_POSTCARD_H
#define IGGY_SDK_POSTCARD_H

#include "buffer.h"
#include "iggy_connector_sdk.h"

/* The fewest bytes that a message takes, on its way to a sink and from a source. */
enum { IGGY_SDK_LEAST_RAW_MESSAGE = 7, IGGY_SDK_LEAST_PRODUCED_MESSAGE = 6 };

uint64_t iggy_sdk_read_uint(iggy_reader *reader, unsigned bits); /* 32 or 64 */
iggy_u128 iggy_sdk_read_u128(iggy_reader *reader);
iggy_bytes iggy_sdk_read_bytes(iggy_reader *reader);
iggy_bytes iggy_sdk_read_text(iggy_reader *reader); /* UTF-8 */
bool iggy_sdk_read_option(iggy_reader *reader);
uint32_t iggy_sdk_read_schema(iggy_reader *reader);

/* The size of the UTF-8 character that the bytes begin with, 0: they begin with none. */
size_t iggy_sdk_utf8_sequence(const uint8_t *at, size_t len);

/* A count of things that take at least `least` bytes each. */
uint64_t iggy_sdk_read_count(iggy_reader *reader, size_t least);
iggy_message iggy_sdk_read_message(iggy_reader *reader);

/* The size of a kind's values, 0 when it is not fixed. */
uint16_t iggy_sdk_header_size(uint8_t kind);
uint32_t iggy_sdk_read_header_kind(iggy_reader *reader);
iggy_headers iggy_sdk_read_headers(iggy_reader reader); /* begins a map */

void iggy_sdk_put_uint(struct iggy_buffer *out, uint64_t value);
void iggy_sdk_put_u128(struct iggy_buffer *out, iggy_u128 value);
void iggy_sdk_put_bytes(struct iggy_buffer *out, const void *data, size_t len);

/* A header map, sorted and without duplicates; `order` is scratch. */
void iggy_sdk_put_headers(struct iggy_buffer *out, struct iggy_buffer *order,
                          const iggy_header *headers, size_t count);

#endif
