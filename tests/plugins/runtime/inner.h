/* Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * A plugin inside a plugin: the outer one decides what gets through to it.
 */
#ifndef TESTS_INNER_H
#define TESTS_INNER_H

#include <dlfcn.h>
#include <stdbool.h>

#include "connector.h"

/* POSIX has dlsym return a function as an object pointer, which ISO C cannot cast. */
#define INNER_FUNCTION(library, name, into) (*(void **)&(into) = dlsym(library, name))

struct inner_sink {
    iggy_sink_open_fn *open;
    iggy_sink_consume_fn *consume;
    iggy_sink_close_fn *close;
};

static inline bool inner_sink_load(struct inner_sink *inner, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    INNER_FUNCTION(library, "iggy_sink_open", inner->open);
    INNER_FUNCTION(library, "iggy_sink_consume", inner->consume);
    INNER_FUNCTION(library, "iggy_sink_close", inner->close);
    return inner->open && inner->consume && inner->close;
}

struct inner_source {
    iggy_source_open_fn *open;
    iggy_source_handle_fn *handle;
    iggy_source_handle_v2_fn *handle_v2;
    iggy_source_batch_result_fn *batch_result;
    iggy_source_close_fn *close;
};

static inline bool inner_source_load(struct inner_source *inner, const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) return false;
    INNER_FUNCTION(library, "iggy_source_open", inner->open);
    INNER_FUNCTION(library, "iggy_source_handle", inner->handle);
    INNER_FUNCTION(library, "iggy_source_handle_v2", inner->handle_v2);
    INNER_FUNCTION(library, "iggy_source_batch_result", inner->batch_result);
    INNER_FUNCTION(library, "iggy_source_close", inner->close);
    return inner->open && inner->handle && inner->close;
}

#endif
