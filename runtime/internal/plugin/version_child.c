// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* Reads the version of a library in a process that has no Go runtime: a constructor runs
 * before Go starts, so a library that is itself built by Go can be read too, and one that
 * crashes or hangs takes nothing along. version.go starts this process. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { RESULT_FD = 3, TIME_LIMIT_SECONDS = 10 };

static void answer(char kind, const char *text) {
    char line[2048];
    size_t length = strnlen(text, sizeof line - 1);
    line[0] = kind;
    memcpy(line + 1, text, length);
    if (write(RESULT_FD, line, length + 1) < 0) _exit(1);
}

static void answer_version(const char *path) {
    static const char *const names[] = {"iggy_sink_version", "iggy_source_version"};
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        answer('!', dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *(*version)(void);
        *(void **)&version = dlsym(library, names[i]);
        if (version == NULL) continue;
        const char *text = version();
        answer('=', text == NULL ? "" : text);
        return;
    }
}

__attribute__((constructor)) static void version_child(void) {
    const char *path = secure_getenv("IGGY_CONNECT_PLUGIN_VERSION_OF");
    if (path == NULL) return;
    char *own = strdup(path);
    unsetenv("IGGY_CONNECT_PLUGIN_VERSION_OF"); /* not for processes that the library starts */
    struct rlimit none = {0, 0};
    setrlimit(RLIMIT_CORE, &none);
    alarm(TIME_LIMIT_SECONDS); /* in case the parent died */
    if (own != NULL) answer_version(own);
    _exit(0);
}
