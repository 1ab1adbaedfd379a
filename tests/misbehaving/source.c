/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A source of both generations that keeps the contract, but for the one sin it is compiled
 * with. It counts: each batch is one number as JSON, its state the last number as text.
 */
#include <stdio.h>
#include <stdlib.h>

#include "instances.h"

enum { MESSAGE_MAX = 64 };

/* ---- Waiting -------------------------------------------------------------- */

static struct timespec after_ms(long ms) {
    struct timespec at;
    clock_gettime(CLOCK_REALTIME, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += ms % 1000 * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* Waits for the result of the batch in flight; what is none in time is a Nack. */
static int await_result(struct instance *source) {
    struct timespec until = after_ms(IGGY_BATCH_RESULT_TIMEOUT_MS);
    pthread_mutex_lock(&mutex);
    while (source->pending && (!source->stop || COMMITS(WAITS_FOR_RESULT_IN_CLOSE))) {
        if (COMMITS(WAITS_FOR_RESULT_FOR_EVER)) pthread_cond_wait(&changed, &mutex);
        else if (pthread_cond_timedwait(&changed, &mutex, &until) != 0) break;
    }
    int result = source->pending ? IGGY_BATCH_NACK : source->result;
    source->pending = false;
    pthread_mutex_unlock(&mutex);
    return result;
}

/* A pause that a close ends. */
static void rest(struct instance *source, long ms) {
    struct timespec until = after_ms(ms);
    pthread_mutex_lock(&mutex);
    while (!source->stop && pthread_cond_timedwait(&changed, &mutex, &until) == 0) {
    }
    pthread_mutex_unlock(&mutex);
}

static bool stopped(struct instance *source) {
    pthread_mutex_lock(&mutex);
    bool stop = source->stop;
    pthread_mutex_unlock(&mutex);
    return stop;
}

/* ---- Producing ------------------------------------------------------------ */

/* ProducedMessages of wire.md: schema, one message with its payload alone, state. */
static size_t encode(const struct instance *source, uint8_t *out) {
    char number[24];
    size_t len = (size_t)snprintf(number, sizeof number, "%llu",
                                  (unsigned long long)source->produced),
           at = 0;
    out[at++] = IGGY_SCHEMA_JSON;
    out[at++] = 1;                             /* count */
    for (int i = 0; i < 5; i++) out[at++] = 0; /* id, checksum, two times, headers: absent */
    out[at++] = (uint8_t)len;
    memcpy(out + at, number, len);
    at += len;
    out[at++] = 1; /* a state */
    out[at++] = (uint8_t)len;
    memcpy(out + at, number, len);
    return at + len;
}

static void poll_next(struct instance *source) {
    if (COMMITS(CRASHES_IN_POLL)) abort();
    if (COMMITS(POLLS_SLOWLY)) pause_ms(3000);
    source->produced = source->acknowledged + 1;
}

static int32_t send_batch(struct instance *source) {
    uint8_t bytes[MESSAGE_MAX];
    size_t len = encode(source, bytes);
    if (COMMITS(SENDS_GARBAGE)) memset(bytes, 0xff, len);
    uint32_t id = source->id + (COMMITS(SENDS_FOR_OTHER_ID) ? 1 : 0);
    if (source->send != NULL) {
        source->send(id, bytes, len);
        return IGGY_OK;
    }
    pthread_mutex_lock(&mutex);
    uint64_t batch = source->batch += COMMITS(NUMBERS_BATCHES_WRONGLY) ? 2 : 1;
    source->pending = true;
    pthread_mutex_unlock(&mutex);
    int32_t code = source->send_v2(id, batch, bytes, len);
    if (COMMITS(SENDS_BEFORE_RESULT)) source->send_v2(id, batch + 1, bytes, len);
    return code;
}

/* The fate of the batch that was just sent. */
static int fate(struct instance *source, int32_t sent) {
    if (source->send != NULL) return IGGY_BATCH_ACK;
    if (sent != IGGY_OK && !COMMITS(STOPS_AFTER_REFUSAL)) {
        pthread_mutex_lock(&mutex);
        source->pending = false;
        pthread_mutex_unlock(&mutex);
        return IGGY_BATCH_NACK;
    }
    return await_result(source);
}

static void pause_after_nack(struct instance *source) {
    long ms = IGGY_NACK_BACKOFF_MS << (source->nacks - 1);
    if (ms > IGGY_NACK_BACKOFF_MAX_MS) ms = IGGY_NACK_BACKOFF_MAX_MS;
    rest(source, COMMITS(WAITS_TOO_SHORT_AFTER_NACK) ? 1 : ms);
}

/* Applies the fate; false: the source has ended. */
static bool apply(struct instance *source, int result) {
    if (result == IGGY_BATCH_ACK) {
        source->acknowledged = source->produced;
        source->nacks = 0;
        return !COMMITS(STOPS_AFTER_ACK) || source->send != NULL;
    }
    if (COMMITS(SKIPS_NACKED_RECORDS)) source->acknowledged = source->produced;
    if (COMMITS(STOPS_AFTER_NACK)) return false;
    source->nacks++;
    if (source->nacks == IGGY_MAX_CONSECUTIVE_NACKS && !COMMITS(GOES_ON_AFTER_FIVE_NACKS))
        return false;
    pause_after_nack(source);
    return true;
}

static void *produce(void *self) {
    struct instance *source = self;
    bool going_on = true;
    while (going_on && !stopped(source)) {
        poll_next(source);
        if (stopped(source)) break;
        going_on = apply(source, fate(source, send_batch(source)));
        rest(source, 1);
    }
    pthread_mutex_lock(&mutex);
    source->ended = true;
    pthread_mutex_unlock(&mutex);
    return NULL;
}

/* ---- The exported functions ----------------------------------------------- */

/* False: the state was not written by this plugin. */
static bool read_state(struct instance *source, const uint8_t *state, size_t len) {
    if (state == NULL || len == 0) return true;
    if (COMMITS(REFUSES_OWN_STATE)) return false;
    for (size_t i = 0; i < len; i++) {
        if (state[i] < '0' || state[i] > '9') return COMMITS(TAKES_BROKEN_STATE);
        source->acknowledged = source->acknowledged * 10 + state[i] - '0';
    }
    return true;
}

IGGY_EXPORT int32_t iggy_source_open(uint32_t id, const uint8_t *config, size_t config_len,
                                     const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    host_log = log;
    struct instance *source = reserve(id);
    if (source == NULL) {
        say("the id is in use");
        return IGGY_INVALID;
    }
    if (!valid_config(config, config_len)) {
        say("the configuration has to be {}");
        return source->opened = IGGY_INVALID;
    }
    if (!read_state(source, state, state_len)) {
        say("the state was not written by this plugin");
        return source->opened = IGGY_FAILED;
    }
    return source->opened = IGGY_OK;
}

static int32_t start(uint32_t id, iggy_send_fn *send, iggy_send_v2_fn *send_v2) {
    struct instance *source = enter(id);
    if (source == NULL) return IGGY_INVALID;
    int32_t code = source->started ? IGGY_INVALID : IGGY_OK;
    if (!source->started) {
        source->send = send;
        source->send_v2 = send_v2;
        source->started = pthread_create(&source->thread, NULL, produce, source) == 0;
        code = source->started ? IGGY_OK : IGGY_FAILED;
    }
    leave(source);
    return COMMITS(STARTS_TWICE) ? IGGY_OK : code;
}

IGGY_EXPORT int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send) {
    return start(id, NULL, send);
}

#ifndef SIN_LACKS_BATCH_RESULT
IGGY_EXPORT int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send) {
    return start(id, send, NULL);
}

