/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "instances.h"

#include <stdlib.h>

#include "connector.h"

static struct instance *find(struct instances *all, uint32_t id) {
    struct instance *instance = all->first;
    while (instance && instance->id != id) instance = instance->next;
    return instance;
}

struct instance *instance_reserve(struct instances *all, uint32_t id) {
    struct instance *instance = calloc(1, sizeof *instance);
    if (!instance) return NULL;
    instance->id = id;
    instance->state = INSTANCE_OPENING;
    pthread_mutex_lock(&all->mutex);
    if (find(all, id)) {
        free(instance);
        instance = NULL;
    } else {
        instance->next = all->first;
        all->first = instance;
    }
    pthread_mutex_unlock(&all->mutex);
    return instance;
}

int32_t instance_opened(struct instances *all, struct instance *instance, int32_t code,
                        void *object) {
    pthread_mutex_lock(&all->mutex);
    instance->object = object;
    instance->close_code = code == IGGY_INVALID ? IGGY_INVALID : IGGY_OK;
    instance->state = code == IGGY_OK       ? INSTANCE_OPEN
                      : code == IGGY_FAILED ? INSTANCE_FAILED
                                            : INSTANCE_INVALID;
    pthread_mutex_unlock(&all->mutex);
    return code;
}

struct instance *instance_acquire(struct instances *all, uint32_t id) {
    pthread_mutex_lock(&all->mutex);
    struct instance *instance = find(all, id);
    if (instance && instance->state == INSTANCE_OPEN) instance->calls++;
    else instance = NULL;
    pthread_mutex_unlock(&all->mutex);
    return instance;
}

void instance_release(struct instances *all, struct instance *instance) {
    pthread_mutex_lock(&all->mutex);
    if (--instance->calls == 0) pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->mutex);
}

struct instance *instance_begin_close(struct instances *all, uint32_t id) {
    pthread_mutex_lock(&all->mutex);
    struct instance *instance = find(all, id);
    if (instance &&
        (instance->state == INSTANCE_OPENING || instance->state == INSTANCE_CLOSING)) {
        instance = NULL;
    }
    if (instance) {
        instance->state = INSTANCE_CLOSING;
        while (instance->calls > 0) pthread_cond_wait(&all->idle, &all->mutex);
    }
    pthread_mutex_unlock(&all->mutex);
    return instance;
}

int32_t instance_end_close(struct instances *all, struct instance *instance) {
    pthread_mutex_lock(&all->mutex);
    struct instance **link = &all->first;
    while (*link != instance) link = &(*link)->next;
    *link = instance->next;
    pthread_mutex_unlock(&all->mutex);
    int32_t code = instance->close_code;
    free(instance);
    return code;
}
