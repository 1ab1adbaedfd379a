/* Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * moody_source: a source inside which another one works, and that misbehaves on order
 * with what that one produces, for tests of the runtime.
 *
 * plugin_config:
 *     inner   the library of the source, opened with this same configuration
 *     mood    a file that says how this one feels, looked at in each call (mood.h):
 *             "garbage"  hands over bytes that are no batch, in place of the batch
 *                        (generation 2, which has it again) or in front of it
 *             "silent"   hands nothing over until the mood changes or it is closed
 *             "give_up"  takes no result any more, as a plugin that has stopped polling
 */
#include <stdlib.h>
#include <string.h>

#include "iggy_connector_config.h"
#include "inner.h"
#include "instances.h"
#include "log.h"
#include "mood.h"
#include "syscalls.h"

struct moody_source {
    iggy_config config; /* the text is in it */
    const char *mood;
    struct inner_source inner;
    iggy_send_fn *send;
    iggy_send_v2_fn *send_v2;
    bool closing;
};

static struct iggy_instances instances = IGGY_INSTANCES_INITIALIZER;

static const uint8_t garbage[] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

static bool feels(const struct moody_source *source, const char *word) {
    return strcmp(mood_now(source->mood).word, word) == 0;
}

/* The source of a callback. It lives until the inner close has returned, and with it
 * the thread that calls back. */
static struct moody_source *find(uint32_t id) {
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return NULL;
    struct moody_source *source = instance->object;
    iggy_sdk_instance_release(&instances, instance);
    return source;
}

/* False: the source is being closed, and nothing more is to be handed over. */
static bool wait_while_silent(const struct moody_source *source) {
    while (feels(source, "silent")) {
        if (__atomic_load_n(&source->closing, __ATOMIC_ACQUIRE)) return false;
        sleep_us(1000);
    }
    return true;
}

static void pass_on(uint32_t id, const uint8_t *messages, size_t len) {
    const struct moody_source *source = find(id);
    /* A batch that a generation 1 source has handed over is gone from it, so the one
     * caught in the silence goes on when that ends, whatever else happens. */
    if (!source) return;
    wait_while_silent(source);
    if (feels(source, "garbage")) source->send(id, garbage, sizeof garbage);
    source->send(id, messages, len);
}

int32_t iggy_source_open(uint32_t id, const uint8_t *config_json, size_t config_len,
                         const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    struct iggy_instance *instance;
    iggy_sdk_log_install("moody_source", log);
    int32_t code = iggy_sdk_instance_reserve(&instances, id, &instance);
    if (code != IGGY_OK) return code;
    struct moody_source *source = calloc(1, sizeof *source);
    if (!source) return iggy_sdk_instance_opened(&instances, instance, IGGY_FAILED, NULL);
    iggy_config *config = &source->config;
    *config = iggy_config_parse((iggy_bytes){config_json, config_len});
    const char *inner = iggy_config_required_string(config, "inner");
    source->mood = iggy_config_string(config, "mood", NULL);
    code = IGGY_INVALID;
    if (!config->failed && inner_source_load(&source->inner, inner)) {
        code = source->inner.open(id, config_json, config_len, state, state_len, log);
    }
    return iggy_sdk_instance_opened(&instances, instance, code, source);
}

int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send) {
    struct moody_source *source = find(id);
    if (!source) return IGGY_INVALID;
    source->send = send;
    return source->inner.handle(id, pass_on);
}

static int32_t pass_on_v2(uint32_t id, uint64_t batch_id, const uint8_t *messages, size_t len) {
    const struct moody_source *source = find(id);
    if (!source || !wait_while_silent(source)) return IGGY_FAILED;
    if (feels(source, "garbage")) {
        return source->send_v2(id, batch_id, garbage, sizeof garbage);
    }
    return source->send_v2(id, batch_id, messages, len);
}

int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send) {
    struct moody_source *source = find(id);
    if (!source || !source->inner.handle_v2) return IGGY_INVALID;
    source->send_v2 = send;
    return source->inner.handle_v2(id, pass_on_v2);
}

int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result) {
    const struct moody_source *source = find(id);
    if (!source || !source->inner.batch_result || feels(source, "give_up")) return IGGY_INVALID;
    return source->inner.batch_result(id, batch_id, result);
}

int32_t iggy_source_close(uint32_t id) {
    struct moody_source *source = find(id);
    if (source) __atomic_store_n(&source->closing, true, __ATOMIC_RELEASE);
    if (source) source->inner.close(id); /* while callbacks still find the instance */
    struct iggy_instance *instance = iggy_sdk_instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct moody_source *opened = instance->object;
    if (!source && opened && opened->inner.close) opened->inner.close(id); /* its open failed */
    if (opened) iggy_config_free(&opened->config);
    free(opened);
    return iggy_sdk_instance_end_close(&instances, instance);
}

const char *iggy_source_version(void) { return PLUGIN_VERSION; }
