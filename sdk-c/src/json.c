/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "iggy_connector_json.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "postcard.h"

/* The names of `enum iggy_header_kind`. */
static const char *const kinds[] = {
    "raw",   "string", "bool",   "int8",   "int16",   "int32",   "int64",   "int128",
    "uint8", "uint16", "uint32", "uint64", "uint128", "float32", "float64",
};

/* ---- Texts ---------------------------------------------------------------- */

/* A C string ends at the first NUL. */
static bool is_text(const uint8_t *data, size_t len) {
    return iggy_is_utf8((iggy_bytes){data, len}) && (len == 0 || !memchr(data, 0, len));
}

/* A copy that ends with NUL; the caller frees it. */
static char *copy_text(const uint8_t *data, size_t len) {
    struct iggy_buffer text = {0};
    iggy_sdk_buffer_append(&text, data, len);
    iggy_sdk_buffer_byte(&text, 0);
    if (text.failed) iggy_sdk_buffer_free(&text);
    return (char *)text.data;
}

static char *any_text(const uint8_t *data, size_t len) {
    return is_text(data, len) ? copy_text(data, len) : iggy_base64((iggy_bytes){data, len});
}

/* Takes the item over, also when it cannot be added. */
static bool add(cJSON *object, const char *key, cJSON *item) {
    if (item && cJSON_AddItemToObject(object, key, item)) return true;
    cJSON_Delete(item);
    return false;
}

/* Takes the text over. */
static bool add_string(cJSON *object, const char *key, char *text) {
    bool ok = text && add(object, key, cJSON_CreateString(text));
    free(text);
    return ok;
}

bool iggy_json_add_text(cJSON *object, const char *key, iggy_bytes text) {
    return add_string(object, key, any_text(text.data, text.len));
}

bool iggy_json_add_uint(cJSON *object, const char *key, uint64_t value) {
    char digits[24];
    snprintf(digits, sizeof digits, "%" PRIu64, value);
    return add(object, key, cJSON_CreateRaw(digits));
}

/* ---- Headers -------------------------------------------------------------- */

/* Writes a 128-bit number in decimal: digit by digit, by division by ten. */
static void print_128(char out[48], const iggy_header_field *field) {
    uint8_t value[16];
    memcpy(value, field->data, sizeof value);
    bool negative = field->kind == IGGY_HEADER_INT128 && value[15] & 0x80;
    unsigned carry = 1;
    for (int i = 0; negative && i < 16; i++) {
        carry += (uint8_t)~value[i];
        value[i] = (uint8_t)carry;
        carry >>= 8;
    }
    char digits[40];
    int count = 0;
    bool more;
    do {
        unsigned rest = 0;
        more = false;
        for (int i = 15; i >= 0; i--) {
            rest = rest << 8 | value[i];
            value[i] = (uint8_t)(rest / 10);
            more |= value[i] != 0;
            rest %= 10;
        }
        digits[count++] = (char)('0' + rest);
    } while (more);
    if (negative) *out++ = '-';
    while (count > 0) *out++ = digits[--count];
    *out = '\0';
}

enum form { BYTES, STRING, LITERAL };

/* Prints a value of fixed size. Its form is that of the text: with quotes or without. */
static enum form print_value(char text[48], const iggy_header_field *field) {
    bool flag;
    int64_t number;
    uint64_t natural;
    double real;
    if (iggy_header_as_bool(field, &flag)) {
        strcpy(text, flag ? "true" : "false");
    } else if (field->kind == IGGY_HEADER_INT128 || field->kind == IGGY_HEADER_UINT128) {
        print_128(text, field);
        return STRING;
    } else if (iggy_header_as_int(field, &number)) {
        snprintf(text, 48, "%" PRId64, number);
    } else if (iggy_header_as_uint(field, &natural)) {
        snprintf(text, 48, "%" PRIu64, natural);
    } else if (iggy_header_as_double(field, &real)) {
        snprintf(text, 48, "%.*g", field->kind == IGGY_HEADER_FLOAT32 ? 9 : 17, real);
        return isfinite(real) ? LITERAL : STRING;
    } else {
        return BYTES; /* a bool that is neither */
    }
    return LITERAL;
}

