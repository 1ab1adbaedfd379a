/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * A host for unit tests of plugins: it opens an instance, feeds batches to a sink,
 * collects what a source produces and answers it. No runtime and no Iggy is needed.
 *
 * A test links the plugin's own sources and names its functions with
 * IGGY_MOCK_SINK_API or IGGY_MOCK_SOURCE_API, or loads the finished library with
 * dlopen and fills the tables of connector.h itself. The calls may come from any
 * thread; those for one source come from one at a time. Out of memory ends the test
 * program.
 */
#ifndef IGGY_CONNECTOR_MOCK_H
#define IGGY_CONNECTOR_MOCK_H

#include "iggy_connector_sdk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Log ------------------------------------------------------------------ */

/* True when a record since the last call of iggy_mock_forget_log contains `text`. */
bool iggy_mock_logged(const char *text);
void iggy_mock_forget_log(void);

/* ---- Sinks ---------------------------------------------------------------- */

#define IGGY_MOCK_SINK_API \
    { iggy_sink_open, iggy_sink_consume, iggy_sink_close, iggy_sink_version }

typedef struct iggy_mock_sink iggy_mock_sink;

/* A message to consume. What is left out is 0. */
typedef struct iggy_mock_message {
    const void *payload;
    size_t payload_len;
    const iggy_header *headers; /* NULL: none */
    size_t header_count;
    iggy_u128 id;
    uint64_t offset;
    uint64_t checksum;
    uint64_t timestamp;
    uint64_t origin_timestamp;
} iggy_mock_message;

typedef struct iggy_mock_batch {
    const char *stream;
    const char *topic;
    uint32_t partition;
    uint64_t current_offset;
    enum iggy_schema schema;
    const iggy_mock_message *messages;
    size_t count;
} iggy_mock_batch;

/* Opens an instance under a fresh id. It is to be closed whatever `code` says. */
iggy_mock_sink *iggy_mock_open_sink(const iggy_sink_api *api, const char *config, int32_t *code);
int32_t iggy_mock_consume(iggy_mock_sink *sink, const iggy_mock_batch *batch);
uint32_t iggy_mock_sink_id(const iggy_mock_sink *sink);

/* Returns what the plugin returned, and frees the sink. */
int32_t iggy_mock_close_sink(iggy_mock_sink *sink);

/* ---- Sources -------------------------------------------------------------- */

#define IGGY_MOCK_SOURCE_API                                                          \
    {                                                                                 \
        iggy_source_open, iggy_source_handle, iggy_source_close, iggy_source_version, \
            iggy_source_handle_v2, iggy_source_batch_result                           \
    }

typedef struct iggy_mock_source iggy_mock_source;

/* A batch that the source produced. */
typedef struct iggy_mock_produced {
    uint64_t batch_id; /* 0 in generation 1 */
    uint32_t schema;
    size_t count;
    const iggy_produced_message *messages;
    bool has_state;
    iggy_bytes state;
} iggy_mock_produced;

/* Opens an instance under a fresh id; `state` may be NULL. It is to be closed
 * whatever `code` says. */
iggy_mock_source *iggy_mock_open_source(const iggy_source_api *api, const char *config,
                                        const void *state, size_t state_len, int32_t *code);

/* Starts it as a host of generation 1 or 2 does. */
int32_t iggy_mock_start(iggy_mock_source *source, int generation);

/* Waits for the next batch; NULL when none comes in that time. It is valid until the
 * next call of this function, or the close. In generation 1 the source waits in its
 * send callback while a batch has not been fetched. A batch that cannot be decoded
 * ends the test program. */
const iggy_mock_produced *iggy_mock_next(iggy_mock_source *source, unsigned ms);

/* Reports the fate of a batch. */
int32_t iggy_mock_result(iggy_mock_source *source, uint64_t batch_id, uint8_t result);

/* Refuses so many of the batches that come next. */
void iggy_mock_refuse(iggy_mock_source *source, unsigned batches);
uint32_t iggy_mock_source_id(const iggy_mock_source *source);
int32_t iggy_mock_close_source(iggy_mock_source *source);

#ifdef __cplusplus
}
#endif

#endif
