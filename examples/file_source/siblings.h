/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* A file and what rotation has made of it: the files beside it whose name is its name
 * and a suffix of digits and . - _ (app.log.1, app.log-20260131). */
#ifndef FILE_SOURCE_SIBLINGS_H
#define FILE_SOURCE_SIBLINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct sibling {
    char *path;
    struct stat info;
    bool current; /* the file itself, always the newest */
};

struct siblings {
    struct sibling *all; /* the oldest first */
    size_t count;
    bool incomplete; /* something could not be looked at: this proves nothing */
};

struct siblings list_siblings(const char *path);
void free_siblings(struct siblings *list);

/* Whether a new listing would name the same files. */
bool is_unchanged(const struct siblings *list, const char *path);

/* The file itself, or NULL when it is not there. */
const struct sibling *current_sibling(const struct siblings *list);

/* Less than 0 when a is older than b. */
int compare_age(const struct sibling *a, const struct sibling *b);

/* Time of the last write in nanoseconds. */
uint64_t modified_ns(const struct stat *info);

#endif
