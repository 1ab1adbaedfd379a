/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "host.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "wire.h"

/* ---- Loading --------------------------------------------------------------- */

/* What AddressSanitizer asks its program for. Up to GCC 13 and LLVM 16 it takes the thread-local
 * block of a loaded library for one of an old C library when it lies 16 bytes into a page, and
 * LeakSanitizer reads what the header of such a block would name. It needs no block from there:
 * it looks into all that the dynamic linker allocated. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "intercept_tls_get_addr=0"; }

static void *load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        abort();
    }
    return library;
}

/* ISO C has no conversion from an object pointer to a function pointer. */
#define FIND(library, api, field, symbol)               \
    do {                                                \
        void *address = dlsym(library, symbol);         \
        memcpy(&(api).field, &address, sizeof address); \
    } while (0)

iggy_source_api host_load_source(const char *path) {
    void *library = load(path);
    iggy_source_api api;
    FIND(library, api, open, "iggy_source_open");
    FIND(library, api, handle, "iggy_source_handle");
    FIND(library, api, close, "iggy_source_close");
    FIND(library, api, version, "iggy_source_version");
    FIND(library, api, handle_v2, "iggy_source_handle_v2");
    FIND(library, api, batch_result, "iggy_source_batch_result");
    return api;
}

iggy_sink_api host_load_sink(const char *path) {
    void *library = load(path);
    iggy_sink_api api;
    FIND(library, api, open, "iggy_sink_open");
    FIND(library, api, consume, "iggy_sink_consume");
    FIND(library, api, close, "iggy_sink_close");
    FIND(library, api, version, "iggy_sink_version");
    return api;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t arrived = PTHREAD_COND_INITIALIZER;
static char records[64 * 1024];

void host_log(uint8_t level, const uint8_t *target, size_t target_len, const uint8_t *message,
              size_t message_len) {
    pthread_mutex_lock(&mutex);
    size_t used = strlen(records);
    snprintf(records + used, sizeof records - used, "%d %.*s: %.*s\n", level, (int)target_len,
             (const char *)target, (int)message_len, (const char *)message);
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&mutex);
}

/* The time in so many milliseconds. */
static struct timespec in_ms(unsigned ms) {
    struct timespec end;
    clock_gettime(CLOCK_REALTIME, &end);
    end.tv_sec += ms / 1000;
    end.tv_nsec += (long)(ms % 1000) * 1000000;
    if (end.tv_nsec >= 1000000000) end.tv_sec++, end.tv_nsec -= 1000000000;
    return end;
}

/* What must happen may take so long, on a machine as loaded as CI's. */
enum { PATIENCE_MS = 200000 };

bool host_logged(const char *text) {
    struct timespec end = in_ms(PATIENCE_MS);
    pthread_mutex_lock(&mutex);
    while (!strstr(records, text) && pthread_cond_timedwait(&arrived, &mutex, &end) != ETIMEDOUT) {
    }
    bool found = strstr(records, text) != NULL;
    if (!found) fprintf(stderr, "the log holds:\n%s", records);
    records[0] = '\0';
    pthread_mutex_unlock(&mutex);
    return found;
}

int32_t host_open_source(const iggy_source_api *api, uint32_t id, const char *config) {
    return api->open(id, (const uint8_t *)config, strlen(config), NULL, 0, host_log);
}

int32_t host_open_sink(const iggy_sink_api *api, uint32_t id, const char *config) {
    return api->open(id, (const uint8_t *)config, strlen(config), host_log);
}

/* ---- Receiving from sources ------------------------------------------------ */

static struct queued {
    struct host_batch batch;
    struct queued *next;
} * queue;

int32_t (*host_on_send)(uint32_t id, uint64_t batch_id);

static char *copy(iggy_bytes slice) {
    char *text = malloc(slice.len + 1);
    CHECK(text);
    if (slice.len > 0) memcpy(text, slice.data, slice.len);
    text[slice.len] = '\0';
    return text;
}

