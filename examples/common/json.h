/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The little JSON that a plugin needs: check a text, look members up, print.
 *
 * A struct json is a slice of the text it was found in and owns nothing. Values
 * come from json_parse, so that the look-ups below need not expect faults.
 */
#ifndef EXAMPLES_COMMON_JSON_H
#define EXAMPLES_COMMON_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "buffer.h"

struct json {
    const char *text;
    size_t len;
};

/* True when the bytes are exactly one JSON value in UTF-8 (RFC 8259). */
bool json_parse(const uint8_t *bytes, size_t len, struct json *value);

bool json_is_object(struct json value);
bool json_is_null(struct json value);

/* Finds a member of an object; with duplicate names the last one counts. */
bool json_member(struct json object, const char *name, struct json *value);

/* Finds an element of an array. */
bool json_element(struct json array, size_t index, struct json *value);

/* Each is false when the value is of another type or does not fit. */
bool json_bool(struct json value, bool *out);
bool json_uint(struct json value, uint64_t *out);
bool json_string(struct json value, struct buffer *out); /* appends, escapes resolved */

/* True when the bytes are well-formed UTF-8. */
bool utf8_valid(const uint8_t *bytes, size_t len);

/* Appends a JSON string literal of UTF-8 text. */
void json_put_string(struct buffer *out, const uint8_t *text, size_t len);

/* Appends a string literal of the bytes in base64. */
void json_put_base64(struct buffer *out, const uint8_t *bytes, size_t len);

/* Appends a value without the white space between its tokens, so on one line. */
void json_put_compact(struct buffer *out, struct json value);

#endif
