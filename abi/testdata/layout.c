/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Prints what connector.h fixes for ever: sizes, offsets, constants and symbols. The
 * golden file layout.golden holds what it has to be; lines are only ever added. */
#include <stddef.h>
#include <stdio.h>

#include "connector.h"

#define CONSTANT(name) printf("constant %s %ld\n", #name, (long)(name))
#define SIZE(type) printf("size %s %zu\n", #type, sizeof(type))
#define FIELD(type, field) printf("field %s.%s %zu\n", #type, #field, offsetof(type, field))
/* Never calls the function: it compiles if the prototype is of the type. */
#define SYMBOL(name)                                       \
    do {                                                   \
        (void)sizeof((name##_fn *)0 == name ? 1 : 0);      \
        printf("symbol %s\n", #name);                      \
    } while (0)

int main(void) {
    CONSTANT(IGGY_OK);
    CONSTANT(IGGY_FAILED);
    CONSTANT(IGGY_INVALID);
    CONSTANT(IGGY_LOG_TRACE);
    CONSTANT(IGGY_LOG_DEBUG);
    CONSTANT(IGGY_LOG_INFO);
    CONSTANT(IGGY_LOG_WARN);
    CONSTANT(IGGY_LOG_ERROR);
    CONSTANT(IGGY_BATCH_ACK);
    CONSTANT(IGGY_BATCH_NACK);
    CONSTANT(IGGY_SCHEMA_JSON);
    CONSTANT(IGGY_SCHEMA_RAW);
    CONSTANT(IGGY_SCHEMA_TEXT);
    CONSTANT(IGGY_SCHEMA_PROTO);
    CONSTANT(IGGY_SCHEMA_FLAT_BUFFER);
    CONSTANT(IGGY_SCHEMA_AVRO);
    CONSTANT(IGGY_HEADER_RAW);
    CONSTANT(IGGY_HEADER_STRING);
    CONSTANT(IGGY_HEADER_BOOL);
    CONSTANT(IGGY_HEADER_INT8);
    CONSTANT(IGGY_HEADER_INT16);
    CONSTANT(IGGY_HEADER_INT32);
    CONSTANT(IGGY_HEADER_INT64);
    CONSTANT(IGGY_HEADER_INT128);
    CONSTANT(IGGY_HEADER_UINT8);
    CONSTANT(IGGY_HEADER_UINT16);
    CONSTANT(IGGY_HEADER_UINT32);
    CONSTANT(IGGY_HEADER_UINT64);
    CONSTANT(IGGY_HEADER_UINT128);
    CONSTANT(IGGY_HEADER_FLOAT32);
    CONSTANT(IGGY_HEADER_FLOAT64);
    CONSTANT(IGGY_BATCH_RESULT_TIMEOUT_MS);
    CONSTANT(IGGY_MAX_CONSECUTIVE_NACKS);
    CONSTANT(IGGY_NACK_BACKOFF_MS);
    CONSTANT(IGGY_NACK_BACKOFF_MAX_MS);
    CONSTANT(IGGY_MAX_PAYLOAD_BYTES);
    CONSTANT(IGGY_MAX_HEADERS_BYTES);
    CONSTANT(IGGY_MAX_HEADER_BYTES);

    SIZE(iggy_sink_api);
    FIELD(iggy_sink_api, open);
    FIELD(iggy_sink_api, consume);
    FIELD(iggy_sink_api, close);
    FIELD(iggy_sink_api, version);
    SIZE(iggy_source_api);
    FIELD(iggy_source_api, open);
    FIELD(iggy_source_api, handle);
    FIELD(iggy_source_api, close);
    FIELD(iggy_source_api, version);
    FIELD(iggy_source_api, handle_v2);
    FIELD(iggy_source_api, batch_result);

    SYMBOL(iggy_sink_open);
    SYMBOL(iggy_sink_consume);
    SYMBOL(iggy_sink_close);
    SYMBOL(iggy_sink_version);
    SYMBOL(iggy_source_open);
    SYMBOL(iggy_source_handle);
    SYMBOL(iggy_source_close);
    SYMBOL(iggy_source_version);
    SYMBOL(iggy_source_handle_v2);
    SYMBOL(iggy_source_batch_result);
    return 0;
}
