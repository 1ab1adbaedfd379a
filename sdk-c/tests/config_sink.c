/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* A sink that reads its configuration with IggyConnector::config. */
#include "iggy_connector_config.h"

static int32_t open_sink(const iggy_open_args *args, void **instance) {
    iggy_config config = iggy_config_parse(args->config);
    (void)iggy_config_required_string(&config, "path");
    bool failed = config.failed;
    iggy_config_free(&config);
    *instance = NULL;
    return failed ? IGGY_INVALID : IGGY_OK;
}

static int32_t consume(void *instance, iggy_batch *batch) {
    (void)instance, (void)batch;
    return IGGY_OK;
}

static void close_sink(void *instance) { (void)instance; }

static const iggy_sink_plugin plugin = {"config_sink", "1.0.0", open_sink, consume, close_sink};
IGGY_SINK_PLUGIN(plugin)
