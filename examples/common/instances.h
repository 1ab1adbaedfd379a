/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The instances of one plugin library, found by the id that the host chose.
 *
 * It keeps what connector.h asks of ids: an id is occupied from open to close, a
 * second open with it is refused, and close waits for the calls that are running.
 */
#ifndef EXAMPLES_COMMON_INSTANCES_H
#define EXAMPLES_COMMON_INSTANCES_H

#include <pthread.h>
#include <stdint.h>

enum instance_state {
    INSTANCE_OPENING,
    INSTANCE_OPEN,
    INSTANCE_FAILED,  /* open returned IGGY_FAILED: only close is left */
    INSTANCE_INVALID, /* open returned IGGY_INVALID: a placeholder for its id */
    INSTANCE_CLOSING
};

struct instance {
    uint32_t id;
    enum instance_state state;
    unsigned calls; /* running now */
    int32_t close_code;
    void *object;
    struct instance *next;
};

struct instances {
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    struct instance *first;
};

#define INSTANCES_INITIALIZER { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL }

/* Occupies the id, for the time that open takes. NULL: it is in use. */
struct instance *instance_reserve(struct instances *all, uint32_t id);

/* Ends an open: `code` is what open is about to return, and is returned here
 * too. `object` is the plugin's part of the instance, NULL when there is none. */
int32_t instance_opened(struct instances *all, struct instance *instance, int32_t code,
                        void *object);

/* Begins a call into an open instance. NULL: there is no open one of that id. */
struct instance *instance_acquire(struct instances *all, uint32_t id);
void instance_release(struct instances *all, struct instance *instance);

/* Begins a close: no new call is let in, running ones are waited for. The caller
 * then frees the object, if there is one. NULL: the id is unknown, or a close of
 * it is running. */
struct instance *instance_begin_close(struct instances *all, uint32_t id);

/* Frees the id and returns what close is to return. */
int32_t instance_end_close(struct instances *all, struct instance *instance);

#endif
