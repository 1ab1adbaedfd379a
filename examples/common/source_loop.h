/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The producing thread of a source instance, for both generations.
 *
 * It keeps the delivery contract that connector.h describes at
 * iggy_source_handle_v2_fn: one batch in flight, recorded before it is sent, the
 * 30 seconds, the growing pause after a Nack, and the end after the fifth. A
 * source says only what to produce and how to go on or go back.
 */
#ifndef EXAMPLES_COMMON_SOURCE_LOOP_H
#define EXAMPLES_COMMON_SOURCE_LOOP_H

#include <pthread.h>
#include <stdbool.h>

#include "connector.h"
#include "log.h"

/* One encoded ProducedMessages. The bytes stay as they are until the next poll. */
struct source_batch {
    const uint8_t *bytes;
    size_t len;
};

/* What a source can do. No two steps of one source ever run at the same time. */
struct source_steps {
    /* Produces the next batch and returns true, or false when there is none:
     * then it is asked again after `idle_ms`. It runs on the loop's thread and
     * must not wait for long, because close waits for it. */
    bool (*poll)(void *source, struct source_batch *batch, unsigned *idle_ms);
    /* The batch polled last has been stored: its end is the new starting point. */
    void (*acknowledge)(void *source);
    /* It has not: produce it again, go back to the last starting point. */
    void (*go_back)(void *source);
};

struct source_loop {
    uint32_t id;
    const struct source_steps *steps;
    void *source;
    struct log log;
    iggy_send_fn *send;       /* generation 1, else NULL */
    iggy_send_v2_fn *send_v2; /* generation 2, else NULL */
    pthread_t thread;

    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t changed;
    bool started;
    bool closing;
    bool pending;      /* batch_id has no result yet */
    bool given_up;     /* IGGY_MAX_CONSECUTIVE_NACKS reached */
    uint64_t batch_id; /* of the batch sent last; the first is 1 */
    unsigned nacks;    /* in a row */
};

bool source_loop_init(struct source_loop *loop, uint32_t id, const struct source_steps *steps,
                      void *source, struct log log);

/* The body of iggy_source_handle (`send`) or iggy_source_handle_v2 (`send_v2`);
 * the other callback is NULL. */
int32_t source_loop_start(struct source_loop *loop, iggy_send_fn *send,
                          iggy_send_v2_fn *send_v2);

/* The body of iggy_source_batch_result. */
int32_t source_loop_result(struct source_loop *loop, uint64_t batch_id, uint8_t result);

/* Ends the thread, if it was started; afterwards `send` is not called any more. */
void source_loop_stop(struct source_loop *loop);

#endif