static void decode(struct host_batch *batch, const uint8_t *messages, size_t len) {
    iggy_reader reader = iggy_reader_over(messages, len);
    iggy_mock_produced produced = iggy_mock_read_batch(&reader);
    CHECK(!reader.failed && reader.at == reader.end);
    batch->schema = produced.schema;
    batch->count = produced.count;
    batch->payloads = calloc(batch->count + 1, sizeof *batch->payloads);
    batch->lens = calloc(batch->count + 1, sizeof *batch->lens);
    CHECK(batch->payloads && batch->lens);
    for (size_t i = 0; i < batch->count; i++) {
        const iggy_produced_message *message = &produced.messages[i];
        CHECK(!message->has_id && !message->has_checksum && !message->has_timestamp);
        CHECK(!message->has_origin_timestamp && !message->headers);
        batch->payloads[i] = copy((iggy_bytes){message->payload, message->payload_len});
        batch->lens[i] = message->payload_len;
    }
    batch->has_state = produced.has_state;
    if (batch->has_state) batch->state = (uint8_t *)copy(produced.state);
    batch->state_len = produced.state.len;
    iggy_mock_free_produced(&produced);
}

static void receive(uint32_t id, uint64_t batch_id, const uint8_t *messages, size_t len) {
    struct queued *queued = calloc(1, sizeof *queued);
    CHECK(queued);
    queued->batch.id = id;
    queued->batch.batch_id = batch_id;
    decode(&queued->batch, messages, len);
    pthread_mutex_lock(&mutex);
    struct queued **end = &queue;
    while (*end) end = &(*end)->next;
    *end = queued;
    pthread_cond_broadcast(&arrived);
    pthread_mutex_unlock(&mutex);
}

void host_send(uint32_t id, const uint8_t *messages, size_t len) {
    receive(id, 0, messages, len);
    if (host_on_send) host_on_send(id, 0);
}

int32_t host_send_v2(uint32_t id, uint64_t batch_id, const uint8_t *messages, size_t len) {
    receive(id, batch_id, messages, len);
    return host_on_send ? host_on_send(id, batch_id) : IGGY_OK;
}

struct host_batch *host_next_batch_within(unsigned ms) {
    struct timespec end = in_ms(ms);
    pthread_mutex_lock(&mutex);
    while (!queue && pthread_cond_timedwait(&arrived, &mutex, &end) != ETIMEDOUT) {
    }
    struct queued *first = queue;
    if (first) queue = first->next;
    pthread_mutex_unlock(&mutex);
    return first ? &first->batch : NULL; /* the first member: free frees both */
}

struct host_batch *host_next_batch(void) {
    return host_next_batch_within(PATIENCE_MS);
}

void host_free_batch(struct host_batch *batch) {
    for (size_t i = 0; i < batch->count; i++) free(batch->payloads[i]);
    free(batch->payloads);
    free(batch->lens);
    free(batch->state);
    free(batch);
}

/* ---- Feeding sinks --------------------------------------------------------- */

static void put_text(struct iggy_buffer *out, const char *text) {
    iggy_sdk_put_bytes(out, text, strlen(text));
}

/* Base64 written bit by bit, so not by the code under test. */
static void put_header_field(struct iggy_buffer *out, uint8_t kind, const uint8_t *bytes,
                             size_t len) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    iggy_sdk_buffer_byte(out, kind);
    iggy_sdk_put_uint(out, (len + 2) / 3 * 4);
    size_t bits = len * 8;
    for (size_t at = 0; at < (len + 2) / 3 * 24; at += 6) {
        unsigned digit = 0;
        for (size_t bit = at; bit < at + 6; bit++) {
            digit = digit << 1 | (bit < bits ? bytes[bit / 8] >> (7 - bit % 8) & 1 : 0);
        }
        iggy_sdk_buffer_byte(out, at < bits ? (uint8_t)digits[digit] : '=');
    }
}