/* A key or value as text, which the caller frees. */
static char *field_text(const iggy_header_field *field, enum form *form) {
    char text[48];
    uint16_t size = iggy_sdk_header_size(field->kind);
    *form = BYTES;
    if (field->kind == IGGY_HEADER_STRING) return any_text(field->data, field->len);
    if (size > 0 && field->len == size) *form = print_value(text, field);
    if (*form == BYTES) return iggy_base64((iggy_bytes){field->data, field->len});
    return copy_text((const uint8_t *)text, strlen(text));
}

static bool add_header(cJSON *headers, const iggy_header *header) {
    enum form key_form, form;
    char *key = field_text(&header->key, &key_form);
    char *text = field_text(&header->value, &form);
    cJSON *value = cJSON_CreateObject();
    cJSON *item = !text ? NULL : form == LITERAL ? cJSON_CreateRaw(text) : cJSON_CreateString(text);
    bool ok = add(value, kinds[header->value.kind], item);
    if (!key || !ok) {
        cJSON_Delete(value);
        ok = false;
    } else {
        ok = add(headers, key, value);
    }
    free(key);
    free(text);
    return ok;
}

bool iggy_json_add_headers(cJSON *object, const char *key, const iggy_message *message) {
    iggy_headers iteration = iggy_message_headers(message);
    iggy_header header;
    cJSON *headers = cJSON_CreateObject();
    bool ok = headers != NULL;
    while (ok && iggy_next_header(&iteration, &header)) ok = add_header(headers, &header);
    if (ok && !iteration.reader.failed) return add(object, key, headers);
    cJSON_Delete(headers);
    return false;
}

/* ---- Payloads ------------------------------------------------------------- */

static bool has_control_character(const char *text) {
    for (; *text; text++) {
        if ((unsigned char)*text < 0x20) return true;
    }
    return false;
}

/* Not cJSON_Minify, which takes the quote behind an escaped backslash for a part of the
 * string, and from there on the inside of strings for the outside. */
static void drop_white_space(char *json) {
    char *out = json;
    for (bool inside = false; *json; json++) {
        if (!inside && strchr(" \t\r\n", *json)) continue;
        if (*json == '"') inside = !inside;
        if (*json == '\\' && json[1]) *out++ = *json++;
        *out++ = *json;
    }
    *out = '\0';
}

/* JSON without white space between its tokens, or NULL when it is none. cJSON is not
 * strict: a line feed inside a string, say, would pass. */
static char *compact_json(iggy_bytes payload) {
    if (!is_text(payload.data, payload.len)) return NULL;
    char *text = copy_text(payload.data, payload.len);
    const char *end = NULL;
    cJSON *parsed = text ? cJSON_ParseWithOpts(text, &end, true) : NULL;
    cJSON_Delete(parsed);
    if (parsed) drop_white_space(text);
    if (parsed && !has_control_character(text)) return text;
    free(text);
    return NULL;
}

static bool add_raw(cJSON *object, const char *key, char *text) {
    bool ok = add(object, key, cJSON_CreateRaw(text));
    free(text);
    return ok;
}

bool iggy_json_add_payload(cJSON *object, const char *key, uint32_t schema, iggy_bytes payload) {
    char *json = schema == IGGY_SCHEMA_JSON ? compact_json(payload) : NULL;
    if (json) return add_raw(object, key, json);
    bool text = schema == IGGY_SCHEMA_TEXT || schema == IGGY_SCHEMA_JSON;
    if (text && is_text(payload.data, payload.len)) {
        return add_string(object, key, copy_text(payload.data, payload.len));
    }
    return add_string(object, key, iggy_base64(payload)) &&
           add(object, "encoding", cJSON_CreateString("base64"));
}
