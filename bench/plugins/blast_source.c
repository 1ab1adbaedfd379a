/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * blast_source: hands over a batch built in advance as fast as the runtime takes it,
 * so that a measurement of it is one of the runtime that forwards it.
 *
 * plugin_config:
 *     total      messages in all, default 1000000; whole batches are sent, so it may
 *                become up to a batch more
 *     batch      messages in a batch, default 1000
 *     payload    bytes of a message, a JSON object, default 256
 *     raw        true: the object is announced as raw bytes, default false
 *     headers    headers of a message, 0 to 4, default 0
 *     state      true: each batch carries a state, and a restart goes on after the
 *                last one acknowledged; default false
 *
 * State: MessagePack array [messages sent so far].
 *
 * It looks into the SDK's producer, which no plugin for users can, to leave out the copy of
 * its messages.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iggy_connector_config.h"
#include "iggy_connector_state.h"
#include "producer.h"

enum { MAX_HEADERS = 4 };

struct blast_source {
    uint64_t total;
    uint64_t batch_length;
    size_t payload_len;
    enum iggy_schema schema;
    iggy_header headers[MAX_HEADERS];
    size_t header_count;
    bool with_state;
    uint64_t acknowledged; /* messages */
    char *payload;         /* room for one */
    size_t built;          /* bytes of the batch that the producer holds; 0: none yet */
};

/* ---- The batch ------------------------------------------------------------ */

static void produce_payload(struct blast_source *source, iggy_producer *producer, uint64_t seq) {
    char *at = source->payload, *last = at + source->payload_len - 2;
    at += sprintf(at, "{\"seq\":%llu", (unsigned long long)seq);
    if (source->payload_len >= 128) {
        at += sprintf(at, ",\"name\":\"sensor-%llu\",\"ok\":true,\"value\":%llu.5",
                      (unsigned long long)(seq % 17), (unsigned long long)(seq * 3));
    }
    at += sprintf(at, ",\"text\":\"");
    for (uint64_t i = seq; at < last; i++) *at++ = (char)('a' + i % 26);
    memcpy(at, "\"}", 2);
    iggy_produced_message message = {0};
    message.payload = source->payload;
    message.payload_len = (size_t)(at + 2 - source->payload);
    if (source->header_count > 0) message.headers = source->headers;
    message.header_count = source->header_count;
    iggy_produce_message(producer, &message);
}

/* The messages are written once. From then on they lie in the producer's memory, which a
 * reset does not touch, and are only declared to be there. */
static void fill(struct blast_source *source, iggy_producer *producer) {
    if (source->built > 0) {
        producer->bytes.len = source->built;
        producer->count = source->batch_length;
        return;
    }
    for (uint64_t i = 0; i < source->batch_length; i++) produce_payload(source, producer, i);
    if (!producer->fault) source->built = producer->bytes.len;
}

/* ---- The callbacks, described in iggy_connector_sdk.h --------------------- */

static int32_t poll(void *instance, iggy_producer *producer) {
    struct blast_source *source = instance;
    if (source->acknowledged >= source->total) {
        iggy_produce_wait(producer, 60000); /* nothing will come any more */
        return IGGY_OK;
    }
    iggy_produce_schema(producer, source->schema);
    fill(source, producer);
    if (source->with_state) {
        iggy_state_begin(producer, 1);
        iggy_state_put_uint(producer, source->acknowledged + source->batch_length);
    }
    return IGGY_OK;
}

static int32_t on_batch_result(void *instance, enum iggy_batch_result result) {
    struct blast_source *source = instance;
    if (result == IGGY_BATCH_ACK) source->acknowledged += source->batch_length;
    return IGGY_OK;
}

static void close_source(void *instance) {
    struct blast_source *source = instance;
    free(source->payload);
    free(source);
}

static void make_headers(struct blast_source *source) {
    for (unsigned i = 0; i < MAX_HEADERS; i++) {
        char name[16];
        snprintf(name, sizeof name, "name%u", i);
        source->headers[i] = (iggy_header){iggy_header_string(name), iggy_header_string("value")};
    }
}

static int32_t ready(struct blast_source *source, const iggy_open_args *args) {
    iggy_config config = iggy_config_parse(args->config);
    source->total = (uint64_t)iggy_config_int(&config, "total", 0, INT64_MAX, 1000000);
    source->batch_length = (uint64_t)iggy_config_int(&config, "batch", 1, 1000000, 1000);
    source->payload_len =
        (size_t)iggy_config_int(&config, "payload", 1, IGGY_MAX_PAYLOAD_BYTES, 256);
    source->schema = iggy_config_bool(&config, "raw", false) ? IGGY_SCHEMA_RAW : IGGY_SCHEMA_JSON;
    source->header_count = (size_t)iggy_config_int(&config, "headers", 0, MAX_HEADERS, 0);
    source->with_state = iggy_config_bool(&config, "state", false);
    iggy_config_free(&config);
    if (config.failed) return IGGY_INVALID;
    make_headers(source);
    source->payload = malloc(source->payload_len + 200); /* the fixed part may be longer */
    if (!source->payload) return IGGY_FAILED;
    if (!source->with_state) return IGGY_OK;
    iggy_state state = iggy_state_read(args->state);
    source->acknowledged = iggy_state_take_uint(&state);
    return iggy_state_end(&state) ? IGGY_OK : IGGY_FAILED;
}

static int32_t open_source(const iggy_open_args *args, void **instance) {
    struct blast_source *source = calloc(1, sizeof *source);
    if (!source) return IGGY_FAILED;
    int32_t code = ready(source, args);
    if (code == IGGY_OK) *instance = source;
    else close_source(source);
    return code;
}

static const iggy_source_plugin plugin = {"blast_source", PLUGIN_VERSION,  open_source,
                                          poll,           on_batch_result, close_source};
IGGY_SOURCE_PLUGIN(plugin)
