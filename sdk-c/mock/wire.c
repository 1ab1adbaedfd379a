/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "wire.h"

#include <stdio.h>
#include <stdlib.h>

void *iggy_mock_calloc(size_t count, size_t size) {
    void *memory = calloc(count ? count : 1, size);
    if (memory) return memory;
    fputs("mock host: out of memory\n", stderr);
    abort();
}

void iggy_mock_put_topic_metadata(struct iggy_buffer *out, iggy_topic_metadata metadata) {
    iggy_sdk_put_bytes(out, metadata.stream.data, metadata.stream.len);
    iggy_sdk_put_bytes(out, metadata.topic.data, metadata.topic.len);
}

void iggy_mock_put_messages_metadata(struct iggy_buffer *out, iggy_messages_metadata metadata) {
    iggy_sdk_put_uint(out, metadata.partition);
    iggy_sdk_put_uint(out, metadata.current_offset);
    iggy_sdk_put_uint(out, metadata.schema);
}

void iggy_mock_put_raw_message(struct iggy_buffer *out, const iggy_message *message) {
    iggy_sdk_put_u128(out, message->id);
    iggy_sdk_put_uint(out, message->offset);
    iggy_sdk_put_uint(out, message->checksum);
    iggy_sdk_put_uint(out, message->timestamp);
    iggy_sdk_put_uint(out, message->origin_timestamp);
    iggy_sdk_put_bytes(out, message->headers.data, message->headers.len);
    iggy_sdk_put_bytes(out, message->payload.data, message->payload.len);
}

size_t iggy_mock_read_headers(iggy_reader *reader, iggy_header **result) {
    iggy_headers iteration = iggy_sdk_read_headers(*reader);
    size_t count = iteration.reader.failed ? 0 : (size_t)iteration.left, read = 0;
    iggy_header *headers = iggy_mock_calloc(count, sizeof *headers);
    while (read < count && iggy_next_header(&iteration, &headers[read])) read++;
    *reader = iteration.reader;
    *result = headers;
    if (!reader->failed) return count;
    free(headers);
    *result = NULL;
    return 0;
}

static bool read_option64(iggy_reader *reader, uint64_t *value) {
    bool present = iggy_sdk_read_option(reader);
    *value = present ? iggy_sdk_read_uint(reader, 64) : 0;
    return present;
}

iggy_produced_message iggy_mock_read_produced(iggy_reader *reader) {
    iggy_produced_message message = {0};
    iggy_header *headers = NULL;
    message.has_id = iggy_sdk_read_option(reader);
    if (message.has_id) message.id = iggy_sdk_read_u128(reader);
    message.has_checksum = read_option64(reader, &message.checksum);
    message.has_timestamp = read_option64(reader, &message.timestamp);
    message.has_origin_timestamp = read_option64(reader, &message.origin_timestamp);
    bool has_headers = iggy_sdk_read_option(reader);
    if (has_headers) message.header_count = iggy_mock_read_headers(reader, &headers);
    message.headers = headers;
    iggy_bytes payload = iggy_sdk_read_bytes(reader);
    message.payload = payload.data;
    message.payload_len = payload.len;
    return message;
}

iggy_mock_produced iggy_mock_read_batch(iggy_reader *reader) {
    iggy_mock_produced batch = {0};
    batch.schema = iggy_sdk_read_schema(reader);
    batch.count = (size_t)iggy_sdk_read_count(reader, IGGY_SDK_LEAST_PRODUCED_MESSAGE);
    iggy_produced_message *messages = iggy_mock_calloc(batch.count, sizeof *messages);
    for (size_t i = 0; i < batch.count && !reader->failed; i++) {
        messages[i] = iggy_mock_read_produced(reader);
    }
    batch.messages = messages;
    batch.has_state = iggy_sdk_read_option(reader);
    if (batch.has_state) batch.state = iggy_sdk_read_bytes(reader);
    return batch;
}

void iggy_mock_free_produced(iggy_mock_produced *batch) {
    for (size_t i = 0; i < batch->count; i++) free((void *)batch->messages[i].headers);
    free((void *)batch->messages);
}
