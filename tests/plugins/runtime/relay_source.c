/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * relay_source: hands over whatever bytes a file holds as its batch, and misbehaves
 * on order, for tests of the runtime.
 *
 * plugin_config:
 *     blob       the file with the batch; it is read anew for each batch
 *     times      how often the batch is handed over, default 1
 *     results    a file that gets a letter for each outcome: a Ack, n Nack, r refused
 *                callback, and in generation 1 s for each callback that returned
 *     pause_us   between two batches, default 1000
 *     open_code  what open returns, default 0
 *     crash      true: the process ends when the first batch has been taken, as long as
 *                the file `release` is missing
 *     ignore     true: never waits for a result, and answers each with -1
 *     stray      true: hands a batch over for an instance id that does not exist, and
 *                one after close for its own
 *     hang_in    "open", "handle", "batch_result" or "close": that call waits until
 *                the file `release` exists
 *     release    see hang_in
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "buffer.h"
#include "iggy_connector_config.h"
#include "instances.h"
#include "log.h"
#include "syscalls.h"

struct relay_source {
    uint32_t id;
    iggy_config config; /* the texts are in it */
    const char *blob;
    const char *results;
    const char *hang_in;
    const char *release;
    uint64_t times;
    uint64_t pause_us;
    uint64_t open_code;
    bool crash;
    bool ignore;
    bool stray;
    iggy_send_fn *send;
    iggy_send_v2_fn *send_v2;
    pthread_t thread;
    bool started;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool stop;
    uint64_t pending; /* 0: none */
};

#define STRAY_ID UINT32_C(4000000000)

static struct iggy_instances instances = IGGY_INSTANCES_INITIALIZER;

static void hang(const struct relay_source *source, const char *call) {
    if (!source->hang_in || strcmp(source->hang_in, call) != 0) return;
    while (access(source->release, F_OK) != 0) sleep_us(1000);
}

static void note(const struct relay_source *source, const char *outcome) {
    if (!source->results) return;
    int file = open(source->results, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0) return;
    write_all(file, outcome, 1);
    close(file);
}

static void read_blob(const struct relay_source *source, struct iggy_buffer *batch) {
    uint8_t chunk[65536];
    iggy_sdk_buffer_reset(batch);
    int file = open(source->blob, O_RDONLY);
    if (file < 0) return;
    ssize_t n;
    while ((n = read(file, chunk, sizeof chunk)) > 0)
        iggy_sdk_buffer_append(batch, chunk, (size_t)n);
    close(file);
}

static void wait_for_result(struct relay_source *source) {
    pthread_mutex_lock(&source->mutex);
    while (source->pending && !source->stop) pthread_cond_wait(&source->changed, &source->mutex);
    pthread_mutex_unlock(&source->mutex);
}

static void hand_over(struct relay_source *source, uint64_t batch_id,
                      const struct iggy_buffer *batch) {
    if (source->send) {
        source->send(source->id, batch->data, batch->len);
        note(source, "s");
        if (source->crash && access(source->release, F_OK) != 0) abort();
        return;
    }
    pthread_mutex_lock(&source->mutex);
    source->pending = batch_id;
    pthread_mutex_unlock(&source->mutex);
    if (source->send_v2(source->id, batch_id, batch->data, batch->len) != IGGY_OK) {
        note(source, "r");
    } else if (source->crash && access(source->release, F_OK) != 0) {
        abort();
    } else if (!source->ignore) {
        wait_for_result(source);
    }
}

static void send_stray(const struct relay_source *source, const struct iggy_buffer *batch,
                       uint32_t id) {
    if (source->send) source->send(id, batch->data, batch->len);
    else if (source->send_v2(id, 1, batch->data, batch->len) != IGGY_OK) note(source, "r");
}

static void *produce(void *argument) {
    struct relay_source *source = argument;
    struct iggy_buffer batch = {0};
    if (source->stray) {
        read_blob(source, &batch);
        send_stray(source, &batch, STRAY_ID);
    }
    for (uint64_t i = 1; i <= source->times; i++) {
        pthread_mutex_lock(&source->mutex);
        bool stop = source->stop;
        pthread_mutex_unlock(&source->mutex);
        if (stop) break;
        read_blob(source, &batch);
        hand_over(source, i, &batch);
        sleep_us(source->pause_us);
    }
    iggy_sdk_buffer_free(&batch);
    return NULL;
}

