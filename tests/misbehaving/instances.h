/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The book of instances that sink.c and source.c keep. A place is taken from open to
 * close, whatever open returned, and is not given up while a call is in it.
 */
#ifndef INSTANCES_H
#define INSTANCES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "connector.h"

/* A plugin is compiled with -DSIN=<one of sins.h>, and every place where it could go
 * wrong asks for its own. */
#include "sins.h"
#define COMMITS(sin) (SIN == (sin))

enum { PLACES = 64 };

struct instance {
    bool used;
    uint32_t id;
    int32_t opened; /* what open returned */
    bool closing;
    unsigned calls; /* that are in it */
    pthread_t thread;
    bool started;
    bool stop;
    uint64_t batch; /* in flight, or the last one */
    bool pending;
    int result;
    unsigned nacks;
    bool ended;
    uint64_t produced;
    uint64_t acknowledged;
    iggy_send_fn *send;
    iggy_send_v2_fn *send_v2;
};

static struct instance instances[PLACES];
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static iggy_log_fn *host_log;

static inline void say(const char *text) {
    static const char target[] = "misbehaving";
    host_log(IGGY_LOG_ERROR, (const uint8_t *)target, sizeof target - 1, (const uint8_t *)text,
             strlen(text));
}

static inline void pause_ms(long ms) {
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0) {
    }
}

static inline struct instance *find(uint32_t id) {
    for (int i = 0; i < PLACES; i++)
        if (instances[i].used && instances[i].id == id) return &instances[i];
    return NULL;
}

/* A new place; NULL when the id is in use. */
static inline struct instance *reserve(uint32_t id) {
    struct instance *place = NULL;
    pthread_mutex_lock(&mutex);
    for (int i = PLACES - 1; i >= 0; i--)
        if (!instances[i].used) place = &instances[i];
    struct instance *other = find(id);
    if (other != NULL && COMMITS(TAKES_DUPLICATE_ID)) place = other;
    else if (other != NULL) place = NULL;
    if (place != NULL) *place = (struct instance){.used = true, .id = id, .result = -1};
    pthread_mutex_unlock(&mutex);
    return place;
}

/* Enters an instance that is open; NULL when there is none. */
static inline struct instance *enter(uint32_t id) {
    pthread_mutex_lock(&mutex);
    struct instance *instance = find(id);
    if (instance != NULL && (instance->opened != IGGY_OK || instance->closing)) instance = NULL;
    if (instance != NULL) instance->calls++;
    pthread_mutex_unlock(&mutex);
    return instance;
}

static inline void leave(struct instance *instance) {
    pthread_mutex_lock(&mutex);
    instance->calls--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* Keeps new calls out and waits for those that are in it; NULL for an unknown id. */
static inline struct instance *begin_close(uint32_t id) {
    pthread_mutex_lock(&mutex);
    struct instance *instance = find(id);
    if (instance != NULL && instance->closing) instance = NULL;
    if (instance != NULL) {
        instance->closing = true;
        while (instance->calls > 0 && !COMMITS(CLOSES_DURING_CONSUME))
            pthread_cond_wait(&changed, &mutex);
    }
    pthread_mutex_unlock(&mutex);
    return instance;
}

static inline int32_t end_close(struct instance *instance) {
    pthread_mutex_lock(&mutex);
    instance->used = false;
    int32_t code = instance->opened == IGGY_INVALID ? IGGY_INVALID : IGGY_OK;
    pthread_mutex_unlock(&mutex);
    return code;
}

/* The plugin takes no configuration, or an empty one. */
static inline bool valid_config(const uint8_t *config, size_t len) {
    return (len == 4 && memcmp(config, "null", 4) == 0) ||
           (len == 2 && memcmp(config, "{}", 2) == 0);
}

#endif
