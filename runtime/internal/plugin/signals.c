// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "signals.h"

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>

enum { LAST_SIGNAL = 64 };

static bool lacks_stack(const struct sigaction *action) {
    return action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN &&
           !(action->sa_flags & SA_ONSTACK);
}

/* A plugin may install another handler between our look and our write. The write tells what
 * it replaced; when that is not what we saw, it goes back in, repaired in turn. */
static bool repair(int number) {
    struct sigaction action, replaced;
    if (sigaction(number, NULL, &action) != 0 || !lacks_stack(&action)) return false;
    for (;;) {
        void (*seen)(int) = action.sa_handler;
        action.sa_flags |= SA_ONSTACK;
        if (sigaction(number, &action, &replaced) != 0) return false;
        if (replaced.sa_handler == seen) return true;
        action = replaced;
    }
}

uint64_t host_repair_signal_handlers(void) {
    uint64_t repaired = 0;
    for (int number = 1; number <= LAST_SIGNAL; number++)
        if (repair(number)) repaired |= UINT64_C(1) << (number - 1);
    return repaired;
}

uint64_t host_unguarded_signal_handlers(void) {
    uint64_t found = 0;
    struct sigaction action;
    for (int number = 1; number <= LAST_SIGNAL; number++)
        if (sigaction(number, NULL, &action) == 0 && lacks_stack(&action))
            found |= UINT64_C(1) << (number - 1);
    return found;
}
