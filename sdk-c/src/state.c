/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "iggy_connector_state.h"

#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "producer.h"

/* ---- Writing -------------------------------------------------------------- */

static int append(void *producer, const char *bytes, size_t len) {
    iggy_sdk_buffer_append(&((iggy_producer *)producer)->state, bytes, len);
    return 0; /* the buffer remembers a failure */
}

static msgpack_packer packer_of(iggy_producer *producer) {
    msgpack_packer packer;
    msgpack_packer_init(&packer, producer, append);
    return packer;
}

void iggy_state_begin(iggy_producer *producer, size_t fields) {
    iggy_produce_state(producer, NULL, 0);
    msgpack_packer packer = packer_of(producer);
    msgpack_pack_array(&packer, fields);
}

void iggy_state_put_uint(iggy_producer *producer, uint64_t value) {
    msgpack_packer packer = packer_of(producer);
    msgpack_pack_uint64(&packer, value);
}

void iggy_state_put_int(iggy_producer *producer, int64_t value) {
    msgpack_packer packer = packer_of(producer);
    msgpack_pack_int64(&packer, value);
}

void iggy_state_put_bool(iggy_producer *producer, bool value) {
    msgpack_packer packer = packer_of(producer);
    if (value) msgpack_pack_true(&packer);
    else msgpack_pack_false(&packer);
}

void iggy_state_put_double(iggy_producer *producer, double value) {
    msgpack_packer packer = packer_of(producer);
    msgpack_pack_double(&packer, value);
}

void iggy_state_put_text(iggy_producer *producer, const char *text) {
    msgpack_packer packer = packer_of(producer);
    msgpack_pack_str(&packer, strlen(text));
    msgpack_pack_str_body(&packer, text, strlen(text));
}

void iggy_state_put_bytes(iggy_producer *producer, const void *data, size_t len) {
    msgpack_packer packer = packer_of(producer);
    msgpack_pack_bin(&packer, len);
    if (len > 0) msgpack_pack_bin_body(&packer, data, len);
}

/* ---- Reading -------------------------------------------------------------- */

/* True when the bytes are one array and nothing more. */
static bool unpack(msgpack_unpacked *unpacked, iggy_bytes bytes) {
    size_t end = 0;
    return msgpack_unpack_next(unpacked, (const char *)bytes.data, bytes.len, &end) ==
               MSGPACK_UNPACK_SUCCESS &&
           end == bytes.len && unpacked->data.type == MSGPACK_OBJECT_ARRAY;
}

iggy_state iggy_state_read(iggy_bytes bytes) {
    iggy_state state = {0};
    if (!bytes.data) return state;
    if (bytes.len == 0) {
        iggy_log(IGGY_LOG_WARN, "the saved state is empty, starting afresh");
        return state;
    }
    msgpack_unpacked *unpacked = malloc(sizeof *unpacked);
    state.present = true;
    state.unpacked = unpacked;
    if (unpacked) msgpack_unpacked_init(unpacked);
    state.failed = !unpacked || !unpack(unpacked, bytes);
    if (!state.failed) state.left = unpacked->data.via.array.size;
    return state;
}

/* The next field, NULL when there is none. */
static const msgpack_object *take(iggy_state *state) {
    if (!state->present || state->failed) return NULL;
    if (state->left == 0) {
        state->failed = true;
        return NULL;
    }
    const msgpack_object_array *fields = &((msgpack_unpacked *)state->unpacked)->data.via.array;
    return &fields->ptr[fields->size - state->left--];
}

/* As take, for a field of that type; of another one it is a fault. */
static const msgpack_object *take_typed(iggy_state *state, msgpack_object_type type) {
    const msgpack_object *field = take(state);
    if (!field || field->type == type) return field;
    state->failed = true;
    return NULL;
}

uint64_t iggy_state_take_uint(iggy_state *state) {
    const msgpack_object *field = take_typed(state, MSGPACK_OBJECT_POSITIVE_INTEGER);
    return field ? field->via.u64 : 0;
}

int64_t iggy_state_take_int(iggy_state *state) {
    const msgpack_object *field = take(state);
    if (!field) return 0;
    if (field->type == MSGPACK_OBJECT_NEGATIVE_INTEGER) return field->via.i64;
    if (field->type == MSGPACK_OBJECT_POSITIVE_INTEGER && field->via.u64 <= INT64_MAX) {
        return (int64_t)field->via.u64;
    }
    state->failed = true;
    return 0;
}

bool iggy_state_take_bool(iggy_state *state) {
    const msgpack_object *field = take_typed(state, MSGPACK_OBJECT_BOOLEAN);
    return field && field->via.boolean;
}

double iggy_state_take_double(iggy_state *state) {
    const msgpack_object *field = take(state);
    if (!field) return 0;
    bool number = field->type == MSGPACK_OBJECT_FLOAT64 || field->type == MSGPACK_OBJECT_FLOAT32;
    state->failed = !number;
    return number ? field->via.f64 : 0;
}

iggy_bytes iggy_state_take_text(iggy_state *state) {
    const msgpack_object *field = take_typed(state, MSGPACK_OBJECT_STR);
    if (!field) return (iggy_bytes){NULL, 0};
    return (iggy_bytes){(const uint8_t *)field->via.str.ptr, field->via.str.size};
}

iggy_bytes iggy_state_take_bytes(iggy_state *state) {
    const msgpack_object *field = take_typed(state, MSGPACK_OBJECT_BIN);
    if (!field) return (iggy_bytes){NULL, 0};
    return (iggy_bytes){(const uint8_t *)field->via.bin.ptr, field->via.bin.size};
}

bool iggy_state_end(iggy_state *state) {
    bool ok = !state->failed && state->left == 0;
    if (!ok) iggy_log(IGGY_LOG_ERROR, "the saved state was not written by this plugin");
    if (state->unpacked) msgpack_unpacked_destroy(state->unpacked);
    free(state->unpacked);
    state->unpacked = NULL;
    return ok;
}
