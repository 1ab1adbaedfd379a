/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Reads a connector's `plugin_config`. An optional part of the SDK, on cJSON:
 * find_package(IggyConnector COMPONENTS config), target IggyConnector::config.
 *
 *     iggy_config config = iggy_config_parse(args->config);
 *     const char *path = iggy_config_required_string(&config, "path");
 *     int64_t batch = iggy_config_int(&config, "batch", 1, 100000, 1000);
 *     if (config.failed) { iggy_config_free(&config); return IGGY_INVALID; }
 *
 * A key that is absent or null yields the given default; one that is required, or has
 * a value of the wrong kind, is logged with its name and remembered in `failed`, so
 * that one check after the last key is enough and all faults are reported at once.
 */
#ifndef IGGY_CONNECTOR_CONFIG_H
#define IGGY_CONNECTOR_CONFIG_H

#include "iggy_connector_sdk.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct iggy_config {
    void *root; /* the cJSON of it, for arrays and tables */
    bool failed;
} iggy_config;

/* No configuration at all, `null`, counts as an empty one. */
iggy_config iggy_config_parse(iggy_bytes json);

/* Frees it, and overwrites every text in it before: among them may be secrets. */
void iggy_config_free(iggy_config *config);

/* Texts end with NUL and are valid until iggy_config_free. A required one is not
 * empty; after a fault it is "". */
const char *iggy_config_string(iggy_config *config, const char *key, const char *otherwise);
const char *iggy_config_required_string(iggy_config *config, const char *key);

/* The same for a password or token: what it is never gets into the log. */
const char *iggy_config_secret(iggy_config *config, const char *key, const char *otherwise);
const char *iggy_config_required_secret(iggy_config *config, const char *key);

/* A whole number from `low` to `high`. JSON numbers are doubles here: beyond 2^53 in
 * size none is whole. */
int64_t iggy_config_int(iggy_config *config, const char *key, int64_t low, int64_t high,
                        int64_t otherwise);
int64_t iggy_config_required_int(iggy_config *config, const char *key, int64_t low, int64_t high);

bool iggy_config_bool(iggy_config *config, const char *key, bool otherwise);
bool iggy_config_required_bool(iggy_config *config, const char *key);

/* A duration up to 30 days, which 32 bits hold, as "100ms", "1.5s" or "1h 30m"; units ms,
 * s, m, h, d. */
uint64_t iggy_config_duration_ms(iggy_config *config, const char *key, uint64_t otherwise);
uint64_t iggy_config_required_duration_ms(iggy_config *config, const char *key);

/* Records a fault that the plugin found itself. */
void iggy_config_fault(iggy_config *config, const char *key, const char *expected);

#ifdef __cplusplus
}
#endif

#endif
