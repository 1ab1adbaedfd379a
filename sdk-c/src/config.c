/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "iggy_connector_config.h"

#include <cjson/cJSON.h>
#include <stdio.h>
#include <string.h>

/* ---- The whole ------------------------------------------------------------ */

static void fail(iggy_config *config, const char *why) {
    iggy_log(IGGY_LOG_ERROR, "plugin_config %s", why);
    config->failed = true;
}

static bool only_space(const char *at, const char *end) {
    while (at < end && strchr(" \t\r\n", *at)) at++;
    return at == end;
}

iggy_config iggy_config_parse(iggy_bytes json) {
    iggy_config config = {NULL, false};
    const char *text = (const char *)json.data, *end = NULL;
    cJSON *root = json.len > 0 ? cJSON_ParseWithLengthOpts(text, json.len, &end, false) : NULL;
    config.root = root;
    if (!root || !only_space(end, text + json.len)) {
        fail(&config, "is not valid JSON");
    } else if (!cJSON_IsObject(root) && !cJSON_IsNull(root)) {
        fail(&config, "is not a table of keys and values");
    }
    return config;
}

/* Stays in where a plain memset before a free would be left out. */
static void wipe(char *text) {
    volatile char *at = text;
    while (at && *at) *at++ = 0;
}

static void wipe_texts(cJSON *value) {
    for (; value; value = value->next) {
        if (cJSON_IsString(value)) wipe(value->valuestring);
        wipe_texts(value->child);
    }
}

void iggy_config_free(iggy_config *config) {
    wipe_texts(config->root);
    cJSON_Delete(config->root);
    config->root = NULL;
}

/* ---- Faults --------------------------------------------------------------- */

/* NULL: absent or null. */
static const cJSON *find(const iggy_config *config, const char *key) {
    const cJSON *value = cJSON_GetObjectItemCaseSensitive(config->root, key);
    return cJSON_IsNull(value) ? NULL : value;
}

/* Cuts a text to 64 bytes at most, the last character whole. */
static void shorten(char *text) {
    size_t len = strnlen(text, 65);
    if (len <= 64) return;
    for (len = 64; ((unsigned char)text[len] & 0xc0) == 0x80;) len--;
    text[len] = 0;
}

static void fault(iggy_config *config, const char *key, const char *expected, bool secret) {
    const cJSON *value = find(config, key);
    char *shown = value && !secret ? cJSON_PrintUnformatted(value) : NULL;
    config->failed = true;
    if (!value) {
        iggy_log(IGGY_LOG_ERROR, "plugin_config.%s is missing, expected %s", key, expected);
    } else if (!shown) {
        iggy_log(IGGY_LOG_ERROR, "plugin_config.%s is not %s", key, expected);
    } else {
        shorten(shown);
        iggy_log(IGGY_LOG_ERROR, "plugin_config.%s is %s, expected %s", key, shown, expected);
    }
    cJSON_free(shown);
}

void iggy_config_fault(iggy_config *config, const char *key, const char *expected) {
    fault(config, key, expected, false);
}

/* ---- Values --------------------------------------------------------------- */

static const char *text(iggy_config *config, const char *key, const char *otherwise, bool required,
                        bool secret) {
    const cJSON *value = find(config, key);
    if (!value && !required) return otherwise;
    if (cJSON_IsString(value) && (!required || *value->valuestring)) return value->valuestring;
    fault(config, key, required ? "a text that is not empty" : "a text", secret);
    return required ? "" : otherwise;
}

const char *iggy_config_string(iggy_config *config, const char *key, const char *otherwise) {
    return text(config, key, otherwise, false, false);
}

const char *iggy_config_required_string(iggy_config *config, const char *key) {
    return text(config, key, "", true, false);
}

const char *iggy_config_secret(iggy_config *config, const char *key, const char *otherwise) {
    return text(config, key, otherwise, false, true);
}

const char *iggy_config_required_secret(iggy_config *config, const char *key) {
    return text(config, key, "", true, true);
}

