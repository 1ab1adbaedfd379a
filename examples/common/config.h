/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Reads a connector's `plugin_config`.
 *
 * Every getter leaves the given default in place when the key is absent or null.
 * A value of the wrong kind is logged with its key and remembered in `failed`,
 * so one check after the last getter is enough.
 */
#ifndef EXAMPLES_COMMON_CONFIG_H
#define EXAMPLES_COMMON_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "log.h"

struct config {
    struct json object;
    struct log log;
    bool failed;
};

/* Takes the bytes that open was given; they must outlive the config. The four
 * bytes `null` (no plugin_config) count as an empty object. */
struct config config_parse(const uint8_t *bytes, size_t len, struct log log);

/* A NUL-terminated copy that the caller frees; NULL when absent. */
char *config_string(struct config *config, const char *key);

/* As config_string; a missing or empty one is a fault. */
char *config_required_string(struct config *config, const char *key);

void config_uint(struct config *config, const char *key, uint64_t low, uint64_t high,
                 uint64_t *value);
void config_bool(struct config *config, const char *key, bool *value);

/* A duration such as "100ms", "1.5s" or "2m"; units ms, s, m, h. */
void config_duration_ms(struct config *config, const char *key, uint64_t *ms);

/* An array of two numbers, the first not above the second. */
void config_range(struct config *config, const char *key, uint64_t low, uint64_t high,
                  uint64_t range[2]);

/* Records a fault that a plugin found by itself. */
void config_fault(struct config *config, const char *key, const char *expected);

#endif
