/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * header_only_sink: a sink written from connector.h and wire.md alone, to show what the
 * SDK does for its plugins. It writes a line about each batch to the log, and takes no
 * configuration.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connector.h"

static const char name[] = "header_only_sink";

/* ---- Instances ------------------------------------------------------------ */

/* An id is occupied from open to close, whatever open returned. */
struct instance {
    uint32_t id;
    bool usable;    /* open succeeded, and no close began */
    bool closing;   /* a close waits for the calls */
    unsigned calls; /* running consumes, which a close waits for */
    struct instance *next;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards all instances */
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static struct instance *instances;
static iggy_log_fn *write_log; /* valid for the life of the process */

static struct instance **find(uint32_t id) {
    struct instance **link = &instances;
    while (*link && (*link)->id != id) link = &(*link)->next;
    return link;
}

static void log_text(enum iggy_log_level level, const char *text) {
    write_log((uint8_t)level, (const uint8_t *)name, sizeof name - 1, (const uint8_t *)text,
              strlen(text));
}

/* ---- Decoding, wire.md ---------------------------------------------------- */

/* After the first fault every read yields zeros: one check at the end is enough. */
struct reader {
    const uint8_t *at, *end;
    bool failed;
};

static uint8_t read_byte(struct reader *reader) {
    if (reader->at == reader->end) reader->failed = true;
    return reader->failed ? 0 : *reader->at++;
}

/* A varint of so many bits, up to 128; the low 64 are returned. */
static uint64_t read_uint(struct reader *reader, unsigned bits) {
    uint64_t value = 0;
    for (unsigned shift = 0; shift < bits; shift += 7) {
        uint8_t byte = read_byte(reader);
        if (shift < 64) value |= (uint64_t)(byte & 0x7f) << shift;
        if (shift + 7 > bits && byte >> (bits - shift) != 0) break; /* more than fits */
        if (byte < 0x80) return value;
    }
    reader->failed = true;
    return 0;
}

static struct reader read_bytes(struct reader *reader) {
    uint64_t len = read_uint(reader, 64);
    if (len > (uint64_t)(reader->end - reader->at)) reader->failed = true;
    struct reader bytes = {reader->at, reader->at, reader->failed};
    if (reader->failed) return bytes;
    bytes.end += len;
    reader->at = bytes.end;
    return bytes;
}

/* The length of the character in UTF-8 that begins here, 0 when it is none. */
static size_t character(const uint8_t *at, const uint8_t *end) {
    uint8_t lead = at[0];
    if (lead < 0x80) return 1;
    size_t len = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead < 0xc2 || lead > 0xf4 || len > (size_t)(end - at)) return 0;
    for (size_t i = 1; i < len; i++) {
        if ((at[i] & 0xc0) != 0x80) return 0;
    }
    bool overlong = (lead == 0xe0 && at[1] < 0xa0) || (lead == 0xf0 && at[1] < 0x90);
    bool beyond = (lead == 0xed && at[1] > 0x9f) || (lead == 0xf4 && at[1] > 0x8f);
    return overlong || beyond ? 0 : len;
}

/* What goes into the log must be text. */
static struct reader read_text(struct reader *reader) {
    struct reader text = read_bytes(reader);
    for (const uint8_t *at = text.at; at < text.end;) {
        size_t len = character(at, text.end);
        if (len == 0) reader->failed = true;
        at += len > 0 ? len : 1;
    }
    return text;
}

static void read_schema(struct reader *reader) {
    if (read_uint(reader, 32) > IGGY_SCHEMA_AVRO) reader->failed = true;
}

/* Reads a message and returns its offset. */
static uint64_t read_message(struct reader *reader) {
    read_uint(reader, 128); /* id */
    uint64_t offset = read_uint(reader, 64);
    for (int i = 0; i < 3; i++) read_uint(reader, 64); /* checksum and two times */
    read_bytes(reader);                                /* headers */
    read_bytes(reader);                                /* payload */
    return offset;
}

struct batch {
    struct reader stream, topic;
    uint32_t partition;
    uint64_t count, first, last;
};

