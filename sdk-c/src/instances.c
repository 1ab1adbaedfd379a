/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "instances.h"

#include <stdlib.h>

#include "connector.h"

static struct iggy_instance *find(struct iggy_instances *all, uint32_t id) {
    struct iggy_instance *instance = all->first;
    while (instance && instance->id != id) instance = instance->next;
    return instance;
}

int32_t iggy_sdk_instance_reserve(struct iggy_instances *all, uint32_t id,
                                  struct iggy_instance **result) {
    struct iggy_instance *instance = calloc(1, sizeof *instance);
    if (!instance) return IGGY_FAILED;
    instance->id = id;
    instance->state = IGGY_INSTANCE_OPENING;
    pthread_mutex_lock(&all->mutex);
    bool in_use = find(all, id) != NULL;
    if (!in_use) {
        instance->next = all->first;
        all->first = instance;
    }
    pthread_mutex_unlock(&all->mutex);
    if (in_use) {
        free(instance);
        return IGGY_INVALID;
    }
    *result = instance;
    return IGGY_OK;
}

int32_t iggy_sdk_instance_opened(struct iggy_instances *all, struct iggy_instance *instance,
                                 int32_t code, void *object) {
    pthread_mutex_lock(&all->mutex);
    instance->object = object;
    instance->opened = code == IGGY_OK;
    instance->close_code = code == IGGY_INVALID ? IGGY_INVALID : IGGY_OK;
    instance->state = code == IGGY_OK ? IGGY_INSTANCE_OPEN : IGGY_INSTANCE_FAILED;
    pthread_mutex_unlock(&all->mutex);
    return code;
}

struct iggy_instance *iggy_sdk_instance_acquire(struct iggy_instances *all, uint32_t id) {
    pthread_mutex_lock(&all->mutex);
    struct iggy_instance *instance = find(all, id);
    if (instance && instance->state == IGGY_INSTANCE_OPEN) instance->calls++;
    else instance = NULL;
    pthread_mutex_unlock(&all->mutex);
    return instance;
}

void iggy_sdk_instance_release(struct iggy_instances *all, struct iggy_instance *instance) {
    pthread_mutex_lock(&all->mutex);
    if (--instance->calls == 0) pthread_cond_broadcast(&all->idle);
    pthread_mutex_unlock(&all->mutex);
}

struct iggy_instance *iggy_sdk_instance_begin_close(struct iggy_instances *all, uint32_t id) {
    pthread_mutex_lock(&all->mutex);
    struct iggy_instance *instance = find(all, id);
    bool closable = instance && (instance->state == IGGY_INSTANCE_OPEN ||
                                 instance->state == IGGY_INSTANCE_FAILED);
    if (closable) {
        instance->state = IGGY_INSTANCE_CLOSING;
        while (instance->calls > 0) pthread_cond_wait(&all->idle, &all->mutex);
    }
    pthread_mutex_unlock(&all->mutex);
    return closable ? instance : NULL;
}

int32_t iggy_sdk_instance_end_close(struct iggy_instances *all, struct iggy_instance *instance) {
    pthread_mutex_lock(&all->mutex);
    struct iggy_instance **link = &all->first;
    while (*link != instance) link = &(*link)->next;
    *link = instance->next;
    pthread_mutex_unlock(&all->mutex);
    int32_t code = instance->close_code;
    free(instance);
    return code;
}
