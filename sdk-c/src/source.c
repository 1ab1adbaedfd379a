/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Source instances: the producing thread of each, for both generations, and the
 * delivery contract that connector.h describes at iggy_source_handle_v2_fn.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "code.h"
#include "instances.h"
#include "log.h"
#include "producer.h"

/* Tests build a library that is less patient. */
#ifndef IGGY_SDK_RESULT_TIMEOUT_MS
#define IGGY_SDK_RESULT_TIMEOUT_MS IGGY_BATCH_RESULT_TIMEOUT_MS
#endif
#ifndef IGGY_SDK_BACKOFF_MAX_MS
#define IGGY_SDK_BACKOFF_MAX_MS IGGY_NACK_BACKOFF_MAX_MS
#endif

enum { IDLE_PAUSE_MS = 10 };

struct source {
    uint32_t id;
    const iggy_source_plugin *plugin;
    void *object;             /* the plugin's */
    iggy_producer producer;   /* the thread's, as the next two */
    iggy_bytes batch;         /* the bytes of `producer` */
    unsigned failed_polls;    /* in a row */
    iggy_send_fn *send;       /* generation 1, else NULL */
    iggy_send_v2_fn *send_v2; /* generation 2, else NULL */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards what follows; never held over a send */
    pthread_cond_t changed;
    bool started;
    bool closing;
    bool stopped;      /* too many Nacks, or the plugin could not apply a result */
    bool pending;      /* batch_id has no result yet */
    bool again;        /* the batch is to be sent once more, without a poll */
    uint64_t batch_id; /* of the batch sent last; the first is 1 */
    unsigned nacks;    /* in a row */
};

static struct iggy_instances instances = IGGY_INSTANCES_INITIALIZER;

/* ---- Time ----------------------------------------------------------------- */

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

/* Pauses, but not beyond a close; false when there is one. */
static bool pause_ms(void *waiter, unsigned ms) {
    struct source *source = waiter;
    struct timespec end = after_ms(ms);
    pthread_mutex_lock(&source->mutex);
    while (!source->closing &&
           pthread_cond_timedwait(&source->changed, &source->mutex, &end) != ETIMEDOUT) {
    }
    bool open = !source->closing;
    pthread_mutex_unlock(&source->mutex);
    return open;
}

/* The pause after the n-th failure in a row. */
static unsigned backoff_ms(unsigned failures) {
    unsigned ms = IGGY_NACK_BACKOFF_MS;
    while (--failures > 0 && ms < IGGY_SDK_BACKOFF_MAX_MS) ms *= 2;
    return ms < IGGY_SDK_BACKOFF_MAX_MS ? ms : IGGY_SDK_BACKOFF_MAX_MS;
}

/* ---- Results -------------------------------------------------------------- */

static void stop(struct source *source, const char *why) {
    source->stopped = true;
    iggy_log(IGGY_LOG_ERROR, "source %u ends: %s", (unsigned)source->id, why);
}

/* Applies a result; the mutex is held. It runs on the host's thread or on the source's
 * own, whichever has the result. */
static int32_t apply(struct source *source, enum iggy_batch_result result) {
    bool nack = result == IGGY_BATCH_NACK;
    source->pending = false;
    if (source->stopped) return IGGY_INVALID;
    source->nacks = nack ? source->nacks + 1 : 0;
    if (!source->plugin->on_batch_result) {
        source->again = nack;
    } else if (source->plugin->on_batch_result(source->object, result) != IGGY_OK) {
        stop(source, "on_batch_result failed");
    }
    if (source->nacks == IGGY_MAX_CONSECUTIVE_NACKS && !source->stopped) {
        stop(source, "too many batches in a row were Nacked");
    }
    return source->stopped ? IGGY_INVALID : IGGY_OK;
}

/* Waits for the result of the batch that the host accepted; the mutex is held. */
static void await_result(struct source *source) {
    struct timespec end = after_ms(IGGY_SDK_RESULT_TIMEOUT_MS);
    int waited = 0;
    while (source->pending && !source->closing && waited != ETIMEDOUT) {
        waited = pthread_cond_timedwait(&source->changed, &source->mutex, &end);
    }
}

