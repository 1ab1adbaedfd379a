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
 *     state      true: each batch carries a state, and a restart goes on after the
 *                last one acknowledged; default false
 *
 * State: MessagePack array [messages sent so far], the number always 8 bytes wide.
 */
#include <stdio.h>
#include <stdlib.h>

#include "config.h"
#include "connector.h"
#include "instances.h"
#include "postcard.h"
#include "source_loop.h"
#include "state.h"

enum { STATE_LEN = 10 }; /* array of one, tag of a 64-bit number, the number */

struct blast_source {
    struct source_loop loop;
    struct log log;
    uint64_t total;
    uint64_t batch_length;
    uint64_t payload_len;
    bool with_state;
    uint64_t acknowledged; /* messages */
    struct buffer batch;
};

static struct instances instances = INSTANCES_INITIALIZER;

/* ---- The batch ------------------------------------------------------------ */

static void put_payload(struct buffer *out, uint64_t seq, uint64_t len) {
    buffer_printf(out, "{\"seq\":%llu,\"name\":\"sensor-%llu\",\"ok\":true",
                  (unsigned long long)seq, (unsigned long long)(seq % 17));
    buffer_printf(out, ",\"value\":%llu.5,\"text\":\"", (unsigned long long)(seq * 3));
    for (uint64_t i = seq; out->len + 2 < len && !out->failed; i++) {
        buffer_byte(out, (uint8_t)('a' + i % 26));
    }
    buffer_text(out, "\"}");
}

static bool build_batch(struct blast_source *source) {
    struct buffer payload = {0};
    put_messages_begin(&source->batch, IGGY_SCHEMA_JSON, source->batch_length);
    for (uint64_t i = 0; i < source->batch_length; i++) {
        buffer_reset(&payload);
        put_payload(&payload, i, source->payload_len);
        put_message(&source->batch, payload.bytes, payload.len);
        if (payload.failed) source->batch.failed = true;
    }
    uint8_t state[STATE_LEN] = {0};
    if (source->with_state) put_messages_end(&source->batch, state, sizeof state);
    else put_messages_end_stateless(&source->batch);
    buffer_free(&payload);
    return !source->batch.failed;
}

/* Writes a state of constant length over the last bytes of the batch. */
static void set_state(struct buffer *batch, uint64_t sent) {
    uint8_t *state = batch->bytes + batch->len - STATE_LEN;
    *state++ = 0x91;
    *state++ = 0xcf;
    for (int shift = 56; shift >= 0; shift -= 8) *state++ = (uint8_t)(sent >> shift);
}

/* ---- The steps of the loop (source_loop.h in examples/common) ------------- */

static bool poll_batch(void *self, struct source_batch *batch, unsigned *idle_ms) {
    struct blast_source *source = self;
    if (source->acknowledged >= source->total) {
        *idle_ms = 60000; /* nothing will come any more */
        return false;
    }
    if (source->with_state) {
        set_state(&source->batch, source->acknowledged + source->batch_length);
    }
    *batch = (struct source_batch){source->batch.bytes, source->batch.len};
    return true;
}

static void acknowledge(void *self) {
    struct blast_source *source = self;
    source->acknowledged += source->batch_length;
}

static void go_back(void *self) {
    (void)self; /* nothing moved yet */
}

static const struct source_steps steps = {poll_batch, acknowledge, go_back};

/* ---- Opening -------------------------------------------------------------- */

static void free_source(struct blast_source *source) {
    if (!source) return;
    buffer_free(&source->batch);
    free(source);
}

static int32_t configure(struct blast_source *source, const uint8_t *config_json,
                         size_t config_len, const uint8_t *state, size_t state_len) {
    struct config config = config_parse(config_json, config_len, source->log);
    source->total = 1000000;
    source->batch_length = 1000;
    source->payload_len = 256;
    config_uint(&config, "total", 0, UINT64_MAX / 2, &source->total);
    config_uint(&config, "batch", 1, 1000000, &source->batch_length);
    config_uint(&config, "payload", 1, IGGY_MAX_PAYLOAD_BYTES, &source->payload_len);
    config_bool(&config, "state", &source->with_state);
    if (config.failed) return IGGY_INVALID;
    if (source->with_state &&
        !state_read(&source->log, state, state_len, &source->acknowledged, 1)) {
        return IGGY_FAILED;
    }
    return build_batch(source) ? IGGY_OK : IGGY_FAILED;
}

/* ---- The exported functions; connector.h describes each ------------------- */

int32_t iggy_source_open(uint32_t id, const uint8_t *config, size_t config_len,
                         const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    struct instance *instance = instance_reserve(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct blast_source *source = calloc(1, sizeof *source);
    if (!source) return instance_opened(&instances, instance, IGGY_FAILED, NULL);
    source->log = (struct log){log, "blast_source"};
    int32_t code = configure(source, config, config_len, state, state_len);
    if (code == IGGY_OK &&
        !source_loop_init(&source->loop, id, &steps, source, source->log)) {
        code = IGGY_FAILED;
    }
    if (code != IGGY_OK) {
        free_source(source);
        source = NULL;
    }
    return instance_opened(&instances, instance, code, source);
}

static int32_t start(uint32_t id, iggy_send_fn *send, iggy_send_v2_fn *send_v2) {
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct blast_source *source = instance->object;
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
    struct blast_source *source = instance->object;
    int32_t code = source_loop_result(&source->loop, batch_id, result);
    instance_release(&instances, instance);
    return code;
}
#endif

int32_t iggy_source_close(uint32_t id) {
    struct instance *instance = instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct blast_source *source = instance->object;
    if (source) source_loop_stop(&source->loop);
    free_source(source);
    return instance_end_close(&instances, instance);
}

const char *iggy_source_version(void) {
    return PLUGIN_VERSION;
}
