// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* While anything runs, a thread of the Go runtime (sysmon) looks at the scheduler every
 * 20 us, to which Linux adds a slack of 50 us by default. A connector runs and waits in turns
 * of some hundred microseconds, so that thread hardly ever rests: it took 10 to 23 % of the
 * processor time of a busy sink. With a slack of 200 us it looks a third as often, and a sink
 * takes 14 % less. Every other sleep of the host is a poll interval or a deadline, and may
 * last 0.15 ms longer. */
#define _GNU_SOURCE
#include "timerslack.h"

#ifdef __linux__

#include <stdlib.h>
#include <sys/prctl.h>

#include "child.h"

enum { LINUX_SLACK_NS = 50000, HOST_SLACK_NS = 200000 };

void host_timer_slack_of_plugins(void) { prctl(PR_SET_TIMERSLACK, LINUX_SLACK_NS); }

void host_timer_slack_of_host(void) { prctl(PR_SET_TIMERSLACK, HOST_SLACK_NS); }

/* Before the Go runtime starts its first thread: all of them inherit it. */
__attribute__((constructor)) static void prepare(void) {
    if (secure_getenv(CHILD_MARKER) == NULL) host_timer_slack_of_host();
}

#else

void host_timer_slack_of_plugins(void) {}

void host_timer_slack_of_host(void) {}

#endif
