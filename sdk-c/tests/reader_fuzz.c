/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* libFuzzer target of the reader: whatever the bytes, nothing is read beyond them, and
 * a batch that was taken yields exactly its messages. */
#include <stdlib.h>

#include "iggy_connector_sdk.h"
#include "postcard.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

static void look_at(iggy_bytes bytes, const uint8_t *data, size_t size) {
    require(bytes.len == 0 ||
            (bytes.data >= data && bytes.len <= (size_t)(data + size - bytes.data)));
}

static void read_messages(const uint8_t *data, size_t size) {
    iggy_reader reader = iggy_reader_over(data, size);
    iggy_messages messages = iggy_read_messages(&reader);
    iggy_message message;
    uint64_t count = 0;
    for (; iggy_next_message(&messages, &message); count++) {
        iggy_headers headers = iggy_message_headers(&message);
        iggy_header header;
        look_at(message.payload, data, size);
        while (iggy_next_header(&headers, &header))
            require(header.value.len <= IGGY_MAX_HEADER_BYTES);
        (void)iggy_find_header(&message, "key", &header.value);
    }
    require(count == messages.count && (count == 0 || !messages.rest.failed));
}

static void read_metadata(const uint8_t *data, size_t size) {
    iggy_reader reader = iggy_reader_over(data, size);
    iggy_topic_metadata topic = iggy_read_topic_metadata(&reader);
    look_at(topic.stream, data, size);
    look_at(topic.topic, data, size);
    reader = iggy_reader_over(data, size);
    require(iggy_read_messages_metadata(&reader).schema <= IGGY_SCHEMA_AVRO);
}

static void read_headers(const uint8_t *data, size_t size) {
    iggy_headers headers = iggy_sdk_read_headers(iggy_reader_over(data, size));
    iggy_header header;
    while (iggy_next_header(&headers, &header)) require(header.key.kind <= IGGY_HEADER_FLOAT64);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    read_messages(data, size);
    read_metadata(data, size);
    read_headers(data, size);
    return 0;
}
