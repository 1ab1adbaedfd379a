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
 *     latency     true: measure the time from the server's timestamp to the call; only
 *                 of use while the producer runs; default false
 *     delay_us    sleep so long in each consume call, default 0
 *
 * Without `expect`, or when fewer came, the report is written at close. It is one
 * JSON object:
 *     messages, batches, bytes    what arrived; bytes as encoded for the border
 *     first_batch                 messages of the first consume call
 *     first_us, last_us           time of the first consume call and of the last
 *     first_cpu_us, last_cpu_us   CPU time of the whole process at these times
 *     message_us: p50, p99, max   latency of each message
 *     oldest_us: p50, p99, max    latency of the first message of each batch
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "iggy_connector_config.h"
#include "instances.h"
#include "log.h"
#include "postcard.h"
#include "syscalls.h"

/* Latencies of the first so many messages or batches. */
enum { MAX_SAMPLES = 1 << 22 };

struct samples {
    uint32_t *values;
    size_t count;
};

/* A point in time and the CPU time that the process had used then. */
struct moment {
    uint64_t us;
    uint64_t cpu_us;
};

struct count_sink {
    iggy_config config;
    const char *report; /* in the configuration; NULL: none */
    uint64_t expect;
    uint64_t delay_us;

    pthread_mutex_t mutex; /* guards what follows */
    uint64_t messages;
    uint64_t batches;
    uint64_t bytes;
    uint64_t first_batch;
    struct moment first; /* consume call */
    struct moment last;
    struct samples message; /* no values unless latency is measured */
    struct samples oldest;
    bool reported;
};

static struct iggy_instances instances = IGGY_INSTANCES_INITIALIZER;

