/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "postcard.h"

static pthread_mutex_t installing = PTHREAD_MUTEX_INITIALIZER;
static iggy_log_fn *write_record;
static const char *target;
static int least_level;

static bool equals(const char *text, size_t len, const char *word) {
    return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

/* -1: no level. */
static int level_named(const char *text, size_t len) {
    static const char *const names[] = {"trace", "debug", "info", "warn", "error", "off"};
    for (int level = 0; level < (int)(sizeof names / sizeof *names); level++) {
        if (equals(text, len, names[level])) return level;
    }
    return -1;
}

int iggy_sdk_log_least_level(const char *filter, const char *name) {
    int least = IGGY_LOG_INFO;
    size_t best = 0; /* length of the most exact target found, and one */
    while (filter && *filter) {
        size_t len = strcspn(filter, ","), prefix = 0;
        const char *equal = memchr(filter, '=', len), *level = filter;
        if (equal) {
            prefix = (size_t)(equal - filter);
            level = equal + 1;
        }
        int found = level_named(level, len - (size_t)(level - filter));
        bool meant = !equal || strncmp(filter, name, prefix) == 0;
        if (found >= 0 && meant && prefix + 1 >= best) {
            least = found;
            best = prefix + 1;
        }
        filter += len;
        filter += *filter == ',';
    }
    return least;
}

void iggy_sdk_log_install(const char *name, iggy_log_fn *log) {
    pthread_mutex_lock(&installing);
    if (!write_record) {
        target = name;
        least_level = iggy_sdk_log_least_level(getenv("RUST_LOG"), name);
        write_record = log;
    }
    pthread_mutex_unlock(&installing);
}

/* Shortens a text that was cut, so that it ends with a whole character. */
static size_t whole_characters(const char *text, size_t len) {
    while (len > 0 && ((unsigned char)text[len] & 0xc0) == 0x80) len--;
    return len;
}

/* A host shows nothing at all of a record that is not UTF-8. */
static void replace_what_is_no_text(char *text, size_t len) {
    for (size_t at = 0; at < len;) {
        size_t size = iggy_sdk_utf8_sequence((const uint8_t *)text + at, len - at);
        if (size == 0) text[at] = '?';
        at += size ? size : 1;
    }
}

void iggy_log(enum iggy_log_level level, const char *format, ...) {
    if (!write_record || (int)level < least_level) return;
    char message[1024 + 4]; /* a character more than is shown */
    va_list args;
    va_start(args, format);
    int written = vsnprintf(message, sizeof message, format, args);
    va_end(args);
    if (written < 0) return;
    size_t len = (size_t)written < sizeof message ? (size_t)written : sizeof message - 1;
    replace_what_is_no_text(message, len);
    if (len > 1024) len = whole_characters(message, 1024);
    write_record((uint8_t)level, (const uint8_t *)target, strlen(target), (const uint8_t *)message,
                 len);
}
