/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* A source that counts, with its configuration by IggyConnector::config and its state by
 * IggyConnector::state. */
#include <stdlib.h>

#include "iggy_connector_config.h"
#include "iggy_connector_state.h"

struct counter {
    unsigned interval_ms;
    uint64_t count;
};

static bool read_config(struct counter *counter, iggy_bytes bytes) {
    iggy_config config = iggy_config_parse(bytes);
    counter->interval_ms = (unsigned)iggy_config_duration_ms(&config, "interval", 1000);
    bool ok = !config.failed;
    iggy_config_free(&config);
    return ok;
}

static bool read_state(struct counter *counter, iggy_bytes bytes) {
    iggy_state state = iggy_state_read(bytes);
    counter->count = iggy_state_take_uint(&state);
    return iggy_state_end(&state);
}

static int32_t open_source(const iggy_open_args *args, void **instance) {
    struct counter *counter = calloc(1, sizeof *counter);
    if (!counter) return IGGY_FAILED;
    int32_t code = !read_config(counter, args->config) ? IGGY_INVALID
                   : !read_state(counter, args->state) ? IGGY_FAILED
                                                       : IGGY_OK;
    if (code == IGGY_OK) *instance = counter;
    else free(counter);
    return code;
}

static int32_t poll(void *instance, iggy_producer *producer) {
    struct counter *counter = instance;
    if (!iggy_produce_wait(producer, counter->interval_ms)) return IGGY_OK;
    counter->count++;
    iggy_produce(producer, "{}", 2);
    iggy_state_begin(producer, 1);
    iggy_state_put_uint(producer, counter->count);
    return IGGY_OK;
}

static void close_source(void *instance) { free(instance); }

static const iggy_source_plugin plugin = {"config_source", "1.0.0", open_source, poll, NULL,
                                          close_source};
IGGY_SOURCE_PLUGIN(plugin)
