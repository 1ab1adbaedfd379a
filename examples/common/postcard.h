/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The encoding of what crosses the border; the layout is in abi/wire.md.
 *
 * Reading: after the first fault every further read yields zeros, and `failed`
 * tells at the end. Slices point into the bytes that are read.
 */
#ifndef EXAMPLES_COMMON_POSTCARD_H
#define EXAMPLES_COMMON_POSTCARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

struct slice {
    const uint8_t *bytes;
    size_t len;
};

/* ---- Reading, for sinks -------------------------------------------------- */

struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
};

struct topic_metadata {
    struct slice stream;
    struct slice topic;
};

struct messages_metadata {
    uint32_t partition;
    uint64_t current_offset;
    uint32_t schema; /* enum iggy_schema */
};

struct message {
    uint8_t id[16]; /* little endian */
    uint64_t offset;
    uint64_t checksum;
    uint64_t timestamp;        /* microseconds since 1970, by the server */
    uint64_t origin_timestamp; /* the same, by the producer */
    struct slice headers;      /* an encoded header map; empty: no headers */
    struct slice payload;
};

struct header_field {
    uint32_t kind; /* enum iggy_header_kind */
    uint8_t len;
    uint8_t value[255];
};

struct reader reader_over(const uint8_t *bytes, size_t len);

uint64_t read_uint(struct reader *reader, unsigned bits); /* 32 or 64 */
struct slice read_bytes(struct reader *reader);

struct topic_metadata read_topic_metadata(struct reader *reader);
struct messages_metadata read_messages_metadata(struct reader *reader);

/* Begins a RawMessages and returns the number of messages that follow. */
uint64_t read_message_count(struct reader *reader);
struct message read_message(struct reader *reader);

/* Begins a header map and returns its number of entries; each is a key and
 * a value, both a field. */
uint64_t read_header_count(struct reader *reader);
struct header_field read_header_field(struct reader *reader);

/* ---- Writing, for sources ------------------------------------------------ */

void put_uint(struct buffer *out, uint64_t value);

/* ProducedMessages: begin, then so many messages, then end. */
void put_messages_begin(struct buffer *out, uint32_t schema, uint64_t count);

/* A message that leaves id and times to the host and has no headers. */
void put_message(struct buffer *out, const uint8_t *payload, size_t len);

void put_messages_end(struct buffer *out, const uint8_t *state, size_t len);
void put_messages_end_stateless(struct buffer *out);

#endif
