/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The instances of one kind in this library, found by the id that the host chose.
 *
 * It keeps what connector.h asks of ids: an id is occupied from open to close, a
 * second open with it is refused, and close waits for the calls that are running.
 */
#ifndef IGGY_SDK_INSTANCES_H
#define IGGY_SDK_INSTANCES_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

enum iggy_instance_state {
    IGGY_INSTANCE_OPENING,
    IGGY_INSTANCE_OPEN,
    IGGY_INSTANCE_FAILED, /* open did not return IGGY_OK: only close is left */
    IGGY_INSTANCE_CLOSING
};

struct iggy_instance {
    uint32_t id;
    enum iggy_instance_state state;
    unsigned calls; /* running now */
    int32_t close_code;
    bool opened;  /* open returned IGGY_OK */
    void *object; /* may be NULL in either case */
    struct iggy_instance *next;
};

struct iggy_instances {
    pthread_mutex_t mutex;
    pthread_cond_t idle;
    struct iggy_instance *first;
};

#define IGGY_INSTANCES_INITIALIZER \
    { PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, NULL }

/* Occupies the id, for the time that open takes. IGGY_INVALID: it is in use;
 * IGGY_FAILED: out of memory. */
int32_t iggy_sdk_instance_reserve(struct iggy_instances *all, uint32_t id,
                                  struct iggy_instance **instance);

/* Ends an open: `code` is what open is about to return, and is returned here too. */
int32_t iggy_sdk_instance_opened(struct iggy_instances *all, struct iggy_instance *instance,
                                 int32_t code, void *object);

/* Begins a call into an open instance. NULL: there is no open one of that id. */
struct iggy_instance *iggy_sdk_instance_acquire(struct iggy_instances *all, uint32_t id);
void iggy_sdk_instance_release(struct iggy_instances *all, struct iggy_instance *instance);

/* Begins a close: no new call is let in, running ones are waited for. The caller
 * then ends the object, if there is one. NULL: the id is unknown, or an open or
 * a close of it is running. */
struct iggy_instance *iggy_sdk_instance_begin_close(struct iggy_instances *all, uint32_t id);

/* Frees the id and returns what close is to return. */
int32_t iggy_sdk_instance_end_close(struct iggy_instances *all, struct iggy_instance *instance);

#endif
