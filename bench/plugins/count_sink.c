/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * count_sink: counts what it is given and does nothing else, so that a measurement
 * of it is one of the runtime that feeds it.
 *
 * plugin_config:
 *     expect      write the report when so many messages have arrived
 *     report      path of the report; it appears complete or not at all
 *     delay_us    sleep so long in each consume call, default 0
 *
 * Without `expect`, or when fewer came, the report is written at close. It is one
 * JSON object:
 *     messages, batches, bytes    what arrived; bytes as encoded for the border
 *     seconds                     from the first consume call to the last
 *     latency_us: p50, p99, max   of the first message of each batch, from its server
 *                                 timestamp to the call; only of use while the
 *                                 producer runs
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "config.h"
#include "connector.h"
#include "instances.h"
#include "io.h"
#include "postcard.h"

enum { MAX_LATENCIES = 1 << 20 };

struct count_sink {
    struct log log;
    char *report;
    uint64_t expect;
    uint64_t delay_us;

    pthread_mutex_t mutex; /* guards what follows */
    uint64_t messages;
    uint64_t batches;
    uint64_t bytes;
    uint64_t first_us; /* time of the first call and of the last */
    uint64_t last_us;
    uint32_t *latencies;
    size_t latency_count;
    bool reported;
};

static struct instances instances = INSTANCES_INITIALIZER;

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* ---- The report ----------------------------------------------------------- */

static int compare_latency(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

static uint32_t percentile(const struct count_sink *sink, size_t percent) {
    size_t count = sink->latency_count, at = count * percent / 100;
    if (count == 0) return 0;
    return sink->latencies[at < count ? at : count - 1];
}

static bool print_report(struct count_sink *sink, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    qsort(sink->latencies, sink->latency_count, sizeof *sink->latencies, compare_latency);
    fprintf(file,
            "{\"messages\":%" PRIu64 ",\"batches\":%" PRIu64 ",\"bytes\":%" PRIu64
            ",\"seconds\":%.6f,\"latency_us\":{\"p50\":%" PRIu32 ",\"p99\":%" PRIu32
            ",\"max\":%" PRIu32 "}}\n",
            sink->messages, sink->batches, sink->bytes,
            (double)(sink->last_us - sink->first_us) / 1e6, percentile(sink, 50),
            percentile(sink, 99), percentile(sink, 100));
    return fclose(file) == 0;
}

/* Whoever waits for the report may read it as soon as it is there. */
static void write_report(struct count_sink *sink) {
    struct buffer path = {0};
    buffer_text(&path, sink->report);
    buffer_append(&path, ".tmp", sizeof ".tmp");
    const char *temporary = (const char *)path.bytes;
    if (path.failed || !print_report(sink, temporary) || rename(temporary, sink->report) != 0) {
        log_printf(&sink->log, IGGY_LOG_ERROR, "cannot write %s", sink->report);
    }
    buffer_free(&path);
    sink->reported = true;
}

/* ---- Counting ------------------------------------------------------------- */

static void count(struct count_sink *sink, uint64_t now, uint64_t messages, size_t bytes,
                  uint64_t timestamp) {
    pthread_mutex_lock(&sink->mutex);
    if (sink->batches++ == 0) sink->first_us = now;
    sink->last_us = now;
    sink->messages += messages;
    sink->bytes += bytes;
    if (messages > 0 && sink->latency_count < MAX_LATENCIES) {
        uint64_t latency = now > timestamp ? now - timestamp : 0;
        sink->latencies[sink->latency_count++] =
            latency < UINT32_MAX ? (uint32_t)latency : UINT32_MAX;
    }
    if (sink->report && !sink->reported && sink->expect > 0 && sink->messages >= sink->expect) {
        write_report(sink);
    }
    pthread_mutex_unlock(&sink->mutex);
}

/* ---- The exported functions; connector.h describes each ------------------- */

static void free_sink(struct count_sink *sink) {
    if (!sink) return;
    pthread_mutex_destroy(&sink->mutex);
    free(sink->latencies);
    free(sink->report);
    free(sink);
}

static int32_t open_sink(const uint8_t *config_json, size_t config_len, struct count_sink *sink) {
    struct config config = config_parse(config_json, config_len, sink->log);
    sink->report = config_string(&config, "report");
    config_uint(&config, "expect", 0, UINT64_MAX, &sink->expect);
    config_uint(&config, "delay_us", 0, 60000000, &sink->delay_us);
    if (config.failed) return IGGY_INVALID;
    /* Pages of it that are never written to cost no memory. */
    sink->latencies = calloc(MAX_LATENCIES, sizeof *sink->latencies);
    return sink->latencies ? IGGY_OK : IGGY_FAILED;
}

int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len, iggy_log_fn *log) {
    struct instance *instance = instance_reserve(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct count_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return instance_opened(&instances, instance, IGGY_FAILED, NULL);
    sink->log = (struct log){log, "count_sink"};
    pthread_mutex_init(&sink->mutex, NULL);
    return instance_opened(&instances, instance, open_sink(config, config_len, sink), sink);
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,
                          const uint8_t *metadata, size_t metadata_len,
                          const uint8_t *messages, size_t messages_len) {
    (void)topic, (void)topic_len, (void)metadata, (void)metadata_len;
    uint64_t now = now_us();
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct count_sink *sink = instance->object;
    struct reader reader = reader_over(messages, messages_len);
    uint64_t length = read_message_count(&reader);
    struct message first = {.timestamp = 0};
    if (length > 0) first = read_message(&reader);
    if (!reader.failed) count(sink, now, length, messages_len, first.timestamp);
    if (sink->delay_us > 0) sleep_us(sink->delay_us);
    instance_release(&instances, instance);
    return reader.failed ? IGGY_INVALID : IGGY_OK;
}

int32_t iggy_sink_close(uint32_t id) {
    struct instance *instance = instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct count_sink *sink = instance->object;
    if (sink && sink->latencies && sink->report && !sink->reported) write_report(sink);
    free_sink(sink);
    return instance_end_close(&instances, instance);
}

const char *iggy_sink_version(void) {
    return PLUGIN_VERSION;
}