/* False: no whole number that a double holds exactly. */
static bool whole(const cJSON *value, int64_t *number) {
    static const double most = 9007199254740992.0; /* 2^53 */
    double found = cJSON_IsNumber(value) ? value->valuedouble : 0.5;
    if (found < -most || found > most) return false;
    *number = (int64_t)found;
    return (double)*number == found;
}

static int64_t integer(iggy_config *config, const char *key, int64_t low, int64_t high,
                       int64_t otherwise, bool required) {
    const cJSON *value = find(config, key);
    int64_t number;
    if (!value && !required) return otherwise;
    if (whole(value, &number) && number >= low && number <= high) return number;
    char expected[80];
    snprintf(expected, sizeof expected, "a whole number from %lld to %lld", (long long)low,
             (long long)high);
    fault(config, key, expected, false);
    return otherwise;
}

int64_t iggy_config_int(iggy_config *config, const char *key, int64_t low, int64_t high,
                        int64_t otherwise) {
    return integer(config, key, low, high, otherwise, false);
}

int64_t iggy_config_required_int(iggy_config *config, const char *key, int64_t low, int64_t high) {
    return integer(config, key, low, high, low, true);
}

static bool flag(iggy_config *config, const char *key, bool otherwise, bool required) {
    const cJSON *value = find(config, key);
    if (!value && !required) return otherwise;
    if (cJSON_IsBool(value)) return cJSON_IsTrue(value);
    fault(config, key, "true or false", false);
    return otherwise;
}

bool iggy_config_bool(iggy_config *config, const char *key, bool otherwise) {
    return flag(config, key, otherwise, false);
}

bool iggy_config_required_bool(iggy_config *config, const char *key) {
    return flag(config, key, false, true);
}

/* ---- Durations ------------------------------------------------------------ */

static const char *skip_spaces(const char *at) { return at + strspn(at, " "); }

/* A decimal number. Not strtod, which asks the locale for the point. */
static const char *read_amount(const char *at, double *amount) {
    const char *digits = at;
    double place = 1;
    for (*amount = 0; *at >= '0' && *at <= '9'; at++) *amount = *amount * 10 + (*at - '0');
    if (at == digits) return NULL;
    if (*at != '.') return at;
    for (at++; *at >= '0' && *at <= '9'; at++) *amount += (*at - '0') * (place /= 10);
    return at[-1] == '.' ? NULL : at;
}

static const char *read_unit(const char *at, double *ms) {
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}, {"d", 86400000}};
    size_t len = strcspn(at, " 0123456789.");
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strlen(units[i].name) != len || strncmp(units[i].name, at, len) != 0) continue;
        *ms = units[i].ms;
        return at + len;
    }
    return NULL;
}

static bool parse_duration(const char *at, uint64_t *ms) {
    double total = 0;
    at = skip_spaces(at);
    do {
        double amount, unit;
        at = read_amount(at, &amount);
        if (at) at = read_unit(skip_spaces(at), &unit);
        if (!at) return false;
        total += amount * unit;
        at = skip_spaces(at);
    } while (*at);
    if (total > 30.0 * 86400000) return false;
    *ms = (uint64_t)(total + 0.5);
    return true;
}

static uint64_t duration(iggy_config *config, const char *key, uint64_t otherwise, bool required) {
    const cJSON *value = find(config, key);
    uint64_t ms;
    if (!value && !required) return otherwise;
    if (cJSON_IsString(value) && parse_duration(value->valuestring, &ms)) return ms;
    fault(config, key, "a duration up to 30 days, such as \"100ms\" or \"1h 30m\"", false);
    return otherwise;
}

uint64_t iggy_config_duration_ms(iggy_config *config, const char *key, uint64_t otherwise) {
    return duration(config, key, otherwise, false);
}

uint64_t iggy_config_required_duration_ms(iggy_config *config, const char *key) {
    return duration(config, key, 0, true);
}