static bool read_batch(struct batch *batch, struct reader topic, struct reader metadata,
                       struct reader messages) {
    batch->stream = read_text(&topic);
    batch->topic = read_text(&topic);
    batch->partition = (uint32_t)read_uint(&metadata, 32);
    read_uint(&metadata, 64); /* current offset */
    read_schema(&metadata);
    read_schema(&messages);
    batch->count = read_uint(&messages, 64);
    for (uint64_t i = 0; i < batch->count && !messages.failed; i++) {
        batch->last = read_message(&messages);
        if (i == 0) batch->first = batch->last;
    }
    return !topic.failed && !metadata.failed && !messages.failed;
}

static void log_batch(const struct batch *batch) {
    char text[1024];
    snprintf(text, sizeof text, "%.*s/%.*s/%u: %llu messages, offsets %llu to %llu",
             (int)(batch->stream.end - batch->stream.at), (const char *)batch->stream.at,
             (int)(batch->topic.end - batch->topic.at), (const char *)batch->topic.at,
             (unsigned)batch->partition, (unsigned long long)batch->count,
             (unsigned long long)batch->first, (unsigned long long)batch->last);
    log_text(IGGY_LOG_INFO, text);
}

/* ---- The exported functions; connector.h describes each ------------------- */

/* Absent or an empty table. */
static bool is_empty(const uint8_t *config, size_t len) {
    char tokens[5];
    size_t count = 0;
    for (size_t i = 0; i < len; i++) {
        if (strchr(" \t\r\n", config[i]) && config[i] != 0) continue;
        if (count == sizeof tokens) return false;
        tokens[count++] = (char)config[i];
    }
    return (count == 2 && memcmp(tokens, "{}", 2) == 0) ||
           (count == 4 && memcmp(tokens, "null", 4) == 0);
}

int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len, iggy_log_fn *log) {
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance) return IGGY_FAILED;
    instance->id = id;
    instance->usable = is_empty(config, config_len);
    int32_t code = instance->usable ? IGGY_OK : IGGY_INVALID;
    pthread_mutex_lock(&mutex);
    struct instance **link = find(id);
    bool in_use = *link != NULL;
    if (!in_use) {
        write_log = log;
        *link = instance;
    }
    pthread_mutex_unlock(&mutex);
    if (in_use) {
        free(instance);
        return IGGY_INVALID;
    }
    if (code != IGGY_OK) log_text(IGGY_LOG_ERROR, "plugin_config is not empty");
    return code;
}

static struct instance *begin_call(uint32_t id) {
    pthread_mutex_lock(&mutex);
    struct instance *instance = *find(id);
    if (instance && instance->usable) instance->calls++;
    else instance = NULL;
    pthread_mutex_unlock(&mutex);
    return instance;
}

static void end_call(struct instance *instance) {
    pthread_mutex_lock(&mutex);
    if (--instance->calls == 0) pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&mutex);
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,
                          const uint8_t *metadata, size_t metadata_len, const uint8_t *messages,
                          size_t messages_len) {
    struct batch batch = {0};
    struct instance *instance = begin_call(id);
    if (!instance) return IGGY_INVALID;
    bool ok = read_batch(&batch, (struct reader){topic, topic + topic_len, false},
                         (struct reader){metadata, metadata + metadata_len, false},
                         (struct reader){messages, messages + messages_len, false});
    if (ok) log_batch(&batch);
    end_call(instance);
    return ok ? IGGY_OK : IGGY_INVALID;
}

int32_t iggy_sink_close(uint32_t id) {
    pthread_mutex_lock(&mutex);
    struct instance *instance = *find(id);
    if (instance && instance->closing) instance = NULL;
    bool opened = instance && instance->usable;
    if (instance) {
        instance->usable = false;
        instance->closing = true;
        while (instance->calls > 0) pthread_cond_wait(&idle, &mutex);
        *find(id) = instance->next;
    }
    pthread_mutex_unlock(&mutex);
    free(instance);
    return opened ? IGGY_OK : IGGY_INVALID;
}

const char *iggy_sink_version(void) { return "1.0.0"; }