/* The pause that a Nack asks for. */
static void pause_after_nacks(struct source *source) {
    pthread_mutex_lock(&source->mutex);
    unsigned nacks = source->stopped ? 0 : source->nacks;
    pthread_mutex_unlock(&source->mutex);
    if (nacks > 0) pause_ms(source, backoff_ms(nacks));
}

/* ---- The producing thread ------------------------------------------------- */

static void deliver_v2(struct source *source) {
    pthread_mutex_lock(&source->mutex);
    uint64_t batch_id = ++source->batch_id;
    source->pending = true; /* the result may come before the callback returns */
    source->again = false;
    pthread_mutex_unlock(&source->mutex);

    int32_t code = source->send_v2(source->id, batch_id, source->batch.data, source->batch.len);

    pthread_mutex_lock(&source->mutex);
    if (code == IGGY_OK) await_result(source);
    if (source->pending) {
        if (!source->closing) {
            iggy_log(IGGY_LOG_WARN, "batch %llu %s, it will be produced again",
                     (unsigned long long)batch_id,
                     code == IGGY_OK ? "got no result in time" : "was refused");
        }
        apply(source, IGGY_BATCH_NACK);
    }
    pthread_mutex_unlock(&source->mutex);
    pause_after_nacks(source);
}

/* Generation 1 has no result: what was handed over counts as stored. */
static void deliver_v1(struct source *source) {
    source->send(source->id, source->batch.data, source->batch.len);
    pthread_mutex_lock(&source->mutex);
    apply(source, IGGY_BATCH_ACK);
    pthread_mutex_unlock(&source->mutex);
}

/* Only by a result can a host learn that the source has ended, so it gets a batch of
 * nothing to have a result for. */
static void tell_the_end(struct source *source) {
    iggy_sdk_producer_reset(&source->producer);
    source->batch = iggy_sdk_producer_finish(&source->producer);
    if (source->batch.len > 0) deliver_v2(source);
}

/* A batch that cannot be encoded is a Nack without a batch. What was polled would be
 * lost if the plugin could not go back to it. */
static void refuse_own_batch(struct source *source) {
    iggy_log(IGGY_LOG_ERROR, "a batch cannot be produced: %s", source->producer.fault);
    pthread_mutex_lock(&source->mutex);
    if (source->plugin->on_batch_result) apply(source, IGGY_BATCH_NACK);
    else stop(source, "it cannot go back to the batch that failed");
    bool ended = source->stopped && !source->closing;
    pthread_mutex_unlock(&source->mutex);
    if (ended && source->send_v2) tell_the_end(source);
    pause_after_nacks(source);
}

/* True when there is a batch to deliver. */
static bool poll_batch(struct source *source) {
    iggy_producer *producer = &source->producer;
    iggy_sdk_producer_reset(producer);
    if (source->plugin->poll(source->object, producer) != IGGY_OK) {
        unsigned ms = backoff_ms(++source->failed_polls);
        iggy_log(IGGY_LOG_ERROR, "a poll failed, the next one is in %u ms", ms);
        pause_ms(source, ms);
        return false;
    }
    source->failed_polls = 0;
    if (iggy_sdk_producer_empty(producer)) {
        pause_ms(source, IDLE_PAUSE_MS);
        return false;
    }
    source->batch = iggy_sdk_producer_finish(producer);
    if (!producer->fault) return true;
    refuse_own_batch(source);
    return false;
}

static bool running(struct source *source, bool *again) {
    pthread_mutex_lock(&source->mutex);
    bool yes = !source->closing && !source->stopped;
    *again = source->again;
    pthread_mutex_unlock(&source->mutex);
    return yes;
}

static void *run(void *argument) {
    struct source *source = argument;
    bool again;
    while (running(source, &again)) {
        if (!again && !poll_batch(source)) continue;
        if (!running(source, &again)) break; /* closed during the poll */
        if (source->send_v2) deliver_v2(source);
        else deliver_v1(source);
    }
    return NULL;
}

/* Signals are the host's business: the new thread blocks them all. */
static int start_thread(struct source *source) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&source->thread, NULL, run, source);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void end_thread(struct source *source) {
    pthread_mutex_lock(&source->mutex);
    source->closing = true;
    pthread_cond_signal(&source->changed);
    pthread_mutex_unlock(&source->mutex);
    if (source->started) pthread_join(source->thread, NULL);
}

