/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* A host in miniature: loads one plugin and drives it through the ABI alone. */
#ifndef TESTS_PLUGINS_HOST_H
#define TESTS_PLUGINS_HOST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connector.h"

/* ---- Loading --------------------------------------------------------------- */

iggy_source_api host_load_source(const char *path);
iggy_sink_api host_load_sink(const char *path);

/* Collects records; pass it to open. */
void host_log(uint8_t level, const uint8_t *target, size_t target_len, const uint8_t *message,
              size_t message_len);

/* Waits until a record since the last call of it contains the text; false when none came. */
bool host_logged(const char *text);

int32_t host_open_source(const iggy_source_api *api, uint32_t id, const char *config);
int32_t host_open_sink(const iggy_sink_api *api, uint32_t id, const char *config);

/* ---- Receiving from sources ------------------------------------------------ */

/* A batch that a source handed over, copied and decoded. */
struct host_batch {
    uint32_t id;       /* of the instance */
    uint64_t batch_id; /* 0 in generation 1 */
    uint32_t schema;
    size_t count;
    char **payloads; /* NUL-terminated */
    size_t *lens;
    bool has_state;
    uint8_t *state;
    size_t state_len;
};

/* The callbacks to start a source with. */
void host_send(uint32_t id, const uint8_t *messages, size_t len);
int32_t host_send_v2(uint32_t id, uint64_t batch_id, const uint8_t *messages, size_t len);

/* What host_send_v2 does besides keeping the batch. It is called before it returns. */
extern int32_t (*host_on_send)(uint32_t id, uint64_t batch_id);

/* Waits for the next batch; NULL when none came for minutes. */
struct host_batch *host_next_batch(void);

/* NULL unless a batch comes within so many milliseconds. */
struct host_batch *host_next_batch_within(unsigned ms);

void host_free_batch(struct host_batch *batch);

/* ---- Feeding sinks --------------------------------------------------------- */

struct host_header {
    uint8_t key_kind;
    const void *key;
    size_t key_len;
    uint8_t value_kind;
    const void *value;
    size_t value_len;
};

struct host_message {
    uint64_t offset;
    uint64_t timestamp;
    const struct host_header *headers;
    size_t header_count;
    const void *payload;
    size_t payload_len;
};

/* The three blobs of a consume call. */
struct host_blobs {
    uint8_t *topic, *metadata, *messages;
    size_t topic_len, metadata_len, messages_len;
};

struct host_blobs host_encode(const char *stream, const char *topic, uint32_t partition,
                              uint8_t schema, const struct host_message *messages, size_t count);
void host_free_blobs(struct host_blobs *blobs);
int32_t host_consume(const iggy_sink_api *api, uint32_t id, const struct host_blobs *blobs);

/* ---- Files ----------------------------------------------------------------- */

/* A directory for this program's files, removed at exit, and paths in it. */
const char *host_directory(void);
char *host_path(const char *name); /* the caller frees it */

void host_write_file(const char *path, const char *text);
void host_append_file(const char *path, const char *text);
char *host_read_file(const char *path); /* NUL-terminated; the caller frees it */

#endif
