/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "wire.h"

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all below and the queues */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct iggy_buffer records; /* each ends with NUL */
static iggy_mock_source *sources;
static uint32_t last_id;

static uint32_t fresh_id(void) {
    pthread_mutex_lock(&mutex);
    uint32_t id = ++last_id;
    pthread_mutex_unlock(&mutex);
    return id;
}

static void require(bool holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "mock host: %s\n", what);
    abort();
}

/* ---- Log ------------------------------------------------------------------ */

static void write_record(uint8_t level, const uint8_t *target, size_t target_len,
                         const uint8_t *message, size_t message_len) {
    (void)level;
    require(iggy_is_utf8((iggy_bytes){target, target_len}), "the target of a record is not UTF-8");
    require(iggy_is_utf8((iggy_bytes){message, message_len}), "a record is not UTF-8");
    pthread_mutex_lock(&mutex);
    iggy_sdk_buffer_append(&records, message, message_len);
    iggy_sdk_buffer_byte(&records, 0);
    pthread_mutex_unlock(&mutex);
}

bool iggy_mock_logged(const char *text) {
    bool found = false;
    pthread_mutex_lock(&mutex);
    for (size_t at = 0; at < records.len; at += strlen((char *)records.data + at) + 1) {
        found = found || strstr((char *)records.data + at, text) != NULL;
    }
    pthread_mutex_unlock(&mutex);
    return found;
}

void iggy_mock_forget_log(void) {
    pthread_mutex_lock(&mutex);
    iggy_sdk_buffer_free(&records);
    pthread_mutex_unlock(&mutex);
}

/* ---- Sinks ---------------------------------------------------------------- */

struct iggy_mock_sink {
    const iggy_sink_api *api;
    uint32_t id;
};

iggy_mock_sink *iggy_mock_open_sink(const iggy_sink_api *api, const char *config, int32_t *code) {
    iggy_mock_sink *sink = iggy_mock_calloc(1, sizeof *sink);
    sink->api = api;
    sink->id = fresh_id();
    *code = api->open(sink->id, (const uint8_t *)config, strlen(config), write_record);
    return sink;
}

uint32_t iggy_mock_sink_id(const iggy_mock_sink *sink) { return sink->id; }

static void put_message(struct iggy_buffer *out, const iggy_mock_message *from) {
    struct iggy_buffer headers = {0}, order = {0};
    if (from->headers) iggy_sdk_put_headers(&headers, &order, from->headers, from->header_count);
    iggy_message message = {
        .id = from->id,
        .offset = from->offset,
        .checksum = from->checksum,
        .timestamp = from->timestamp,
        .origin_timestamp = from->origin_timestamp,
        .headers = {headers.data, headers.len},
        .payload = {from->payload, from->payload_len},
    };
    iggy_mock_put_raw_message(out, &message);
    out->failed = out->failed || headers.failed;
    iggy_sdk_buffer_free(&headers);
    iggy_sdk_buffer_free(&order);
}

static iggy_bytes text_bytes(const char *text) {
    iggy_bytes bytes = {(const uint8_t *)text, text ? strlen(text) : 0};
    return bytes;
}

int32_t iggy_mock_consume(iggy_mock_sink *sink, const iggy_mock_batch *batch) {
    struct iggy_buffer topic = {0}, metadata = {0}, messages = {0};
    iggy_mock_put_topic_metadata(
        &topic, (iggy_topic_metadata){text_bytes(batch->stream), text_bytes(batch->topic)});
    iggy_mock_put_messages_metadata(
        &metadata,
        (iggy_messages_metadata){batch->partition, batch->current_offset, batch->schema});
    iggy_sdk_put_uint(&messages, batch->schema);
    iggy_sdk_put_uint(&messages, batch->count);
    for (size_t i = 0; i < batch->count; i++) put_message(&messages, &batch->messages[i]);
    require(!topic.failed && !metadata.failed && !messages.failed, "out of memory");
    int32_t code = sink->api->consume(sink->id, topic.data, topic.len, metadata.data, metadata.len,
                                      messages.data, messages.len);
    iggy_sdk_buffer_free(&topic);
    iggy_sdk_buffer_free(&metadata);
    iggy_sdk_buffer_free(&messages);
    return code;
}

int32_t iggy_mock_close_sink(iggy_mock_sink *sink) {
    int32_t code = sink->api->close(sink->id);
    free(sink);
    return code;
}

/* ---- Sources -------------------------------------------------------------- */

struct queued {
    uint64_t batch_id;
    struct iggy_buffer bytes;
    struct queued *next;
};

struct iggy_mock_source {
    const iggy_source_api *api;
    uint32_t id;
    struct queued *first; /* oldest */
    struct queued *shown; /* what iggy_mock_next returned */
    iggy_mock_produced produced;
    unsigned refuse;
    bool closing;
    iggy_mock_source *next;
};

