// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* Calls into plugins: Go cannot call a C function pointer itself. Each call keeps the
 * signal mask of its thread, see calls.c. */
#ifndef HOST_CALLS_H
#define HOST_CALLS_H

#include "connector.h"

/* cgo has no const of its own; with this name the exported callbacks get the types of
 * connector.h. */
typedef const uint8_t host_byte;

/* NULL when it fails; then error holds the reason. */
void *host_load(const char *path, char *error, size_t error_size);

/* What a function returned, the CPU time that it took on its thread, and how long that thread did
 * not run meanwhile. */
struct host_result {
    int32_t code;
    uint64_t cpu_ns;
    uint64_t waited_ns;
};

const char *host_version(iggy_sink_version_fn *version);
struct host_result host_sink_open(iggy_sink_open_fn *open, uint32_t id, const uint8_t *config,
                                  size_t config_len);
struct host_result host_sink_consume(iggy_sink_consume_fn *consume, uint32_t id,
                                     const uint8_t *topic, size_t topic_len,
                                     const uint8_t *metadata, size_t metadata_len,
                                     const uint8_t *messages, size_t messages_len);
struct host_result host_source_open(iggy_source_open_fn *open, uint32_t id, const uint8_t *config,
                                    size_t config_len, const uint8_t *state, size_t state_len);
struct host_result host_source_handle(iggy_source_handle_fn *handle, uint32_t id);
struct host_result host_source_handle_v2(iggy_source_handle_v2_fn *handle, uint32_t id);
struct host_result host_source_batch_result(iggy_source_batch_result_fn *batch_result, uint32_t id,
                                            uint64_t batch_id, uint8_t result);
/* Of a source too: the types are the same. */
struct host_result host_close(iggy_sink_close_fn *close, uint32_t id);

#endif
