/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Leaks nothing but what it is told to, with a thread-local block where it once crashed
 * LeakSanitizer: first of its size in a page.
 *
 * Usage: leak_test <thread_local_sink> [leak]
 */
#include "check.h"
#include "host.h"

static bool begins_a_page(const void *block) { return (uintptr_t)block % 4096 == 16; }

int main(int argc, char **argv) {
    CHECK(argc == 2 || argc == 3);
    iggy_sink_api api = host_load_sink(argv[1]);
    void *volatile memory;
    do { /* what is freed is not given out again for long */
        memory = malloc(25);
        free(memory);
    } while (!begins_a_page((char *)memory + 48));
    const char *block = api.version();
    if (argc == 2) return begins_a_page(block) ? 0 : 77;
    memory = malloc(1);
    memory = NULL;
    return 0;
}
