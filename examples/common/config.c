/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct config config_parse(const uint8_t *bytes, size_t len, struct log log) {
    static const char empty[] = "{}";
    struct config config = {{empty, 2}, log, false};
    struct json value;
    if (!json_parse(bytes, len, &value)) {
        log_printf(&log, IGGY_LOG_ERROR, "plugin_config is not valid JSON");
        config.failed = true;
    } else if (json_is_object(value)) {
        config.object = value;
    } else if (!json_is_null(value)) {
        log_printf(&log, IGGY_LOG_ERROR, "plugin_config is not a table of keys and values");
        config.failed = true;
    }
    return config;
}

void config_fault(struct config *config, const char *key, const char *expected) {
    struct json value;
    if (json_member(config->object, key, &value)) {
        int shown = value.len < 64 ? (int)value.len : 64;
        log_printf(&config->log, IGGY_LOG_ERROR, "plugin_config.%s is %.*s, expected %s", key,
                   shown, value.text, expected);
    } else {
        log_printf(&config->log, IGGY_LOG_ERROR, "plugin_config.%s is missing, expected %s", key,
                   expected);
    }
    config->failed = true;
}

static bool present(const struct config *config, const char *key, struct json *value) {
    return json_member(config->object, key, value) && !json_is_null(*value);
}

char *config_string(struct config *config, const char *key) {
    struct json value;
    struct buffer text = {0};
    if (!present(config, key, &value)) return NULL;
    bool ok = json_string(value, &text) && !(text.len && memchr(text.bytes, 0, text.len));
    buffer_byte(&text, 0);
    if (!ok || text.failed) {
        config_fault(config, key, "a string");
        buffer_free(&text);
    }
    return (char *)text.bytes;
}

char *config_required_string(struct config *config, const char *key) {
    char *text = config_string(config, key);
    if (!config->failed && (!text || !*text)) config_fault(config, key, "a string");
    return text;
}

void config_uint(struct config *config, const char *key, uint64_t low, uint64_t high,
                 uint64_t *value) {
    struct json json;
    uint64_t number;
    if (!present(config, key, &json)) return;
    if (json_uint(json, &number) && number >= low && number <= high) {
        *value = number;
        return;
    }
    char expected[64];
    snprintf(expected, sizeof expected, "a number from %llu to %llu", (unsigned long long)low,
             (unsigned long long)high);
    config_fault(config, key, expected);
}

void config_bool(struct config *config, const char *key, bool *value) {
    struct json json;
    if (present(config, key, &json) && !json_bool(json, value)) {
        config_fault(config, key, "true or false");
    }
}

static bool parse_duration(const char *text, uint64_t *ms) {
    static const struct {
        const char *name;
        double ms;
    } units[] = {{"ms", 1}, {"s", 1000}, {"m", 60000}, {"h", 3600000}};
    char *unit;
    if (*text < '0' || *text > '9') return false;
    double amount = strtod(text, &unit);
    while (*unit == ' ') unit++;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (strcmp(unit, units[i].name) == 0 && amount * units[i].ms <= 86400000.0) {
            *ms = (uint64_t)(amount * units[i].ms);
            return true;
        }
    }
    return false;
}

void config_duration_ms(struct config *config, const char *key, uint64_t *ms) {
    char *text = config_string(config, key);
    if (text && !parse_duration(text, ms)) {
        config_fault(config, key, "a duration up to 24 h, such as \"100ms\" or \"2s\"");
    }
    free(text);
}

void config_range(struct config *config, const char *key, uint64_t low, uint64_t high,
                  uint64_t range[2]) {
    struct json array, element, extra;
    uint64_t pair[2] = {0, 0};
    if (!present(config, key, &array)) return;
    bool ok = !json_element(array, 2, &extra);
    for (size_t i = 0; i < 2; i++) {
        ok = ok && json_element(array, i, &element) && json_uint(element, &pair[i]);
    }
    if (ok && pair[0] >= low && pair[0] <= pair[1] && pair[1] <= high) {
        range[0] = pair[0];
        range[1] = pair[1];
        return;
    }
    char expected[80];
    snprintf(expected, sizeof expected, "[least, most], each from %llu to %llu",
             (unsigned long long)low, (unsigned long long)high);
    config_fault(config, key, expected);
}
