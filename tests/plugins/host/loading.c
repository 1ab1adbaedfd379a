/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * loading: a sink that misbehaves while it is loaded. One of -DCRASH, -DEXIT, -DNOISE,
 * -DHANG (as long as the file exists that HANG_WHILE in the environment names),
 * -DUNDEFINED (it needs a function that nobody has), -DCRASH_IN_VERSION, -DNULL_VERSION.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "connector.h"

extern void nobody_has_this(void);

__attribute__((constructor)) static void load(void) {
#if defined CRASH
    raise(SIGSEGV);
#elif defined HANG
    while (access(getenv("HANG_WHILE"), F_OK) == 0) usleep(1000);
#elif defined EXIT
    _exit(0);
#elif defined NOISE
    puts("= loaded");
    fflush(stdout);
#elif defined UNDEFINED
    nobody_has_this();
#endif
}

int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len, iggy_log_fn *log) {
    (void)id;
    (void)config;
    (void)config_len;
    (void)log;
    return IGGY_OK;
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,
                          const uint8_t *metadata, size_t metadata_len, const uint8_t *messages,
                          size_t messages_len) {
    (void)id;
    (void)topic;
    (void)topic_len;
    (void)metadata;
    (void)metadata_len;
    (void)messages;
    (void)messages_len;
    return IGGY_OK;
}

int32_t iggy_sink_close(uint32_t id) {
    (void)id;
    return IGGY_OK;
}

const char *iggy_sink_version(void) {
#if defined CRASH_IN_VERSION
    abort();
#elif defined NULL_VERSION
    return NULL;
#else
    return "2.0.\xff";
#endif
}