static int32_t take_result(struct instance *source, uint64_t batch, uint8_t result) {
    if (source->ended) return IGGY_INVALID;
    if (COMMITS(ACCEPTS_LATE_RESULT) && (batch < source->batch || !source->pending)) return IGGY_OK;
    if (!source->pending) return IGGY_INVALID;
    if (batch != source->batch && !COMMITS(ACCEPTS_RESULT_FOR_OTHER_BATCH)) return IGGY_INVALID;
    bool known = result == IGGY_BATCH_ACK || result == IGGY_BATCH_NACK;
    source->result = known ? result : IGGY_BATCH_NACK;
    source->pending = false;
    bool last =
        source->result == IGGY_BATCH_NACK && source->nacks + 1 == IGGY_MAX_CONSECUTIVE_NACKS;
    if (last && !COMMITS(GOES_ON_AFTER_FIVE_NACKS)) return IGGY_INVALID;
    return known || COMMITS(ACCEPTS_UNKNOWN_RESULT) ? IGGY_OK : IGGY_INVALID;
}

IGGY_EXPORT int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result) {
    struct instance *source = enter(id);
    if (source == NULL) return COMMITS(ACCEPTS_RESULT_FOR_UNKNOWN_ID) ? IGGY_OK : IGGY_INVALID;
    pthread_mutex_lock(&mutex);
    int32_t code = take_result(source, batch_id, result);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    leave(source);
    return code;
}
#endif

static void *send_late(void *self) {
    struct instance late = *(struct instance *)self;
    free(self);
    pause_ms(200);
    send_batch(&late);
    return NULL;
}

static void sin_after_close(const struct instance *source) {
    struct instance *copy = malloc(sizeof *copy);
    pthread_t thread;
    if (copy == NULL) return;
    *copy = *source;
    if (pthread_create(&thread, NULL, send_late, copy) == 0) pthread_detach(thread);
}

IGGY_EXPORT int32_t iggy_source_close(uint32_t id) {
    struct instance *source = begin_close(id);
    if (source == NULL) return IGGY_INVALID;
    pthread_mutex_lock(&mutex);
    source->stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    if (source->started && COMMITS(ABANDONS_SEND)) pthread_detach(source->thread);
    else if (source->started) pthread_join(source->thread, NULL);
    if (COMMITS(SENDS_AFTER_CLOSE) && source->started) sin_after_close(source);
    return end_close(source);
}

IGGY_EXPORT const char *iggy_source_version(void) { return "1.0.0"; }
