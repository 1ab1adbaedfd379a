/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Messages as JSON, for sinks that write text. An optional part of the SDK, on cJSON:
 * find_package(IggyConnector COMPONENTS json), target IggyConnector::json.
 *
 *     cJSON *record = cJSON_CreateObject();
 *     iggy_json_add_text(record, "topic", batch->topic.topic);
 *     iggy_json_add_uint(record, "offset", message.offset);
 *     bool ok = iggy_json_add_headers(record, "headers", &message) &&
 *               iggy_json_add_payload(record, "payload", batch->metadata.schema, message.payload);
 *
 * Each adds a member to an object, or nothing to NULL, and is false when there is no
 * memory for it.
 */
#ifndef IGGY_CONNECTOR_JSON_H
#define IGGY_CONNECTOR_JSON_H

#include "iggy_connector_sdk.h"

#ifdef __cplusplus
extern "C" {
#endif

struct cJSON;

/* A string; what is no text in UTF-8 becomes its base64. */
bool iggy_json_add_text(struct cJSON *object, const char *key, iggy_bytes text);

/* All digits of it, where cJSON's own numbers are doubles. */
bool iggy_json_add_uint(struct cJSON *object, const char *key, uint64_t value);

/* An object: the key of each header as text (a number in decimal, raw bytes in base64),
 * the value under the name of its kind, {"trace":{"string":"ab12"},"try":{"uint32":2}}.
 * Raw bytes are base64, 128-bit numbers are strings of decimal digits, and so is a float
 * that JSON cannot write. False, too, when the headers cannot be decoded. */
bool iggy_json_add_headers(struct cJSON *object, const char *key, const iggy_message *message);

/* JSON as it is, to its last digit, but on one line; text as a string; anything else
 * as base64, and then the next member is "encoding":"base64". */
bool iggy_json_add_payload(struct cJSON *object, const char *key, uint32_t schema,
                           iggy_bytes payload);

#ifdef __cplusplus
}
#endif

#endif
