/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "io.h"

#include <errno.h>
#include <poll.h>
#include <time.h>
#include <unistd.h>

bool write_all(int file, const uint8_t *bytes, size_t len) {
    while (len > 0) {
        ssize_t written = write(file, bytes, len);
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EAGAIN) {
            poll(&(struct pollfd){.fd = file, .events = POLLOUT}, 1, -1);
            continue;
        }
        if (written < 0) return false;
        bytes += written;
        len -= (size_t)written;
    }
    return true;
}

bool sync_file(int file) {
    int error;
    do error = fsync(file);
    while (error != 0 && errno == EINTR);
    return error == 0 || errno == EINVAL; /* a pipe or a device */
}

void sleep_us(uint64_t us) {
    struct timespec left = {(time_t)(us / 1000000), (long)(us % 1000000) * 1000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {
    }
}
