// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* For the time of a call SIGURG is blocked: Go sends it to its threads to preempt them,
 * and a plugin in a sleep would see EINTR. Afterwards the thread has the mask that it
 * had before, so that a plugin that blocks signals takes no thread of the host along. */
#define _GNU_SOURCE
#include "calls.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>

#include "_cgo_export.h"

static sigset_t enter(void) {
    sigset_t preemption, before;
    sigemptyset(&preemption);
    sigaddset(&preemption, SIGURG);
    pthread_sigmask(SIG_BLOCK, &preemption, &before);
    return before;
}

static void leave(sigset_t before) { pthread_sigmask(SIG_SETMASK, &before, NULL); }

void *host_load(const char *path, char *error, size_t error_size) {
    sigset_t before = enter(); /* constructors of the library run */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    leave(before);
    if (library == NULL) snprintf(error, error_size, "%s", dlerror());
    return library;
}

const char *host_version(iggy_sink_version_fn *version) {
    sigset_t before = enter();
    const char *text = version();
    leave(before);
    return text;
}

int32_t host_sink_open(iggy_sink_open_fn *open, uint32_t id, const uint8_t *config, size_t config_len) {
    sigset_t before = enter();
    int32_t code = open(id, config, config_len, hostLog);
    leave(before);
    return code;
}

int32_t host_sink_consume(iggy_sink_consume_fn *consume, uint32_t id, const uint8_t *topic, size_t topic_len,
                          const uint8_t *metadata, size_t metadata_len, const uint8_t *messages, size_t messages_len) {
    sigset_t before = enter();
    int32_t code = consume(id, topic, topic_len, metadata, metadata_len, messages, messages_len);
    leave(before);
    return code;
}

int32_t host_source_open(iggy_source_open_fn *open, uint32_t id, const uint8_t *config, size_t config_len,
                         const uint8_t *state, size_t state_len) {
    sigset_t before = enter();
    int32_t code = open(id, config, config_len, state, state_len, hostLog);
    leave(before);
    return code;
}

int32_t host_source_handle(iggy_source_handle_fn *handle, uint32_t id) {
    sigset_t before = enter();
    int32_t code = handle(id, hostSendV1);
    leave(before);
    return code;
}

int32_t host_source_handle_v2(iggy_source_handle_v2_fn *handle, uint32_t id) {
    sigset_t before = enter();
    int32_t code = handle(id, hostSendV2);
    leave(before);
    return code;
}

int32_t host_source_batch_result(iggy_source_batch_result_fn *batch_result, uint32_t id, uint64_t batch_id,
                                 uint8_t result) {
    sigset_t before = enter();
    int32_t code = batch_result(id, batch_id, result);
    leave(before);
    return code;
}

int32_t host_close(iggy_sink_close_fn *close, uint32_t id) {
    sigset_t before = enter();
    int32_t code = close(id);
    leave(before);
    return code;
}
