/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* The batch that a poll fills, as ProducedMessages. Its memory is reused from poll
 * to poll. */
#ifndef IGGY_SDK_PRODUCER_H
#define IGGY_SDK_PRODUCER_H

#include "postcard.h"

struct iggy_producer {
    struct iggy_buffer bytes; /* room for schema and count, then the messages */
    struct iggy_buffer state;
    struct iggy_buffer order; /* scratch of a header map */
    uint32_t schema;
    uint64_t count;
    bool has_state;
    const char *fault; /* NULL, or the first thing that was wrong */

    /* How iggy_produce_wait waits. */
    bool (*wait)(void *waiter, unsigned ms);
    void *waiter;
};

void iggy_sdk_producer_reset(iggy_producer *producer);
void iggy_sdk_producer_free(iggy_producer *producer);
bool iggy_sdk_producer_empty(const iggy_producer *producer);

/* Completes the batch. The bytes stay until the next reset. After a fault they are
 * none; `fault` says why. */
iggy_bytes iggy_sdk_producer_finish(iggy_producer *producer);

/* One message, its limits unchecked: into the batch, and into any buffer. */
void iggy_sdk_producer_append(iggy_producer *producer, const iggy_produced_message *message);
void iggy_sdk_put_produced(struct iggy_buffer *out, struct iggy_buffer *order,
                           const iggy_produced_message *message);

#endif
