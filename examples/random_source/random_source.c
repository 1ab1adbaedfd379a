/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * random_source: produces random JSON records, to try a runtime out. README.md lists its
 * configuration. State: MessagePack array [records produced so far].
 */
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "iggy_connector_config.h"
#include "iggy_connector_state.h"

enum { MAX_MESSAGES = 100000, MAX_PAYLOAD = 1000000, MAX_RECORD = MAX_PAYLOAD + 200 };

struct random_source {
    unsigned interval_ms;
    uint64_t messages_range[2];
    size_t payload_size;
    uint64_t max_count;
    uint64_t acknowledged; /* records stored so far */
    uint64_t produced;     /* the same, with the batch in flight */
    uint64_t random;       /* state of the generator */
    char *record;          /* room for one */
};

/* ---- Records -------------------------------------------------------------- */

/* xorshift64*: no cryptography, but even and without a lock as rand() has. */
static uint64_t random_below(struct random_source *source, uint64_t limit) {
    source->random ^= source->random >> 12;
    source->random ^= source->random << 25;
    source->random ^= source->random >> 27;
    return (source->random * 2685821657736338717u >> 11) % limit;
}

static void produce_record(struct random_source *source, iggy_producer *producer, uint64_t id) {
    static const char *const titles[] = {"alpha", "bravo", "charlie", "delta", "echo", "foxtrot"};
    const char *title = titles[random_below(source, sizeof titles / sizeof *titles)];
    unsigned user = (unsigned)random_below(source, 10000);
    unsigned age = 18 + (unsigned)random_below(source, 80);
    int head = snprintf(source->record, MAX_RECORD,
                        "{\"id\":%llu,\"title\":\"%s\",\"name\":\"user_%u\",\"age\":%u,\"text\":\"",
                        (unsigned long long)id, title, user, age);
    char *end = source->record + head;
    for (size_t i = 0; i < source->payload_size; i++) {
        *end++ = (char)('a' + random_below(source, 26));
    }
    *end++ = '"';
    *end++ = '}';
    iggy_produce(producer, source->record, (size_t)(end - source->record));
}

static uint64_t next_batch_length(struct random_source *source) {
    uint64_t least = source->messages_range[0], most = source->messages_range[1];
    uint64_t length = least + random_below(source, most - least + 1);
    uint64_t left = source->max_count - source->produced;
    return length < left ? length : left;
}

/* ---- The callbacks, described in iggy_connector_sdk.h --------------------- */

static int32_t poll(void *instance, iggy_producer *producer) {
    struct random_source *source = instance;
    if (source->produced >= source->max_count) {
        iggy_produce_wait(producer, 60000); /* nothing will come any more */
        return IGGY_OK;
    }
    if (!iggy_produce_wait(producer, source->interval_ms)) return IGGY_OK;
    for (uint64_t left = next_batch_length(source); left > 0; left--) {
        produce_record(source, producer, ++source->produced);
    }
    iggy_state_begin(producer, 1);
    iggy_state_put_uint(producer, source->produced);
    return IGGY_OK;
}

static int32_t on_batch_result(void *instance, enum iggy_batch_result result) {
    struct random_source *source = instance;
    if (result == IGGY_BATCH_ACK) source->acknowledged = source->produced;
    else source->produced = source->acknowledged;
    return IGGY_OK;
}

static void close_source(void *instance) {
    struct random_source *source = instance;
    free(source->record);
    free(source);
}

/* ---- Opening -------------------------------------------------------------- */

static bool element(const cJSON *array, int index, uint64_t *value) {
    const cJSON *number = cJSON_GetArrayItem(array, index);
    if (!cJSON_IsNumber(number)) return false;
    double found = number->valuedouble;
    if (!(found >= 1 && found <= MAX_MESSAGES)) return false;
    *value = (uint64_t)found;
    return (double)*value == found;
}

static void read_range(iggy_config *config, uint64_t range[2]) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(config->root, "messages_range");
    if (!array || cJSON_IsNull(array)) return;
    bool ok = cJSON_IsArray(array) && cJSON_GetArraySize(array) == 2 &&
              element(array, 0, &range[0]) && element(array, 1, &range[1]) && range[0] <= range[1];
    if (!ok) iggy_config_fault(config, "messages_range", "[least, most], each from 1 to 100000");
}

static bool read_config(struct random_source *source, iggy_bytes json) {
    iggy_config config = iggy_config_parse(json);
    source->messages_range[0] = 10;
    source->messages_range[1] = 100;
    source->interval_ms = (unsigned)iggy_config_duration_ms(&config, "interval", 1000);
    source->payload_size = (size_t)iggy_config_int(&config, "payload_size", 1, MAX_PAYLOAD, 100);
    source->max_count = (uint64_t)iggy_config_int(&config, "max_count", 0, INT64_MAX, INT64_MAX);
    read_range(&config, source->messages_range);
    iggy_config_free(&config);
    return !config.failed;
}

static int32_t ready(struct random_source *source, const iggy_open_args *args) {
    if (!read_config(source, args->config)) return IGGY_INVALID;
    iggy_state state = iggy_state_read(args->state);
    source->acknowledged = source->produced = iggy_state_take_uint(&state);
    source->random = (uint64_t)time(NULL) << 32 | (uint64_t)args->id << 1 | 1; /* never 0 */
    source->record = malloc(MAX_RECORD);
    return iggy_state_end(&state) && source->record ? IGGY_OK : IGGY_FAILED;
}

static int32_t open_source(const iggy_open_args *args, void **instance) {
    struct random_source *source = calloc(1, sizeof *source);
    int32_t code = source ? ready(source, args) : IGGY_FAILED;
    if (code == IGGY_OK) *instance = source;
    else if (source) close_source(source);
    return code;
}

static const iggy_source_plugin plugin = {"random_source", PLUGIN_VERSION, open_source, poll,
                                          on_batch_result, close_source};
IGGY_SOURCE_PLUGIN(plugin)
