/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A sink that keeps the contract, but for the one sin it is compiled with.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "instances.h"
#include "iggy_connector_sdk.h"

static void hang(void) {
    for (;;) pause_ms(1000);
}

__attribute__((constructor)) static void on_load(void) {
    if (COMMITS(CRASHES_IN_CONSTRUCTOR)) abort();
    if (COMMITS(HANGS_IN_CONSTRUCTOR)) hang();
}

/* ---- open ----------------------------------------------------------------- */

static void on_signal(int number) { (void)number; }

static void install_handler(int flags) {
    struct sigaction action = {0};
    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART | flags;
    sigaction(SIGUSR2, &action, NULL);
}

static void *wait_for_ever(void *unused) {
    hang();
    return unused;
}

static void leak_thread(void) {
    pthread_t thread;
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    if (pthread_create(&thread, &small, wait_for_ever, NULL) == 0) pthread_detach(thread);
    pthread_attr_destroy(&small);
}

static void *volatile leaked;

static void leak_memory(void) {
    leaked = malloc(2000);
    if (leaked != NULL) memset(leaked, 1, 2000);
}

static volatile unsigned depth;

static void overflow_stack(volatile char *above) {
    volatile char frame[4096];
    frame[0] = *above;
    depth++;
    if (depth > 0) overflow_stack(frame);
    frame[1] = frame[0]; /* keeps the call from becoming a jump */
}

static void sin_in_open(void) {
    char start = 0;
    switch (SIN) {
    case CALLS_EXIT:
        exit(0);
    case CHANGES_DIRECTORY:
        if (chdir("/") != 0) abort();
        break;
    case CHANGES_UMASK:
        umask(0123);
        break;
    case CRASHES_IN_OPEN:
        abort();
    case HANGS_IN_OPEN:
        hang();
        break;
    case INSTALLS_HANDLER:
        install_handler(SA_ONSTACK);
        break;
    case INSTALLS_HANDLER_WITHOUT_ONSTACK:
        install_handler(0);
        break;
    case LEAKS_DESCRIPTORS:
        if (open("/dev/null", O_RDONLY | O_CLOEXEC) < 0) abort();
        break;
    case LEAKS_MEMORY:
        leak_memory();
        break;
    case LEAKS_THREADS:
        leak_thread();
        break;
    case LOGS_NO_UTF8:
        say("\xff\xfe");
        break;
    case OVERFLOWS_STACK:
        overflow_stack(&start);
        break;
    default:
        break;
    }
}

static int32_t open_code(const uint8_t *config, size_t len) {
    if (COMMITS(RETURNS_UNKNOWN_CODE_FROM_OPEN)) return 7;
    if (valid_config(config, len) || (COMMITS(ACCEPTS_SOME_BROKEN_CONFIG) && len < 16))
        return IGGY_OK;
    if (!COMMITS(FAILS_SILENTLY)) say("the configuration has to be {}");
    return IGGY_INVALID;
}

IGGY_EXPORT int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len,
                                   iggy_log_fn *log) {
    host_log = log;
    struct instance *instance = reserve(id);
    if (instance == NULL) {
        say("the id is in use");
        return IGGY_INVALID;
    }
    sin_in_open();
    instance->opened = open_code(config, config_len);
    return instance->opened;
}

/* ---- consume -------------------------------------------------------------- */

/* What a reader does that does not compare the count with the bytes that are left. */
static void trust_count(const uint8_t *messages, size_t len) {
    uint64_t count = 0;
    for (size_t i = 1, shift = 0; i < len && shift < 64; i++, shift += 7) {
        count |= (uint64_t)(messages[i] & 0x7f) << shift;
        if (messages[i] < 0x80) break;
    }
    if (count > len) abort(); /* for the allocation that fails */
}

static int32_t consume_batch(iggy_bytes topic, iggy_bytes metadata, iggy_bytes messages) {
    iggy_reader topic_reader = iggy_reader_over(topic.data, topic.len);
    iggy_reader metadata_reader = iggy_reader_over(metadata.data, metadata.len);
    iggy_reader messages_reader = iggy_reader_over(messages.data, messages.len);
    iggy_read_topic_metadata(&topic_reader);
    iggy_read_messages_metadata(&metadata_reader);
    iggy_read_messages(&messages_reader);
    if (COMMITS(ACCEPTS_UNKNOWN_SCHEMA)) metadata_reader.failed = messages_reader.failed = false;
    bool broken = topic_reader.failed || metadata_reader.failed || messages_reader.failed;
    return broken && !COMMITS(ACCEPTS_BROKEN_BATCHES) ? IGGY_INVALID : IGGY_OK;
}

static void sin_in_consume(struct instance *instance, const uint8_t *messages, size_t len) {
    switch (SIN) {
    case CLOSES_DURING_CONSUME:
        pause_ms(1500);
        break;
    case CONSUMES_SLOWLY:
        pause_ms(1200);
        break;
    case CRASHES_IN_CONSUME:
        abort();
    case CRASHES_ON_SECOND_THREAD:
        pause_ms(20);
        if (instance->calls > 1) abort();
        break;
    case HANGS_IN_CONSUME:
        hang();
        break;
    case TRUSTS_COUNTS:
        trust_count(messages, len);
        break;
    default:
        break;
    }
}

IGGY_EXPORT int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,
                                      const uint8_t *metadata, size_t metadata_len,
                                      const uint8_t *messages, size_t messages_len) {
    struct instance *instance = enter(id);
    if (instance == NULL) return COMMITS(CONSUMES_FOR_UNKNOWN_ID) ? IGGY_OK : IGGY_INVALID;
    sin_in_consume(instance, messages, messages_len);
    int32_t code =
        consume_batch((iggy_bytes){topic, topic_len}, (iggy_bytes){metadata, metadata_len},
                      (iggy_bytes){messages, messages_len});
    if (COMMITS(RETURNS_UNKNOWN_CODE)) code = 7;
    if (COMMITS(FAILS_TO_CONSUME)) code = IGGY_FAILED;
    leave(instance);
    return code;
}

/* ---- close, version and what must not be there ---------------------------- */

#ifndef SIN_LACKS_CLOSE
IGGY_EXPORT int32_t iggy_sink_close(uint32_t id) {
    if (COMMITS(HANGS_IN_CLOSE)) hang();
    struct instance *instance = begin_close(id);
    if (instance == NULL) return COMMITS(CLOSES_TWICE) ? IGGY_OK : IGGY_INVALID;
    return end_close(instance);
}
#endif

IGGY_EXPORT const char *iggy_sink_version(void) {
    if (COMMITS(CRASHES_IN_VERSION)) abort();
    return COMMITS(LACKS_VERSION_TEXT) ? NULL : "1.0.0";
}

#ifdef SIN_EXPORTS_MORE
IGGY_EXPORT int helper_of_this_plugin(void);
int helper_of_this_plugin(void) { return 0; }
#endif

#ifdef SIN_EXPORTS_LIBC_NAME
#include <syslog.h>
IGGY_EXPORT void closelog(void) {}
#endif

#ifdef SIN_NEEDS_NEWER_GLIBC
__attribute__((used)) static uint32_t (*const newer)(void) = arc4random; /* since 2.36 */
#endif

#ifdef SIN_NEEDS_FUTURE_GLIBC
extern int function_of_the_future(void); /* future_libc.c */
__attribute__((used)) static int (*const future)(void) = function_of_the_future;
#endif