static uint64_t clock_us(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static struct moment now(void) {
    return (struct moment){clock_us(CLOCK_REALTIME), clock_us(CLOCK_PROCESS_CPUTIME_ID)};
}

/* ---- Latencies ------------------------------------------------------------ */

static bool samples_init(struct samples *samples) {
    /* Pages of it that are never written to cost no memory. */
    samples->values = calloc(MAX_SAMPLES, sizeof *samples->values);
    return samples->values != NULL;
}

static void sample(struct samples *samples, uint64_t now_us, uint64_t sent_us) {
    uint64_t latency = now_us > sent_us ? now_us - sent_us : 0;
    if (samples->count == MAX_SAMPLES) return;
    samples->values[samples->count++] = latency < UINT32_MAX ? (uint32_t)latency : UINT32_MAX;
}

static int compare(const void *a, const void *b) {
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

/* The smallest value that is not below so many per cent of the sorted samples. */
static uint32_t percentile(const struct samples *samples, size_t percent) {
    if (samples->count == 0) return 0;
    size_t rank = (samples->count * percent + 99) / 100;
    return samples->values[rank > 0 ? rank - 1 : 0];
}

/* ---- The report ----------------------------------------------------------- */

static void print_samples(FILE *file, const char *name, struct samples *samples) {
    if (!samples->values) return;
    qsort(samples->values, samples->count, sizeof *samples->values, compare);
    fprintf(file, ",\"%s\":{\"p50\":%" PRIu32 ",\"p99\":%" PRIu32 ",\"max\":%" PRIu32 "}", name,
            percentile(samples, 50), percentile(samples, 99), percentile(samples, 100));
}

static bool print_report(struct count_sink *sink, const char *path) {
    FILE *file = fopen(path, "w");
    if (!file) return false;
    fprintf(file,
            "{\"messages\":%" PRIu64 ",\"batches\":%" PRIu64 ",\"bytes\":%" PRIu64
            ",\"first_batch\":%" PRIu64 ",\"first_us\":%" PRIu64 ",\"last_us\":%" PRIu64
            ",\"first_cpu_us\":%" PRIu64 ",\"last_cpu_us\":%" PRIu64,
            sink->messages, sink->batches, sink->bytes, sink->first_batch, sink->first.us,
            sink->last.us, sink->first.cpu_us, sink->last.cpu_us);
    print_samples(file, "message_us", &sink->message);
    print_samples(file, "oldest_us", &sink->oldest);
    fputs("}\n", file);
    return fclose(file) == 0;
}

/* Whoever waits for the report may read it as soon as it is there. */
static void write_report(struct count_sink *sink) {
    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.tmp", sink->report);
    if (!print_report(sink, temporary) || rename(temporary, sink->report) != 0) {
        iggy_log(IGGY_LOG_ERROR, "cannot write %s", sink->report);
    }
    sink->reported = true;
}

/* ---- Counting ------------------------------------------------------------- */

/* `reader` stands before the first of `length` messages. */
static void measure(struct count_sink *sink, uint64_t now_us, iggy_reader *reader,
                    uint64_t length) {
    for (uint64_t i = 0; i < length && !reader->failed; i++) {
        uint64_t sent_us = iggy_sdk_read_message(reader).timestamp;
        if (i == 0) sample(&sink->oldest, now_us, sent_us);
        sample(&sink->message, now_us, sent_us);
    }
}

static void count(struct count_sink *sink, struct moment at, iggy_reader *reader, uint64_t length,
                  size_t bytes) {
    pthread_mutex_lock(&sink->mutex);
    if (sink->batches++ == 0) {
        sink->first = at;
        sink->first_batch = length;
    }
    sink->last = at;
    sink->messages += length;
    sink->bytes += bytes;
    if (sink->message.values) measure(sink, at.us, reader, length);
    if (sink->report && !sink->reported && sink->expect > 0 && sink->messages >= sink->expect) {
        write_report(sink);
    }
    pthread_mutex_unlock(&sink->mutex);
}

/* ---- The exported functions; connector.h describes each ------------------- */

static void free_sink(struct count_sink *sink) {
    pthread_mutex_destroy(&sink->mutex);
    free(sink->message.values);
    free(sink->oldest.values);
    iggy_config_free(&sink->config);
    free(sink);
}

static int32_t ready(struct count_sink *sink, iggy_bytes json) {
    if (!iggy_is_utf8(json)) {
        iggy_log(IGGY_LOG_ERROR, "plugin_config is not UTF-8");
        return IGGY_INVALID;
    }
    sink->config = iggy_config_parse(json);
    sink->report = iggy_config_string(&sink->config, "report", NULL);
    sink->expect = (uint64_t)iggy_config_int(&sink->config, "expect", 0, INT64_MAX, 0);
    sink->delay_us = (uint64_t)iggy_config_int(&sink->config, "delay_us", 0, 60000000, 0);
    bool latency = iggy_config_bool(&sink->config, "latency", false);
    if (sink->config.failed) return IGGY_INVALID;
    bool ok = !latency || (samples_init(&sink->message) && samples_init(&sink->oldest));
    return ok ? IGGY_OK : IGGY_FAILED;
}

static int32_t open_sink(iggy_bytes json, struct count_sink **result) {
    struct count_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return IGGY_FAILED;
    pthread_mutex_init(&sink->mutex, NULL);
    int32_t code = ready(sink, json);
    if (code == IGGY_OK) *result = sink;
    else free_sink(sink);
    return code;
}

int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len, iggy_log_fn *log) {
    struct iggy_instance *instance;
    struct count_sink *sink = NULL;
    iggy_sdk_log_install("count_sink", log);
    int32_t code = iggy_sdk_instance_reserve(&instances, id, &instance);
    if (code != IGGY_OK) return code;
    code = open_sink((iggy_bytes){config, config_len}, &sink);
    return iggy_sdk_instance_opened(&instances, instance, code, sink);
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,
                          const uint8_t *metadata, size_t metadata_len, const uint8_t *messages,
                          size_t messages_len) {
    (void)topic, (void)topic_len, (void)metadata, (void)metadata_len;
    struct moment at = now();
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct count_sink *sink = instance->object;
    iggy_reader reader = iggy_reader_over(messages, messages_len);
    iggy_sdk_read_schema(&reader);
    uint64_t length = iggy_sdk_read_count(&reader, IGGY_SDK_LEAST_RAW_MESSAGE);
    iggy_reader first = reader;
    if (length > 0) iggy_sdk_read_message(&first);
    if (!first.failed) count(sink, at, &reader, length, messages_len);
    if (sink->delay_us > 0) sleep_us(sink->delay_us);
    iggy_sdk_instance_release(&instances, instance);
    return first.failed ? IGGY_INVALID : IGGY_OK;
}

int32_t iggy_sink_close(uint32_t id) {
    struct iggy_instance *instance = iggy_sdk_instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct count_sink *sink = instance->object;
    if (sink && sink->report && !sink->reported) write_report(sink);
    if (sink) free_sink(sink);
    return iggy_sdk_instance_end_close(&instances, instance);
}

const char *iggy_sink_version(void) { return PLUGIN_VERSION; }
