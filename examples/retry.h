/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* How long to wait before something is tried again. */
#ifndef EXAMPLES_RETRY_H
#define EXAMPLES_RETRY_H

#include <time.h>

struct retry {
    unsigned most;         /* retries */
    unsigned delay_ms;     /* before the first; each further one waits twice as long */
    unsigned max_delay_ms; /* but never longer than this */
};

/* The pause before a retry, of which the first is 1. Up to half of it is left out by
 * chance, so that many plugins do not come back in step. */
static inline unsigned retry_pause_ms(const struct retry *retry, unsigned number) {
    unsigned ms = retry->delay_ms;
    while (--number > 0 && ms < retry->max_delay_ms / 2) ms *= 2;
    if (number > 0 || ms > retry->max_delay_ms) ms = retry->max_delay_ms;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ms - (unsigned)(now.tv_nsec / 1000) % (ms / 2 + 1);
}

#endif
