/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* The least that a test program needs. A program runs its tests in order and ends
 * at the first check that does not hold. */
#ifndef TESTS_PLUGINS_CHECK_H
#define TESTS_PLUGINS_CHECK_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                                    \
    do {                                                                                    \
        if (!(condition)) {                                                                 \
            fprintf(stderr, "%s:%d: %s: does not hold: %s\n", __FILE__, __LINE__, __func__, \
                    #condition);                                                            \
            abort();                                                                        \
        }                                                                                   \
    } while (0)

#define CHECK_EQUAL(got, want)                                                                 \
    do {                                                                                       \
        long long got_ = (long long)(got), want_ = (long long)(want);                          \
        if (got_ != want_) {                                                                   \
            fprintf(stderr, "%s:%d: %s: %s is %lld, not %lld\n", __FILE__, __LINE__, __func__, \
                    #got, got_, want_);                                                        \
            abort();                                                                           \
        }                                                                                      \
    } while (0)

#define CHECK_TEXT(got, want)                                                                      \
    do {                                                                                           \
        const char *got_ = (got), *want_ = (want);                                                 \
        if (strcmp(got_, want_) != 0) {                                                            \
            fprintf(stderr, "%s:%d: %s: %s is\n%s\nnot\n%s\n", __FILE__, __LINE__, __func__, #got, \
                    got_, want_);                                                                  \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define RUN(test)              \
    do {                       \
        printf("%s\n", #test); \
        fflush(stdout);        \
        test();                \
    } while (0)

#endif
