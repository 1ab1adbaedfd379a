/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "siblings.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

uint64_t modified_ns(const struct stat *info) {
    return (uint64_t)info->st_mtim.tv_sec * 1000000000u + (uint64_t)info->st_mtim.tv_nsec;
}

/* By the time of the last write. Files rotated within one tick of the clock are told
 * apart by their number: app.log.10 is older than app.log.2. */
int compare_age(const struct sibling *a, const struct sibling *b) {
    if (a->current != b->current) return a->current ? 1 : -1;
    uint64_t x = modified_ns(&a->info), y = modified_ns(&b->info);
    if (x != y) return x < y ? -1 : 1;
    size_t m = strlen(a->path), n = strlen(b->path);
    return m != n ? (m > n ? -1 : 1) : strcmp(b->path, a->path);
}

static int compare_siblings(const void *a, const void *b) { return compare_age(a, b); }

static bool is_rotated_name(const char *name, const char *base) {
    size_t len = strlen(base);
    if (strncmp(name, base, len) != 0 || name[len] == '\0') return false;
    return name[len + strspn(name + len, "0123456789.-_")] == '\0';
}

static void add_sibling(struct siblings *list, const char *folder, const char *name, bool current) {
    size_t size = strlen(folder) + strlen(name) + 1;
    struct sibling sibling = {.path = malloc(size), .current = current};
    struct sibling *all = realloc(list->all, (list->count + 1) * sizeof *all);
    if (all) list->all = all;
    if (!all || !sibling.path) {
        list->incomplete = true;
    } else {
        snprintf(sibling.path, size, "%s%s", folder, name);
        if (stat(sibling.path, &sibling.info) != 0) {
            list->incomplete |= errno != ENOENT || !current;
        } else if (S_ISREG(sibling.info.st_mode)) {
            all[list->count++] = sibling;
            return;
        }
    }
    free(sibling.path);
}

static struct siblings list_once(const char *path) {
    struct siblings list = {NULL, 0, false};
    const char *slash = strrchr(path, '/');
    const char *base = slash ? slash + 1 : path;
    char *folder = strdup(path);
    if (!folder) return (struct siblings){NULL, 0, true};
    folder[base - path] = '\0'; /* with its slash, or empty */
    DIR *dir = opendir(*folder ? folder : ".");
    list.incomplete = !dir && errno != ENOENT;
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        if (is_rotated_name(entry->d_name, base)) add_sibling(&list, folder, entry->d_name, false);
    }
    if (dir) closedir(dir);
    add_sibling(&list, folder, base, true);
    free(folder);
    if (list.count > 0) qsort(list.all, list.count, sizeof *list.all, compare_siblings);
    return list;
}

void free_siblings(struct siblings *list) {
    for (size_t i = 0; i < list->count; i++) free(list->all[i].path);
    free(list->all);
}

/* Whether the same files have the same names. */
static bool same_siblings(const struct siblings *a, const struct siblings *b) {
    bool same = a->count == b->count && !a->incomplete && !b->incomplete;
    for (size_t i = 0; same && i < a->count; i++) {
        same = a->all[i].info.st_ino == b->all[i].info.st_ino &&
               strcmp(a->all[i].path, b->all[i].path) == 0;
    }
    return same;
}

/* A file that is renamed meanwhile can be missing in a listing, and then a file in
 * the middle would be passed over: two listings in a row must agree. */
struct siblings list_siblings(const char *path) {
    struct siblings list = list_once(path);
    for (int tries = 0; tries < 5; tries++) {
        struct siblings before = list;
        list = list_once(path);
        bool stable = same_siblings(&before, &list);
        free_siblings(&before);
        if (stable) return list;
    }
    list.incomplete = true;
    return list;
}

bool is_unchanged(const struct siblings *list, const char *path) {
    struct siblings now = list_siblings(path);
    bool unchanged = same_siblings(list, &now);
    free_siblings(&now);
    return unchanged;
}

const struct sibling *current_sibling(const struct siblings *list) {
    const struct sibling *newest = list->count > 0 ? &list->all[list->count - 1] : NULL;
    return newest && newest->current ? newest : NULL;
}
