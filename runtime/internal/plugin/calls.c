// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* For the time of a call SIGURG is blocked: Go sends it to its threads to preempt them,
 * and a plugin in a sleep would see EINTR. Afterwards the thread has the mask that it
 * had before, so that a plugin that blocks signals takes no thread of the host along.
 *
 * The thread also remembers for which instance it is called: the log callback does not
 * say who logs, but most plugins log on the thread of the call. */
#define _GNU_SOURCE
#include "calls.h"

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "_cgo_export.h"
#include "timerslack.h"

static _Thread_local uint32_t current_instance; /* 0: none */

struct outside {
    sigset_t signals;
    uint32_t instance; /* of the call around this one: a callback may lead to another */
    uint64_t start_ns;
    uint64_t cpu_ns; /* of the thread so far */
};

static uint64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static struct outside enter(uint32_t id) {
    struct outside before = {.instance = current_instance};
    sigset_t preemption;
    sigemptyset(&preemption);
    sigaddset(&preemption, SIGURG);
    pthread_sigmask(SIG_BLOCK, &preemption, &before.signals);
    current_instance = id;
    before.start_ns = clock_ns(CLOCK_MONOTONIC);
    before.cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    return before;
}

static struct host_result leave(struct outside before, int32_t code) {
    uint64_t cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - before.cpu_ns;
    uint64_t took_ns = clock_ns(CLOCK_MONOTONIC) - before.start_ns; /* and more than cpu_ns */
    struct host_result result = {code, cpu_ns, took_ns > cpu_ns ? took_ns - cpu_ns : 0};
    current_instance = before.instance;
    pthread_sigmask(SIG_SETMASK, &before.signals, NULL);
    return result;
}

static void log_callback(uint8_t level, const uint8_t *target, size_t target_len,
                         const uint8_t *message, size_t message_len) {
    hostLog(current_instance, level, target, target_len, message, message_len);
}

/* Calls that start threads, which sleep as they would in any other process. */
static struct outside enter_to_start(uint32_t id) {
    host_timer_slack_of_plugins();
    return enter(id);
}

static struct host_result leave_started(struct outside before, int32_t code) {
    struct host_result result = leave(before, code);
    host_timer_slack_of_host();
    return result;
}

void *host_load(const char *path, char *error, size_t error_size) {
    struct outside before = enter_to_start(0); /* constructors of the library run */
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    leave_started(before, 0);
    if (library == NULL) snprintf(error, error_size, "%s", dlerror());
    return library;
}

const char *host_version(iggy_sink_version_fn *version) {
    struct outside before = enter(0);
    const char *text = version();
    leave(before, 0);
    return text;
}

struct host_result host_sink_open(iggy_sink_open_fn *open, uint32_t id, const uint8_t *config,
                                  size_t config_len) {
    struct outside before = enter_to_start(id);
    int32_t code = open(id, config, config_len, log_callback);
    return leave_started(before, code);
}

struct host_result host_sink_consume(iggy_sink_consume_fn *consume, uint32_t id,
                                     const uint8_t *topic, size_t topic_len,
                                     const uint8_t *metadata, size_t metadata_len,
                                     const uint8_t *messages, size_t messages_len) {
    struct outside before = enter(id);
    int32_t code = consume(id, topic, topic_len, metadata, metadata_len, messages, messages_len);
    return leave(before, code);
}

struct host_result host_source_open(iggy_source_open_fn *open, uint32_t id, const uint8_t *config,
                                    size_t config_len, const uint8_t *state, size_t state_len) {
    struct outside before = enter_to_start(id);
    int32_t code = open(id, config, config_len, state, state_len, log_callback);
    return leave_started(before, code);
}

struct host_result host_source_handle(iggy_source_handle_fn *handle, uint32_t id) {
    struct outside before = enter_to_start(id);
    int32_t code = handle(id, hostSendV1);
    return leave_started(before, code);
}

struct host_result host_source_handle_v2(iggy_source_handle_v2_fn *handle, uint32_t id) {
    struct outside before = enter_to_start(id);
    int32_t code = handle(id, hostSendV2);
    return leave_started(before, code);
}

struct host_result host_source_batch_result(iggy_source_batch_result_fn *batch_result, uint32_t id,
                                            uint64_t batch_id, uint8_t result) {
    struct outside before = enter(id);
    int32_t code = batch_result(id, batch_id, result);
    return leave(before, code);
}

struct host_result host_close(iggy_sink_close_fn *close, uint32_t id) {
    struct outside before = enter(id);
    int32_t code = close(id);
    return leave(before, code);
}