static void put_message_with_headers(struct iggy_buffer *out, const struct host_message *message) {
    struct iggy_buffer headers = {0};
    for (size_t i = 0; i < message->header_count; i++) {
        const struct host_header *header = &message->headers[i];
        if (i == 0) iggy_sdk_put_uint(&headers, message->header_count);
        put_header_field(&headers, header->key_kind, header->key, header->key_len);
        put_header_field(&headers, header->value_kind, header->value, header->value_len);
    }
    iggy_sdk_put_uint(out, 1); /* id */
    iggy_sdk_put_uint(out, message->offset);
    iggy_sdk_put_uint(out, 0); /* checksum */
    iggy_sdk_put_uint(out, message->timestamp);
    iggy_sdk_put_uint(out, 0); /* origin timestamp */
    iggy_sdk_put_uint(out, headers.len);
    iggy_sdk_buffer_append(out, headers.data, headers.len);
    iggy_sdk_put_uint(out, message->payload_len);
    iggy_sdk_buffer_append(out, message->payload, message->payload_len);
    CHECK(!headers.failed);
    iggy_sdk_buffer_free(&headers);
}

struct host_blobs host_encode(const char *stream, const char *topic, uint32_t partition,
                              uint8_t schema, const struct host_message *messages, size_t count) {
    struct iggy_buffer topic_blob = {0}, metadata_blob = {0}, messages_blob = {0};
    put_text(&topic_blob, stream);
    put_text(&topic_blob, topic);
    iggy_sdk_put_uint(&metadata_blob, partition);
    iggy_sdk_put_uint(&metadata_blob, count > 0 ? messages[count - 1].offset : 0);
    iggy_sdk_put_uint(&metadata_blob, schema);
    iggy_sdk_put_uint(&messages_blob, schema);
    iggy_sdk_put_uint(&messages_blob, count);
    for (size_t i = 0; i < count; i++) put_message_with_headers(&messages_blob, &messages[i]);
    CHECK(!topic_blob.failed && !metadata_blob.failed && !messages_blob.failed);
    return (struct host_blobs){topic_blob.data, metadata_blob.data, messages_blob.data,
                               topic_blob.len,  metadata_blob.len,  messages_blob.len};
}

void host_free_blobs(struct host_blobs *blobs) {
    free(blobs->topic);
    free(blobs->metadata);
    free(blobs->messages);
}

int32_t host_consume(const iggy_sink_api *api, uint32_t id, const struct host_blobs *blobs) {
    return api->consume(id, blobs->topic, blobs->topic_len, blobs->metadata, blobs->metadata_len,
                        blobs->messages, blobs->messages_len);
}

/* ---- Files ----------------------------------------------------------------- */

static char directory[64];

static void remove_directory(void) {
    DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        char *path = host_path(entry->d_name);
        unlink(path);
        free(path);
    }
    if (dir) closedir(dir);
    rmdir(directory);
}

const char *host_directory(void) {
    if (!directory[0]) {
        strcpy(directory, "/tmp/iggy-plugin-test-XXXXXX");
        CHECK(mkdtemp(directory));
        atexit(remove_directory);
    }
    return directory;
}

char *host_path(const char *name) {
    size_t size = strlen(host_directory()) + strlen(name) + 2;
    char *path = malloc(size);
    CHECK(path);
    snprintf(path, size, "%s/%s", host_directory(), name);
    return path;
}

static void put_file(const char *path, const char *text, const char *mode) {
    FILE *file = fopen(path, mode);
    CHECK(file);
    CHECK(fputs(text, file) >= 0);
    CHECK_EQUAL(fclose(file), 0);
}

void host_write_file(const char *path, const char *text) { put_file(path, text, "w"); }

void host_append_file(const char *path, const char *text) { put_file(path, text, "a"); }

char *host_read_file(const char *path) {
    struct iggy_buffer text = {0};
    FILE *file = fopen(path, "r");
    CHECK(file);
    char bytes[4096];
    for (size_t got; (got = fread(bytes, 1, sizeof bytes, file)) > 0;) {
        iggy_sdk_buffer_append(&text, bytes, got);
    }
    fclose(file);
    iggy_sdk_buffer_byte(&text, 0);
    CHECK(!text.failed);
    return (char *)text.data;
}
