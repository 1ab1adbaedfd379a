/* Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * How a plugin feels: a word and a number, read from a file each time, so that a test
 * can change it while the plugin runs. Replace the file, do not rewrite it.
 */
#ifndef TESTS_MOOD_H
#define TESTS_MOOD_H

#include <stdint.h>
#include <stdio.h>

struct mood {
    char word[16]; /* empty: well */
    uint64_t number;
};

static inline struct mood mood_now(const char *path) {
    struct mood mood = {"", 0};
    FILE *file = path ? fopen(path, "re") : NULL;
    if (!file) return mood;
    unsigned long long number = 0;
    if (fscanf(file, "%15s %llu", mood.word, &number) == 2) mood.number = number;
    fclose(file);
    return mood;
}

#endif
