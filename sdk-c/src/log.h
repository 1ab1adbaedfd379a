/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* The log of the library: the host's callback and what is let through to it. */
#ifndef IGGY_SDK_LOG_H
#define IGGY_SDK_LOG_H

#include "iggy_connector_sdk.h"

/* Keeps the first callback and name that it is given; connector.h says that all are
 * the same. Every open calls it, so that each thread of an instance sees them. */
void iggy_sdk_log_install(const char *name, iggy_log_fn *log);

/* The least level that RUST_LOG (`filter`, may be NULL) lets through for a target:
 * directives `level` and `target=level`, separated by commas. */
int iggy_sdk_log_least_level(const char *filter, const char *target);

#endif