static iggy_mock_source *find(uint32_t id) {
    iggy_mock_source *source = sources;
    while (source && source->id != id) source = source->next;
    require(source != NULL, "a batch of an instance that is not open");
    return source;
}

/* Appends a copy; the mutex is held. */
static void enqueue(iggy_mock_source *source, uint64_t batch_id, const uint8_t *data, size_t len) {
    struct queued *queued = iggy_mock_calloc(1, sizeof *queued);
    queued->batch_id = batch_id;
    iggy_sdk_buffer_append(&queued->bytes, data, len);
    require(!queued->bytes.failed, "out of memory");
    struct queued **end = &source->first;
    while (*end) end = &(*end)->next;
    *end = queued;
    pthread_cond_broadcast(&changed);
}

static void receive(uint32_t id, const uint8_t *data, size_t len) {
    pthread_mutex_lock(&mutex);
    iggy_mock_source *source = find(id);
    while (source->first && !source->closing) pthread_cond_wait(&changed, &mutex);
    enqueue(source, 0, data, len);
    pthread_mutex_unlock(&mutex);
}

static int32_t receive_v2(uint32_t id, uint64_t batch_id, const uint8_t *data, size_t len) {
    pthread_mutex_lock(&mutex);
    iggy_mock_source *source = find(id);
    int32_t code = source->refuse > 0 ? IGGY_INVALID : IGGY_OK;
    if (source->refuse > 0) source->refuse--;
    else enqueue(source, batch_id, data, len);
    pthread_mutex_unlock(&mutex);
    return code;
}

iggy_mock_source *iggy_mock_open_source(const iggy_source_api *api, const char *config,
                                        const void *state, size_t state_len, int32_t *code) {
    iggy_mock_source *source = iggy_mock_calloc(1, sizeof *source);
    source->api = api;
    source->id = fresh_id();
    pthread_mutex_lock(&mutex);
    source->next = sources;
    sources = source;
    pthread_mutex_unlock(&mutex);
    *code = api->open(source->id, (const uint8_t *)config, strlen(config), state, state_len,
                      write_record);
    return source;
}

uint32_t iggy_mock_source_id(const iggy_mock_source *source) { return source->id; }

int32_t iggy_mock_start(iggy_mock_source *source, int generation) {
    if (generation == 1) return source->api->handle(source->id, receive);
    return source->api->handle_v2(source->id, receive_v2);
}

void iggy_mock_refuse(iggy_mock_source *source, unsigned batches) {
    pthread_mutex_lock(&mutex);
    source->refuse = batches;
    pthread_mutex_unlock(&mutex);
}

static void free_queued(struct queued *queued) {
    if (queued) iggy_sdk_buffer_free(&queued->bytes);
    free(queued);
}

static void free_shown(iggy_mock_source *source) {
    if (source->shown) iggy_mock_free_produced(&source->produced);
    free_queued(source->shown);
    source->shown = NULL;
}

/* Takes the oldest batch, or NULL when the time is over. */
static struct queued *dequeue(iggy_mock_source *source, unsigned ms) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ms / 1000 + (end.tv_nsec + (long)(ms % 1000) * 1000000) / 1000000000;
    end.tv_nsec = (end.tv_nsec + (long)(ms % 1000) * 1000000) % 1000000000;
    pthread_mutex_lock(&mutex);
    while (!source->first && pthread_cond_timedwait(&changed, &mutex, &end) != ETIMEDOUT) {
    }
    struct queued *queued = source->first;
    if (queued) source->first = queued->next;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    return queued;
}

const iggy_mock_produced *iggy_mock_next(iggy_mock_source *source, unsigned ms) {
    free_shown(source);
    struct queued *queued = dequeue(source, ms);
    if (!queued) return NULL;
    iggy_reader reader = iggy_reader_over(queued->bytes.data, queued->bytes.len);
    source->shown = queued;
    source->produced = iggy_mock_read_batch(&reader);
    source->produced.batch_id = queued->batch_id;
    require(!reader.failed && reader.at == reader.end, "a batch that cannot be decoded");
    return &source->produced;
}

int32_t iggy_mock_result(iggy_mock_source *source, uint64_t batch_id, uint8_t result) {
    return source->api->batch_result(source->id, batch_id, result);
}

static void unlist(iggy_mock_source *source) {
    pthread_mutex_lock(&mutex);
    iggy_mock_source **link = &sources;
    while (*link != source) link = &(*link)->next;
    *link = source->next;
    pthread_mutex_unlock(&mutex);
}

int32_t iggy_mock_close_source(iggy_mock_source *source) {
    pthread_mutex_lock(&mutex);
    source->closing = true; /* a send of generation 1 returns */
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    int32_t code = source->api->close(source->id);
    unlist(source); /* a batch after the close finds nobody and ends the test */
    free_shown(source);
    while (source->first) {
        struct queued *queued = source->first;
        source->first = queued->next;
        free_queued(queued);
    }
    free(source);
    return code;
}
