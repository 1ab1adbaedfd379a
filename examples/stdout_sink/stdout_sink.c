/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * stdout_sink: prints what it consumes.
 *
 * plugin_config:
 *     print_payload    true: a line for each message with its payload;
 *                      false (default): a line for each batch
 *
 * The lines of a batch are written together, so those of batches that are consumed
 * at the same time do not mix. A batch that could not be written has failed.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "config.h"
#include "connector.h"
#include "instances.h"
#include "io.h"
#include "postcard.h"

struct stdout_sink {
    struct log log;
    bool print_payload;
};

static struct instances instances = INSTANCES_INITIALIZER;
static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER; /* there is but one stdout */

/* ---- Printing ------------------------------------------------------------- */

static void put_partition(struct buffer *out, const struct topic_metadata *topic,
                          const struct messages_metadata *metadata) {
    buffer_append(out, topic->stream.bytes, topic->stream.len);
    buffer_byte(out, '/');
    buffer_append(out, topic->topic.bytes, topic->topic.len);
    buffer_printf(out, "/%u", (unsigned)metadata->partition);
}

/* A terminal shows text; what is none is printed as base64. */
static void put_payload(struct buffer *out, struct slice payload) {
    if (utf8_valid(payload.bytes, payload.len)) buffer_append(out, payload.bytes, payload.len);
    else json_put_base64(out, payload.bytes, payload.len);
}

static void put_batch(struct buffer *out, const struct topic_metadata *topic,
                      const struct messages_metadata *metadata, struct reader *messages,
                      bool print_payload) {
    uint64_t count = read_message_count(messages), first = 0, last = 0;
    for (uint64_t i = 0; i < count && !messages->failed; i++) {
        struct message message = read_message(messages);
        if (i == 0) first = message.offset;
        last = message.offset;
        if (!print_payload) continue;
        put_partition(out, topic, metadata);
        buffer_printf(out, "@%llu: ", (unsigned long long)message.offset);
        put_payload(out, message.payload);
        buffer_byte(out, '\n');
    }
    if (print_payload || count == 0) return;
    put_partition(out, topic, metadata);
    buffer_printf(out, ": %llu messages, offsets %llu to %llu\n", (unsigned long long)count,
                  (unsigned long long)first, (unsigned long long)last);
}

static int32_t print(struct stdout_sink *sink, const struct buffer *out) {
    if (out->failed) {
        log_printf(&sink->log, IGGY_LOG_ERROR, "out of memory");
        return IGGY_FAILED;
    }
    pthread_mutex_lock(&output);
    int error = write_all(STDOUT_FILENO, out->bytes, out->len) ? 0 : errno;
    pthread_mutex_unlock(&output);
    if (error) log_printf(&sink->log, IGGY_LOG_ERROR, "cannot print: %s", strerror(error));
    return error ? IGGY_FAILED : IGGY_OK;
}

/* ---- The exported functions; connector.h describes each ------------------- */

int32_t iggy_sink_open(uint32_t id, const uint8_t *config_json, size_t config_len,
                       iggy_log_fn *log) {
    struct instance *instance = instance_reserve(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct stdout_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return instance_opened(&instances, instance, IGGY_FAILED, NULL);
    sink->log = (struct log){log, "stdout_sink"};
    struct config config = config_parse(config_json, config_len, sink->log);
    config_bool(&config, "print_payload", &sink->print_payload);
    return instance_opened(&instances, instance, config.failed ? IGGY_INVALID : IGGY_OK, sink);
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic_bytes, size_t topic_len,
                          const uint8_t *metadata_bytes, size_t metadata_len,
                          const uint8_t *messages_bytes, size_t messages_len) {
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct stdout_sink *sink = instance->object;
    struct reader topic_reader = reader_over(topic_bytes, topic_len);
    struct reader metadata_reader = reader_over(metadata_bytes, metadata_len);
    struct reader messages = reader_over(messages_bytes, messages_len);
    struct topic_metadata topic = read_topic_metadata(&topic_reader);
    struct messages_metadata metadata = read_messages_metadata(&metadata_reader);
    struct buffer out = {0};
    put_batch(&out, &topic, &metadata, &messages, sink->print_payload);
    bool broken = topic_reader.failed || metadata_reader.failed || messages.failed;
    int32_t code = broken ? IGGY_INVALID : print(sink, &out);
    buffer_free(&out);
    instance_release(&instances, instance);
    return code;
}

int32_t iggy_sink_close(uint32_t id) {
    struct instance *instance = instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    free(instance->object);
    return instance_end_close(&instances, instance);
}

const char *iggy_sink_version(void) {
    return PLUGIN_VERSION;
}
