/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* System calls on a thread of the host, where signals interrupt them (connector.h). */
#ifndef EXAMPLES_SYSCALLS_H
#define EXAMPLES_SYSCALLS_H

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Writes all bytes, or returns false with errno set; some may be written then. */
static inline bool write_all(int file, const void *data, size_t len) {
    const char *at = (const char *)data;
    while (len > 0) {
        ssize_t written = write(file, at, len);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) {
            struct pollfd writable = {file, POLLOUT, 0};
            poll(&writable, 1, -1);
            continue;
        }
        if (written < 0) return false;
        at += written;
        len -= (size_t)written;
    }
    return true;
}

/* Waits until what was written is on disk, where there is a disk behind the file. */
static inline bool sync_file(int file) {
    int error;
    do error = fsync(file);
    while (error != 0 && errno == EINTR);
    return error == 0 || errno == EINVAL; /* a pipe or a device */
}

/* Sleeps, also when signals interrupt it. */
static inline void sleep_us(uint64_t us) {
    struct timespec left;
    left.tv_sec = (time_t)(us / 1000000);
    left.tv_nsec = (long)(us % 1000000) * 1000;
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}

#endif
