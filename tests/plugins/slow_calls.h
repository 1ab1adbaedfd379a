/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Included before the code of a plugin: each look at the file system comes after
 * a pause, so that what others do to the files falls in between. */
#ifndef TESTS_PLUGINS_SLOW_CALLS_H
#define TESTS_PLUGINS_SLOW_CALLS_H

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "syscalls.h"

static inline void pause_now_and_then(void) {
    static unsigned seed = 1; /* one thread polls */
    seed = seed * 1103515245u + 12345u;
    if ((seed >> 16) % 8 == 0) sleep_us((seed >> 20) % 1500);
}

#define open(...) (pause_now_and_then(), open(__VA_ARGS__))
#define stat(path, info) (pause_now_and_then(), stat(path, info))
#define fstat(file, info) (pause_now_and_then(), fstat(file, info))
#define pread(file, bytes, len, offset) (pause_now_and_then(), pread(file, bytes, len, offset))

#endif
