/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * random_source: produces random JSON records, to try a runtime out.
 *
 * plugin_config (the keys of Iggy's own random source):
 *     interval        pause between two batches, default "1s"
 *     messages_range  [least, most] records in a batch, default [10, 100]
 *     payload_size    length of the random text of a record, default 100
 *     max_count       stop after so many records; absent: never
 *
 * State: MessagePack array [records produced so far].
 */
#include <stdlib.h>
#include <time.h>

#include "config.h"
#include "connector.h"
#include "instances.h"
#include "postcard.h"
#include "source_loop.h"
#include "state.h"

struct random_source {
    struct source_loop loop;
    struct log log;
    uint64_t interval_ms;
    uint64_t messages_range[2];
    uint64_t payload_size;
    uint64_t max_count;
    uint64_t acknowledged; /* records stored so far */
    uint64_t produced;     /* the same, with the batch in flight */
    bool rested;           /* the pause before the next batch has been asked for */
    uint64_t random;       /* state of the generator */
    struct buffer record;
    struct buffer batch;
};

static struct instances instances = INSTANCES_INITIALIZER;

/* ---- Records -------------------------------------------------------------- */

/* xorshift64*: no cryptography, but even and without a lock as rand() has. */
static uint64_t random_below(struct random_source *source, uint64_t limit) {
    source->random ^= source->random >> 12;
    source->random ^= source->random << 25;
    source->random ^= source->random >> 27;
    return (source->random * 2685821657736338717u >> 11) % limit;
}

static void put_letters(struct random_source *source, uint64_t len) {
    for (; len > 0; len--) buffer_byte(&source->record, (uint8_t)('a' + random_below(source, 26)));
}

static void put_record(struct random_source *source, uint64_t id) {
    static const char *const titles[] = {"alpha", "bravo", "charlie", "delta", "echo", "foxtrot"};
    struct buffer *record = &source->record;
    buffer_reset(record);
    buffer_printf(record, "{\"id\":%llu,\"title\":\"%s\"", (unsigned long long)id,
                  titles[random_below(source, sizeof titles / sizeof *titles)]);
    buffer_printf(record, ",\"name\":\"user_%llu\",\"age\":%llu,\"text\":\"",
                  (unsigned long long)random_below(source, 10000),
                  (unsigned long long)(18 + random_below(source, 80)));
    put_letters(source, source->payload_size);
    buffer_text(record, "\"}");
    put_message(&source->batch, record->bytes, record->len);
    if (record->failed) source->batch.failed = true;
}

/* ---- The steps of the loop (source_loop.h) -------------------------------- */

static uint64_t next_batch_length(struct random_source *source) {
    uint64_t least = source->messages_range[0], most = source->messages_range[1];
    uint64_t length = least + random_below(source, most - least + 1);
    uint64_t left = source->max_count - source->produced;
    return length < left ? length : left;
}

static bool poll_records(void *self, struct source_batch *batch, unsigned *idle_ms) {
    struct random_source *source = self;
    *idle_ms = (unsigned)source->interval_ms;
    if (source->produced >= source->max_count) {
        *idle_ms = 60000; /* nothing will come any more */
        return false;
    }
    if (!source->rested) {
        source->rested = true;
        return false;
    }
    source->rested = false;

    uint64_t count = next_batch_length(source);
    buffer_reset(&source->batch);
    put_messages_begin(&source->batch, IGGY_SCHEMA_JSON, count);
    for (uint64_t i = 0; i < count; i++) put_record(source, source->produced + i + 1);
    uint64_t total = source->produced + count;
    uint8_t state[STATE_BYTES(1)];
    put_messages_end(&source->batch, state, state_write(state, &total, 1));
    if (source->batch.failed) {
        log_printf(&source->log, IGGY_LOG_ERROR, "out of memory, trying again");
        return false;
    }
    source->produced = total;
    *batch = (struct source_batch){source->batch.bytes, source->batch.len};
    return true;
}

static void acknowledge(void *self) {
    struct random_source *source = self;
    source->acknowledged = source->produced;
}

static void go_back(void *self) {
    struct random_source *source = self;
    source->produced = source->acknowledged;
}

static const struct source_steps steps = {poll_records, acknowledge, go_back};

/* ---- Opening -------------------------------------------------------------- */

static void free_source(struct random_source *source) {
    if (!source) return;
    buffer_free(&source->record);
    buffer_free(&source->batch);
    free(source);
}

static bool read_config(struct random_source *source, const uint8_t *bytes, size_t len) {
    struct config config = config_parse(bytes, len, source->log);
    source->interval_ms = 1000;
    source->messages_range[0] = 10;
    source->messages_range[1] = 100;
    source->payload_size = 100;
    source->max_count = UINT64_MAX;
    config_duration_ms(&config, "interval", &source->interval_ms);
    config_range(&config, "messages_range", 1, 100000, source->messages_range);
    config_uint(&config, "payload_size", 1, 1000000, &source->payload_size);
    config_uint(&config, "max_count", 0, UINT64_MAX, &source->max_count);
    return !config.failed;
}

static int32_t open_source(uint32_t id, const uint8_t *config, size_t config_len,
                           const uint8_t *state, size_t state_len, iggy_log_fn *log,
                           struct random_source **result) {
    struct random_source *source = calloc(1, sizeof *source);
    if (!source) return IGGY_FAILED;
    source->log = (struct log){log, "random_source"};
    source->random = (uint64_t)time(NULL) << 32 | (uint64_t)id << 1 | 1; /* never 0 */
    if (!read_config(source, config, config_len)) {
        free_source(source);
        return IGGY_INVALID;
    }
    if (!state_read(&source->log, state, state_len, &source->acknowledged, 1) ||
        !source_loop_init(&source->loop, id, &steps, source, source->log)) {
        free_source(source);
        return IGGY_FAILED;
    }
    source->produced = source->acknowledged;
    *result = source;
    return IGGY_OK;
}

/* ---- The exported functions; connector.h describes each ------------------- */

int32_t iggy_source_open(uint32_t id, const uint8_t *config, size_t config_len,
                         const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    struct instance *instance = instance_reserve(&instances, id);
    struct random_source *source = NULL;
    if (!instance) return IGGY_INVALID;
    int32_t code = open_source(id, config, config_len, state, state_len, log, &source);
    return instance_opened(&instances, instance, code, source);
}

static int32_t start(uint32_t id, iggy_send_fn *send, iggy_send_v2_fn *send_v2) {
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct random_source *source = instance->object;
    int32_t code = source_loop_start(&source->loop, send, send_v2);
    instance_release(&instances, instance);
    return code;
}

int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send) {
    return start(id, send, NULL);
}

#ifndef GENERATION_1_ONLY
int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send) {
    return start(id, NULL, send);
}

int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result) {
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct random_source *source = instance->object;
    int32_t code = source_loop_result(&source->loop, batch_id, result);
    instance_release(&instances, instance);
    return code;
}
#endif

int32_t iggy_source_close(uint32_t id) {
    struct instance *instance = instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct random_source *source = instance->object;
    if (source) source_loop_stop(&source->loop);
    free_source(source);
    return instance_end_close(&instances, instance);
}

const char *iggy_source_version(void) {
    return PLUGIN_VERSION;
}
