/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "producer.h"

#include <string.h>

/* A schema takes one byte, a count at most ten. */
enum { HEAD = 11 };

void iggy_sdk_producer_reset(iggy_producer *producer) {
    static const uint8_t head[HEAD] = {0};
    iggy_sdk_buffer_reset(&producer->bytes);
    iggy_sdk_buffer_reset(&producer->state);
    iggy_sdk_buffer_append(&producer->bytes, head, sizeof head);
    producer->schema = IGGY_SCHEMA_JSON;
    producer->count = 0;
    producer->has_state = false;
    producer->fault = NULL;
}

void iggy_sdk_producer_free(iggy_producer *producer) {
    iggy_sdk_buffer_free(&producer->bytes);
    iggy_sdk_buffer_free(&producer->state);
    iggy_sdk_buffer_free(&producer->order);
}

bool iggy_sdk_producer_empty(const iggy_producer *producer) {
    return producer->count == 0 && !producer->has_state && !producer->fault;
}

static void put_option64(struct iggy_buffer *out, bool present, uint64_t value) {
    iggy_sdk_buffer_byte(out, present);
    if (present) iggy_sdk_put_uint(out, value);
}

void iggy_sdk_put_produced(struct iggy_buffer *out, struct iggy_buffer *order,
                           const iggy_produced_message *message) {
    iggy_sdk_buffer_byte(out, message->has_id);
    if (message->has_id) iggy_sdk_put_u128(out, message->id);
    put_option64(out, message->has_checksum, message->checksum);
    put_option64(out, message->has_timestamp, message->timestamp);
    put_option64(out, message->has_origin_timestamp, message->origin_timestamp);
    iggy_sdk_buffer_byte(out, message->headers != NULL);
    if (message->headers) {
        iggy_sdk_put_headers(out, order, message->headers, message->header_count);
    }
    iggy_sdk_put_bytes(out, message->payload, message->payload_len);
}

void iggy_sdk_producer_append(iggy_producer *producer, const iggy_produced_message *message) {
    iggy_sdk_put_produced(&producer->bytes, &producer->order, message);
    producer->count++;
    if (producer->bytes.failed) producer->fault = "out of memory";
}

/* ---- The limits of an Iggy message ---------------------------------------- */

static const char *fault_of_field(const iggy_header_field *field) {
    uint16_t size = iggy_sdk_header_size(field->kind);
    if (field->kind > IGGY_HEADER_FLOAT64) return "a header is of no known kind";
    if (field->len == 0) return "a header's key or value is empty";
    if (field->len > IGGY_MAX_HEADER_BYTES) return "a header's key or value is over 255 bytes";
    if (size && field->len != size) return "a header's value has not the size of its kind";
    if (field->kind == IGGY_HEADER_STRING && !iggy_is_utf8((iggy_bytes){field->data, field->len})) {
        return "a header of kind string is not UTF-8";
    }
    return NULL;
}

static const char *fault_of_headers(const iggy_produced_message *message) {
    uint64_t size = 0;
    for (size_t i = 0; message->headers && i < message->header_count; i++) {
        const iggy_header *header = &message->headers[i];
        const char *fault = fault_of_field(&header->key);
        if (!fault) fault = fault_of_field(&header->value);
        if (fault) return fault;
        size += 10u + header->key.len + header->value.len; /* as Iggy stores it */
    }
    return size > IGGY_MAX_HEADERS_BYTES ? "the headers of a message are over 100,000 bytes" : NULL;
}

static const char *fault_of_message(const iggy_produced_message *message) {
    if (message->payload_len == 0) return "a payload is empty";
    if (message->payload_len > IGGY_MAX_PAYLOAD_BYTES) return "a payload is over 64,000,000 bytes";
    return fault_of_headers(message);
}

/* ---- What a poll calls ---------------------------------------------------- */

void iggy_produce_message(iggy_producer *producer, const iggy_produced_message *message) {
    if (producer->fault) return;
    producer->fault = fault_of_message(message);
    if (!producer->fault) iggy_sdk_producer_append(producer, message);
}

void iggy_produce(iggy_producer *producer, const void *payload, size_t len) {
    iggy_produced_message message = {0};
    message.payload = payload;
    message.payload_len = len;
    iggy_produce_message(producer, &message);
}

void iggy_produce_schema(iggy_producer *producer, enum iggy_schema schema) {
    producer->schema = (uint32_t)schema;
    bool known = producer->schema <= IGGY_SCHEMA_AVRO;
    if (!known && !producer->fault) producer->fault = "the schema is unknown";
}

void iggy_produce_state(iggy_producer *producer, const void *state, size_t len) {
    iggy_sdk_buffer_reset(&producer->state);
    iggy_sdk_buffer_append(&producer->state, state, len);
    producer->has_state = true;
}

bool iggy_produce_wait(iggy_producer *producer, unsigned ms) {
    return producer->wait(producer->waiter, ms);
}

/* ---- Completing ----------------------------------------------------------- */

static size_t write_head(uint8_t head[HEAD], uint32_t schema, uint64_t count) {
    size_t len = 0;
    head[len++] = (uint8_t)schema;
    for (; count >= 0x80; count >>= 7) head[len++] = (uint8_t)(count | 0x80);
    head[len++] = (uint8_t)count;
    return len;
}

iggy_bytes iggy_sdk_producer_finish(iggy_producer *producer) {
    struct iggy_buffer *bytes = &producer->bytes;
    iggy_sdk_buffer_byte(bytes, producer->has_state);
    if (producer->has_state) iggy_sdk_put_bytes(bytes, producer->state.data, producer->state.len);
    bool failed = bytes->failed || producer->state.failed;
    if (failed && !producer->fault) producer->fault = "out of memory";
    if (producer->fault) return (iggy_bytes){NULL, 0};

    /* The count is known only now: schema and count go right before the messages. */
    uint8_t head[HEAD];
    size_t len = write_head(head, producer->schema, producer->count);
    memcpy(bytes->data + HEAD - len, head, len);
    return (iggy_bytes){bytes->data + HEAD - len, bytes->len - HEAD + len};
}
