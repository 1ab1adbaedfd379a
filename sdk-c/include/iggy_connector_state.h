/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The state of a source as MessagePack, a structure as the array of its fields: what
 * all plugins write by convention. An optional part of the SDK, on msgpack-c:
 * find_package(IggyConnector COMPONENTS state), target IggyConnector::state. Opaque bytes by
 * iggy_produce_state remain possible.
 *
 *     iggy_state state = iggy_state_read(args->state);
 *     source->offset = iggy_state_take_uint(&state);
 *     if (!iggy_state_end(&state)) return IGGY_FAILED;
 *
 *     iggy_state_begin(producer, 1);
 *     iggy_state_put_uint(producer, source->offset);
 */
#ifndef IGGY_CONNECTOR_STATE_H
#define IGGY_CONNECTOR_STATE_H

#include "iggy_connector_sdk.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Writing, in a poll --------------------------------------------------- */

/* Begins the state of this batch; so many puts follow. As with everything that is
 * produced, a fault is remembered and no call need be checked. */
void iggy_state_begin(iggy_producer *producer, size_t fields);
void iggy_state_put_uint(iggy_producer *producer, uint64_t value);
void iggy_state_put_int(iggy_producer *producer, int64_t value);
void iggy_state_put_bool(iggy_producer *producer, bool value);
void iggy_state_put_double(iggy_producer *producer, double value);
void iggy_state_put_text(iggy_producer *producer, const char *text);
void iggy_state_put_bytes(iggy_producer *producer, const void *data, size_t len);

/* ---- Reading, in open ----------------------------------------------------- */

/* Without a state every take yields 0, false or no bytes: a fresh start. */
typedef struct iggy_state {
    bool present;
    bool failed;
    size_t left; /* fields that were not taken yet */
    void *unpacked;
} iggy_state;

/* An empty state counts as none, with a warning. */
iggy_state iggy_state_read(iggy_bytes state);
uint64_t iggy_state_take_uint(iggy_state *state);
int64_t iggy_state_take_int(iggy_state *state);
bool iggy_state_take_bool(iggy_state *state);
double iggy_state_take_double(iggy_state *state);
iggy_bytes iggy_state_take_text(iggy_state *state); /* a view of the bytes that were read */
iggy_bytes iggy_state_take_bytes(iggy_state *state);

/* Frees it. False, with a record in the log: the state was there, and was not exactly
 * those fields. */
bool iggy_state_end(iggy_state *state);

#ifdef __cplusplus
}
#endif

#endif
