/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "source_loop.h"

#include <errno.h>
#include <signal.h>
#include <time.h>

/* Tests build a library that is less patient. */
#ifndef SOURCE_LOOP_RESULT_TIMEOUT_MS
#define SOURCE_LOOP_RESULT_TIMEOUT_MS IGGY_BATCH_RESULT_TIMEOUT_MS
#endif

static struct timespec after_ms(unsigned ms) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

/* Pauses, but not beyond a close. */
static void pause_ms(struct source_loop *loop, unsigned ms) {
    struct timespec end = after_ms(ms);
    pthread_mutex_lock(&loop->mutex);
    while (!loop->closing &&
           pthread_cond_timedwait(&loop->changed, &loop->mutex, &end) != ETIMEDOUT) {
    }
    pthread_mutex_unlock(&loop->mutex);
}

static bool running(struct source_loop *loop) {
    pthread_mutex_lock(&loop->mutex);
    bool yes = !loop->closing && !loop->given_up;
    pthread_mutex_unlock(&loop->mutex);
    return yes;
}

/* Applies the result of the pending batch; the mutex is held. It runs on the
 * host's thread or on the loop's, whichever has the result. */
static int32_t apply(struct source_loop *loop, bool acknowledged) {
    loop->pending = false;
    if (acknowledged) {
        loop->steps->acknowledge(loop->source);
        loop->nacks = 0;
    } else {
        loop->steps->go_back(loop->source);
        loop->given_up = ++loop->nacks == IGGY_MAX_CONSECUTIVE_NACKS;
    }
    pthread_cond_signal(&loop->changed);
    return loop->given_up ? IGGY_INVALID : IGGY_OK;
}

static unsigned backoff_ms(unsigned nacks) {
    unsigned ms = IGGY_NACK_BACKOFF_MS;
    while (--nacks > 0 && ms < IGGY_NACK_BACKOFF_MAX_MS) ms *= 2;
    return ms < IGGY_NACK_BACKOFF_MAX_MS ? ms : IGGY_NACK_BACKOFF_MAX_MS;
}

/* Waits for the result of the batch that the host accepted; the mutex is held. */
static void await_result(struct source_loop *loop) {
    struct timespec end = after_ms(SOURCE_LOOP_RESULT_TIMEOUT_MS);
    int waited = 0;
    while (loop->pending && !loop->closing && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&loop->changed, &loop->mutex, &end);
    }
}

static void deliver_v2(struct source_loop *loop, const struct source_batch *batch) {
    pthread_mutex_lock(&loop->mutex);
    uint64_t batch_id = ++loop->batch_id;
    loop->pending = true; /* the result may come before the callback returns */
    pthread_mutex_unlock(&loop->mutex);

    int32_t code = loop->send_v2(loop->id, batch_id, batch->bytes, batch->len);

    pthread_mutex_lock(&loop->mutex);
    if (code == IGGY_OK) await_result(loop);
    bool unanswered = loop->pending;
    if (unanswered) apply(loop, false);
    unsigned nacks = loop->nacks;
    bool closing = loop->closing;
    bool given_up = loop->given_up;
    pthread_mutex_unlock(&loop->mutex);

    if (closing) return;
    if (unanswered) {
        log_printf(&loop->log, IGGY_LOG_WARN, "batch %llu %s, it will be produced again",
                   (unsigned long long)batch_id,
                   code == IGGY_OK ? "got no result in time" : "was refused");
    }
    if (given_up) {
        log_printf(&loop->log, IGGY_LOG_ERROR, "%d batches in a row failed, giving up",
                   IGGY_MAX_CONSECUTIVE_NACKS);
    } else if (nacks > 0) {
        pause_ms(loop, backoff_ms(nacks));
    }
}

/* Generation 1 has no result: what was handed over counts as stored. */
static void deliver_v1(struct source_loop *loop, const struct source_batch *batch) {
    loop->send(loop->id, batch->bytes, batch->len);
    loop->steps->acknowledge(loop->source);
}

static void *run(void *argument) {
    struct source_loop *loop = argument;
    while (running(loop)) {
        struct source_batch batch = {NULL, 0};
        unsigned idle_ms = 0;
        if (!loop->steps->poll(loop->source, &batch, &idle_ms)) pause_ms(loop, idle_ms);
        else if (loop->send_v2) deliver_v2(loop, &batch);
        else deliver_v1(loop, &batch);
    }
    return NULL;
}

/* Signals are the host's business: the new thread blocks them all. */
static int start_thread(struct source_loop *loop) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&loop->thread, NULL, run, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

bool source_loop_init(struct source_loop *loop, uint32_t id, const struct source_steps *steps,
                      void *source, struct log log) {
    *loop = (struct source_loop){.id = id, .steps = steps, .source = source, .log = log};
    pthread_condattr_t clock;
    if (pthread_condattr_init(&clock) != 0) return false;
    /* Pauses must not depend on somebody setting the time of day. */
    bool ok = pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(&loop->changed, &clock) == 0;
    pthread_condattr_destroy(&clock);
    return ok && pthread_mutex_init(&loop->mutex, NULL) == 0;
}

int32_t source_loop_start(struct source_loop *loop, iggy_send_fn *send,
                          iggy_send_v2_fn *send_v2) {
    int32_t code = IGGY_INVALID;
    pthread_mutex_lock(&loop->mutex);
    if (!loop->started) {
        loop->send = send;
        loop->send_v2 = send_v2;
        code = start_thread(loop) == 0 ? IGGY_OK : IGGY_FAILED;
        loop->started = code == IGGY_OK;
    }
    pthread_mutex_unlock(&loop->mutex);
    return code;
}

int32_t source_loop_result(struct source_loop *loop, uint64_t batch_id, uint8_t result) {
    int32_t code = IGGY_INVALID;
    pthread_mutex_lock(&loop->mutex);
    if (loop->pending && loop->batch_id == batch_id) {
        code = apply(loop, result == IGGY_BATCH_ACK);
        if (result > IGGY_BATCH_NACK) code = IGGY_INVALID;
    }
    pthread_mutex_unlock(&loop->mutex);
    return code;
}

void source_loop_stop(struct source_loop *loop) {
    pthread_mutex_lock(&loop->mutex);
    loop->closing = true;
    pthread_cond_signal(&loop->changed);
    pthread_mutex_unlock(&loop->mutex);
    if (loop->started) pthread_join(loop->thread, NULL);
    pthread_cond_destroy(&loop->changed);
    pthread_mutex_destroy(&loop->mutex);
}