int32_t iggy_source_open(uint32_t id, const uint8_t *config_json, size_t config_len,
                         const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    (void)state;
    (void)state_len;
    struct iggy_instance *instance;
    iggy_sdk_log_install("relay_source", log);
    int32_t code = iggy_sdk_instance_reserve(&instances, id, &instance);
    if (code != IGGY_OK) return code;
    struct relay_source *source = calloc(1, sizeof *source);
    if (!source) return iggy_sdk_instance_opened(&instances, instance, IGGY_FAILED, NULL);
    source->id = id;
    pthread_mutex_init(&source->mutex, NULL);
    pthread_cond_init(&source->changed, NULL);
    iggy_config *config = &source->config;
    *config = iggy_config_parse((iggy_bytes){config_json, config_len});
    source->blob = iggy_config_required_string(config, "blob");
    source->results = iggy_config_string(config, "results", NULL);
    source->hang_in = iggy_config_string(config, "hang_in", NULL);
    source->release = iggy_config_string(config, "release", NULL);
    source->times = (uint64_t)iggy_config_int(config, "times", 0, UINT32_MAX, 1);
    source->pause_us = (uint64_t)iggy_config_int(config, "pause_us", 0, UINT32_MAX, 1000);
    source->open_code = (uint64_t)iggy_config_int(config, "open_code", 0, INT32_MAX, 0);
    source->crash = iggy_config_bool(config, "crash", false);
    source->ignore = iggy_config_bool(config, "ignore", false);
    source->stray = iggy_config_bool(config, "stray", false);
    code = config->failed ? IGGY_INVALID : (int32_t)source->open_code;
    if (!config->failed) hang(source, "open");
    return iggy_sdk_instance_opened(&instances, instance, code, source);
}

static int32_t start(uint32_t id, iggy_send_fn *send, iggy_send_v2_fn *send_v2) {
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct relay_source *source = instance->object;
    source->send = send;
    source->send_v2 = send_v2;
    source->started = pthread_create(&source->thread, NULL, produce, source) == 0;
    hang(source, "handle");
    iggy_sdk_instance_release(&instances, instance);
    return source->started ? IGGY_OK : IGGY_FAILED;
}

int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send) { return start(id, send, NULL); }

int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send) { return start(id, NULL, send); }

int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result) {
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct relay_source *source = instance->object;
    hang(source, "batch_result");
    pthread_mutex_lock(&source->mutex);
    bool expected = source->pending == batch_id && !source->ignore;
    if (expected) {
        source->pending = 0;
        note(source, result == 0 ? "a" : "n");
        pthread_cond_signal(&source->changed);
    }
    pthread_mutex_unlock(&source->mutex);
    iggy_sdk_instance_release(&instances, instance);
    return expected ? IGGY_OK : IGGY_INVALID;
}

static void end(struct relay_source *source) {
    pthread_mutex_lock(&source->mutex);
    source->stop = true;
    pthread_cond_broadcast(&source->changed);
    pthread_mutex_unlock(&source->mutex);
    if (source->started) pthread_join(source->thread, NULL);
}

/* Breaks the contract: a callback for an instance that close has removed. */
static void *send_late(void *argument) {
    struct relay_source *source = argument;
    struct iggy_buffer batch = {0};
    sleep_us(100000);
    read_blob(source, &batch);
    send_stray(source, &batch, source->id);
    iggy_sdk_buffer_free(&batch);
    return NULL; /* the source is left behind on purpose, for this thread */
}

int32_t iggy_source_close(uint32_t id) {
    struct iggy_instance *instance = iggy_sdk_instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct relay_source *source = instance->object;
    hang(source, "close");
    end(source);
    pthread_t late;
    if (source->stray && source->started && pthread_create(&late, NULL, send_late, source) == 0)
        pthread_detach(late);
    return iggy_sdk_instance_end_close(&instances, instance);
}

const char *iggy_source_version(void) { return PLUGIN_VERSION; }
