/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "code.h"
#include "instances.h"
#include "log.h"
#include "postcard.h"

static struct iggy_instances instances = IGGY_INSTANCES_INITIALIZER;

int32_t iggy_sdk_sink_open(const iggy_sink_plugin *plugin, uint32_t id, iggy_bytes config,
                           iggy_log_fn *log) {
    struct iggy_instance *instance = NULL;
    void *object = NULL;
    iggy_sdk_log_install(plugin->name, log);
    int32_t code = iggy_sdk_instance_reserve(&instances, id, &instance);
    if (code != IGGY_OK) return code;
    if (iggy_is_utf8(config)) {
        iggy_open_args args = {id, config, {NULL, 0}};
        code = iggy_sdk_code(plugin->open(&args, &object));
    } else {
        iggy_log(IGGY_LOG_ERROR, "plugin_config is not UTF-8");
        code = IGGY_INVALID;
    }
    return iggy_sdk_instance_opened(&instances, instance, code, code == IGGY_OK ? object : NULL);
}

/* True when all three were decoded. */
static bool read_batch(iggy_batch *batch, iggy_bytes topic, iggy_bytes metadata,
                       iggy_bytes messages) {
    iggy_reader topic_reader = iggy_reader_over(topic.data, topic.len);
    iggy_reader metadata_reader = iggy_reader_over(metadata.data, metadata.len);
    iggy_reader messages_reader = iggy_reader_over(messages.data, messages.len);
    batch->topic = iggy_read_topic_metadata(&topic_reader);
    batch->metadata = iggy_read_messages_metadata(&metadata_reader);
    batch->messages = iggy_read_messages(&messages_reader);
    return !topic_reader.failed && !metadata_reader.failed && !messages_reader.failed;
}

int32_t iggy_sdk_sink_consume(const iggy_sink_plugin *plugin, uint32_t id, iggy_bytes topic,
                              iggy_bytes metadata, iggy_bytes messages) {
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    iggy_batch batch;
    int32_t code = IGGY_INVALID;
    if (read_batch(&batch, topic, metadata, messages)) {
        code = iggy_sdk_code(plugin->consume(instance->object, &batch));
    } else {
        iggy_log(IGGY_LOG_ERROR, "a batch cannot be decoded");
    }
    iggy_sdk_instance_release(&instances, instance);
    return code;
}

int32_t iggy_sdk_sink_close(const iggy_sink_plugin *plugin, uint32_t id) {
    struct iggy_instance *instance = iggy_sdk_instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    if (instance->opened) plugin->close(instance->object);
    return iggy_sdk_instance_end_close(&instances, instance);
}
