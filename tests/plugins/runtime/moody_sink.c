/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * moody_sink: a sink that misbehaves on order, for tests of the runtime.
 *
 * plugin_config:
 *     path          a file that gets a byte for each consume call
 *     inner         the library of a sink, opened with this same configuration, that
 *                   gets what this one lets through; it then owns `path`
 *     mood          a file that says how this one feels, looked at in each call
 *                   (mood.h): with "refuse" consume returns 1, with "refuse N" one
 *                   call in N does, with "forget" it does after the inner sink has
 *                   consumed, with "hang" it waits until the mood changes
 *     open_code     what open returns, default 0
 *     consume_code  what consume returns, default 0
 *     refuse        consume returns 1 for a batch with these bytes in it
 *     crash         the process ends in consume for a batch with these bytes in it, as
 *                   long as the file `release` is missing
 *     delay_us      how long consume takes
 *     hang_in       "open", "consume" or "close": that call waits until the file
 *                   `release` exists
 *     release       see hang_in
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "iggy_connector_config.h"
#include "inner.h"
#include "instances.h"
#include "log.h"
#include "mood.h"
#include "syscalls.h"

struct moody_sink {
    iggy_config config; /* the texts are in it */
    const char *path;
    const char *mood;
    uint64_t calls;
    struct inner_sink inner;
    const char *hang_in;
    const char *release;
    const char *refuse;
    const char *crash;
    uint64_t open_code;
    uint64_t consume_code;
    uint64_t delay_us;
};

static struct iggy_instances instances = IGGY_INSTANCES_INITIALIZER;

static void hang(const struct moody_sink *sink, const char *call) {
    if (!sink->hang_in || strcmp(sink->hang_in, call) != 0) return;
    while (access(sink->release, F_OK) != 0) sleep_us(1000);
}

static void note_call(const struct moody_sink *sink) {
    if (!sink->path || sink->inner.consume) return;
    int file = open(sink->path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    if (file < 0) return;
    write_all(file, ".", 1);
    close(file);
}

static bool holds(const uint8_t *bytes, size_t len, const char *text) {
    size_t n = strlen(text);
    for (size_t i = 0; i + n <= len; i++)
        if (memcmp(bytes + i, text, n) == 0) return true;
    return false;
}

int32_t iggy_sink_open(uint32_t id, const uint8_t *config_json, size_t config_len,
                       iggy_log_fn *log) {
    struct iggy_instance *instance;
    iggy_sdk_log_install("moody_sink", log);
    int32_t code = iggy_sdk_instance_reserve(&instances, id, &instance);
    if (code != IGGY_OK) return code;
    struct moody_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return iggy_sdk_instance_opened(&instances, instance, IGGY_FAILED, NULL);
    iggy_config *config = &sink->config;
    *config = iggy_config_parse((iggy_bytes){config_json, config_len});
    sink->path = iggy_config_string(config, "path", NULL);
    sink->mood = iggy_config_string(config, "mood", NULL);
    const char *inner = iggy_config_string(config, "inner", NULL);
    sink->hang_in = iggy_config_string(config, "hang_in", NULL);
    sink->release = iggy_config_string(config, "release", NULL);
    sink->refuse = iggy_config_string(config, "refuse", NULL);
    sink->crash = iggy_config_string(config, "crash", NULL);
    sink->open_code = (uint64_t)iggy_config_int(config, "open_code", 0, INT32_MAX, 0);
    sink->consume_code = (uint64_t)iggy_config_int(config, "consume_code", 0, INT32_MAX, 0);
    sink->delay_us = (uint64_t)iggy_config_int(config, "delay_us", 0, UINT32_MAX, 0);
    code = config->failed ? IGGY_INVALID : (int32_t)sink->open_code;
    if (!config->failed) hang(sink, "open");
    if (inner && !inner_sink_load(&sink->inner, inner)) code = IGGY_FAILED;
    if (code == IGGY_OK && sink->inner.open)
        code = sink->inner.open(id, config_json, config_len, log);
    return iggy_sdk_instance_opened(&instances, instance, code, sink);
}

/* Whether the mood is to refuse this call. */
static bool refuses(struct moody_sink *sink) {
    struct mood mood = mood_now(sink->mood);
    while (strcmp(mood.word, "hang") == 0) {
        sleep_us(1000);
        mood = mood_now(sink->mood);
    }
    uint64_t calls = __atomic_add_fetch(&sink->calls, 1, __ATOMIC_RELAXED);
    return strcmp(mood.word, "refuse") == 0 && (mood.number == 0 || calls % mood.number == 0);
}

static bool forgets(const struct moody_sink *sink) {
    return strcmp(mood_now(sink->mood).word, "forget") == 0;
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic_bytes, size_t topic_len,
                          const uint8_t *metadata_bytes, size_t metadata_len,
                          const uint8_t *messages_bytes, size_t messages_len) {
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct moody_sink *sink = instance->object;
    note_call(sink);
    if (sink->delay_us) sleep_us(sink->delay_us);
    hang(sink, "consume");
    if (sink->crash && holds(messages_bytes, messages_len, sink->crash) &&
        access(sink->release, F_OK) != 0)
        abort();
    int32_t code = (int32_t)sink->consume_code;
    if (sink->refuse && holds(messages_bytes, messages_len, sink->refuse)) code = IGGY_FAILED;
    if (refuses(sink)) code = IGGY_FAILED;
    if (code == IGGY_OK && sink->inner.consume) {
        code = sink->inner.consume(id, topic_bytes, topic_len, metadata_bytes, metadata_len,
                                   messages_bytes, messages_len);
        if (forgets(sink)) code = IGGY_FAILED;
    }
    iggy_sdk_instance_release(&instances, instance);
    return code;
}

int32_t iggy_sink_close(uint32_t id) {
    struct iggy_instance *instance = iggy_sdk_instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct moody_sink *sink = instance->object;
    hang(sink, "close");
    if (sink->inner.close) sink->inner.close(id);
    iggy_config_free(&sink->config);
    free(sink);
    return iggy_sdk_instance_end_close(&instances, instance);
}

const char *iggy_sink_version(void) { return PLUGIN_VERSION; }