/* ---- Open and close ------------------------------------------------------- */

/* Pauses must not depend on somebody setting the time of day. */
static bool init_condition(pthread_cond_t *condition) {
    pthread_condattr_t clock;
    if (pthread_condattr_init(&clock) != 0) return false;
    bool ok = pthread_condattr_setclock(&clock, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(condition, &clock) == 0;
    pthread_condattr_destroy(&clock);
    return ok;
}

static struct source *new_source(const iggy_source_plugin *plugin, uint32_t id) {
    struct source *source = calloc(1, sizeof *source);
    if (!source) return NULL;
    source->id = id;
    source->plugin = plugin;
    source->producer.wait = pause_ms;
    source->producer.waiter = source;
    if (!init_condition(&source->changed)) {
        free(source);
        return NULL;
    }
    pthread_mutex_init(&source->mutex, NULL);
    return source;
}

static void free_source(struct source *source) {
    iggy_sdk_producer_free(&source->producer);
    pthread_cond_destroy(&source->changed);
    pthread_mutex_destroy(&source->mutex);
    free(source);
}

static int32_t open_source(const iggy_source_plugin *plugin, const iggy_open_args *args,
                           struct source **result) {
    if (!iggy_is_utf8(args->config)) {
        iggy_log(IGGY_LOG_ERROR, "plugin_config is not UTF-8");
        return IGGY_INVALID;
    }
    struct source *source = new_source(plugin, args->id);
    if (!source) {
        iggy_log(IGGY_LOG_ERROR, "out of memory");
        return IGGY_FAILED;
    }
    int32_t code = iggy_sdk_code(plugin->open(args, &source->object));
    if (code == IGGY_OK) *result = source;
    else free_source(source);
    return code;
}

int32_t iggy_sdk_source_open(const iggy_source_plugin *plugin, uint32_t id, iggy_bytes config,
                             iggy_bytes state, iggy_log_fn *log) {
    struct iggy_instance *instance = NULL;
    struct source *source = NULL;
    iggy_open_args args = {id, config, state};
    iggy_sdk_log_install(plugin->name, log);
    int32_t code = iggy_sdk_instance_reserve(&instances, id, &instance);
    if (code != IGGY_OK) return code;
    code = open_source(plugin, &args, &source);
    return iggy_sdk_instance_opened(&instances, instance, code, source);
}

int32_t iggy_sdk_source_start(uint32_t id, iggy_send_fn *send, iggy_send_v2_fn *send_v2) {
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct source *source = instance->object;
    int32_t code = IGGY_INVALID;
    pthread_mutex_lock(&source->mutex);
    if (!source->started) {
        source->send = send;
        source->send_v2 = send_v2;
        code = start_thread(source) == 0 ? IGGY_OK : IGGY_FAILED;
        source->started = code == IGGY_OK;
    }
    pthread_mutex_unlock(&source->mutex);
    iggy_sdk_instance_release(&instances, instance);
    return code;
}

int32_t iggy_sdk_source_result(uint32_t id, uint64_t batch_id, uint8_t result) {
    struct iggy_instance *instance = iggy_sdk_instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct source *source = instance->object;
    int32_t code = IGGY_INVALID;
    pthread_mutex_lock(&source->mutex);
    if (source->pending && source->batch_id == batch_id) {
        code = apply(source, result == IGGY_BATCH_ACK ? IGGY_BATCH_ACK : IGGY_BATCH_NACK);
        if (result > IGGY_BATCH_NACK) code = IGGY_INVALID;
    }
    pthread_mutex_unlock(&source->mutex);
    pthread_cond_signal(&source->changed); /* who wakes up under a held mutex waits again */
    iggy_sdk_instance_release(&instances, instance);
    return code;
}

int32_t iggy_sdk_source_close(uint32_t id) {
    struct iggy_instance *instance = iggy_sdk_instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct source *source = instance->object;
    if (source) {
        end_thread(source);
        source->plugin->close(source->object);
        free_source(source);
    }
    return iggy_sdk_instance_end_close(&instances, instance);
}
