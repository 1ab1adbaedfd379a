/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "tail.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WINDOW = 256,        /* bytes before the offset that the fingerprint covers */
    CHUNK = 512 * 1024,  /* bytes read at once, unless a line is longer */
};

/* ---- Files and positions ------------------------------------------------- */

/* FNV-1a */
static uint64_t fingerprint_of(const uint8_t *bytes, size_t len) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < len; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static size_t window(uint64_t offset) {
    return offset < WINDOW ? (size_t)offset : WINDOW;
}

static uint64_t modified_ns(const struct stat *info) {
    return (uint64_t)info->st_mtim.tv_sec * 1000000000u + (uint64_t)info->st_mtim.tv_nsec;
}

static bool same_file(const struct stat *info, const struct tail_position *position) {
    return (uint64_t)info->st_dev == position->device && (uint64_t)info->st_ino == position->inode;
}

/* Reads up to `len` bytes; fewer only at the end of the file. */
static ssize_t read_at(int file, uint8_t *bytes, size_t len, uint64_t offset) {
    size_t have = 0;
    while (have < len) {
        ssize_t got = pread(file, bytes + have, len - have, (off_t)(offset + have));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return -1;
        if (got == 0) break;
        have += (size_t)got;
    }
    return (ssize_t)have;
}

/* Trouble is neither yes nor no: whoever asked must wait, not conclude. */
enum answer { NO, YES, TROUBLE };

/* Are the bytes before the offset those that were read? */
static enum answer has_content(int file, const struct tail_position *position) {
    uint8_t bytes[WINDOW];
    size_t len = window(position->offset);
    ssize_t got = read_at(file, bytes, len, position->offset - len);
    if (got < 0) return TROUBLE;
    return got == (ssize_t)len && fingerprint_of(bytes, len) == position->fingerprint ? YES : NO;
}

static int open_file(const char *path) {
    int file;
    do file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file < 0 && errno == EINTR);
    return file;
}

/* ---- The followed file and those beside it ------------------------------- */

struct sibling {
    char *path;
    struct stat info;
    bool current; /* the followed path itself, the newest always */
};

struct siblings {
    struct sibling *all; /* the oldest first */
    size_t count;
    bool incomplete; /* something could not be looked at */
};

static bool is_rotated_name(const char *name, const char *base) {
    size_t len = strlen(base);
    if (strncmp(name, base, len) != 0 || name[len] == '\0') return false;
    return name[len + strspn(name + len, "0123456789.-_")] == '\0';
}

/* By the time of the last write. Files rotated within one tick of the clock are told
 * apart by their number: app.log.10 is older than app.log.2. */
static int compare_age(const struct sibling *a, const struct sibling *b) {
    if (a->current != b->current) return a->current ? 1 : -1;
    uint64_t x = modified_ns(&a->info), y = modified_ns(&b->info);
    if (x != y) return x < y ? -1 : 1;
    size_t m = strlen(a->path), n = strlen(b->path);
    return m != n ? (m > n ? -1 : 1) : strcmp(b->path, a->path);
}

static int compare_siblings(const void *a, const void *b) {
    return compare_age(a, b);
}

static void add_sibling(struct siblings *list, const char *folder, const char *name,
                        bool current) {
    size_t size = strlen(folder) + strlen(name) + 1;
    struct sibling sibling = {.path = malloc(size), .current = current};
    struct sibling *all = realloc(list->all, (list->count + 1) * sizeof *all);
    if (all) list->all = all;
    if (!all || !sibling.path) {
        list->incomplete = true;
    } else {
        snprintf(sibling.path, size, "%s%s", folder, name);
        if (stat(sibling.path, &sibling.info) != 0) {
            list->incomplete |= errno != ENOENT;
        } else if (S_ISREG(sibling.info.st_mode)) {
            all[list->count++] = sibling;
            return;
        }
    }
    free(sibling.path);
}

/* Lists the followed file and its rotated ones. */
static struct siblings list_siblings(const char *path) {
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

static void free_siblings(struct siblings *list) {
    for (size_t i = 0; i < list->count; i++) free(list->all[i].path);
    free(list->all);
}

/* ---- Finding the file of a position, and the one after it ---------------- */

static void use_file(struct tail *tail, int file, const struct stat *info) {
    if (tail->file >= 0) close(tail->file);
    tail->file = file;
    tail->at.device = (uint64_t)info->st_dev;
    tail->at.inode = (uint64_t)info->st_ino;
}

/* Opens a file for the position, if it has the content before it. */
static enum answer use_sibling(struct tail *tail, const struct sibling *sibling) {
    int file = open_file(sibling->path);
    if (file < 0) return errno == ENOENT ? NO : TROUBLE;
    struct stat info;
    enum answer answer = fstat(file, &info) == 0 ? has_content(file, &tail->at) : TROUBLE;
    if (answer == YES) use_file(tail, file, &info);
    else close(file);
    return answer;
}

/* Moves the position to the start of a file. */
static bool start_file(struct tail *tail, const struct sibling *sibling) {
    struct tail_position before = tail->at;
    tail->at.offset = 0;
    tail->at.fingerprint = fingerprint_of(NULL, 0);
    if (use_sibling(tail, sibling) == YES) return true;
    tail->at = before;
    return false;
}

/* Finds the file that the position was taken in, whatever its name is now, or
 * a copy of it that is no older than what was read. */
static enum answer find_position(struct tail *tail, const struct siblings *list) {
    enum answer answer = NO;
    for (size_t i = list->count; answer == NO && i-- > 0;) {
        if (same_file(&list->all[i].info, &tail->at)) answer = use_sibling(tail, &list->all[i]);
    }
    if (tail->at.offset == 0) return answer; /* any file would do as a copy */
    for (size_t i = list->count; answer == NO && i-- > 0;) {
        if (modified_ns(&list->all[i].info) >= tail->at.modified) {
            answer = use_sibling(tail, &list->all[i]);
        }
    }
    return answer;
}

/* The oldest file that is newer than that of the position and holds anything. */
static const struct sibling *find_next(const struct tail *tail, const struct siblings *list) {
    const struct sibling *own = NULL;
    for (size_t i = 0; i < list->count; i++) {
        if (same_file(&list->all[i].info, &tail->at)) own = &list->all[i];
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct sibling *other = &list->all[i];
        if (other == own || other->info.st_size == 0) continue;
        bool newer = own ? compare_age(other, own) > 0
                         : other->current || modified_ns(&other->info) > tail->at.modified;
        if (newer) return other;
    }
    return NULL;
}

static bool nowhere(const struct tail_position *position) {
    return position->inode == 0;
}

/* Goes on where the position's file and all copies of it are gone. A file that was
 * cut short is its own successor. */
static bool skip_lost(struct tail *tail, const struct siblings *list,
                      const struct sibling *current) {
    uint64_t behind = tail->at.offset;
    bool cut = current && same_file(&current->info, &tail->at);
    const struct sibling *next = cut ? current : find_next(tail, list);
    if (!next || !start_file(tail, next)) return false;
    if (behind > 0) {
        log_printf(&tail->log, IGGY_LOG_WARN,
                   "the file that was read up to byte %llu is gone; what followed there is lost; "
                   "going on at the start of %s",
                   (unsigned long long)behind, next->path);
    }
    return true;
}

/* Opens the file to read from. False: not now. */
static bool locate(struct tail *tail) {
    struct siblings list = list_siblings(tail->path);
    const struct sibling *current = list.count > 0 ? &list.all[list.count - 1] : NULL;
    if (current && !current->current) current = NULL;
    bool found = false, trouble = list.incomplete;
    if (trouble) {
        /* Half a list proves nothing. */
    } else if (nowhere(&tail->at)) {
        found = current && start_file(tail, current);
    } else {
        enum answer answer = find_position(tail, &list);
        trouble = answer == TROUBLE;
        found = answer == YES || (answer == NO && skip_lost(tail, &list, current));
    }
    if (!found && !tail->waiting) {
        log_printf(&tail->log, trouble ? IGGY_LOG_ERROR : IGGY_LOG_INFO,
                   trouble ? "cannot read %s or the files beside it, trying again"
                           : "waiting for %s",
                   tail->path);
    }
    tail->waiting = !found;
    free_siblings(&list);
    return found;
}

/* ---- Reading ------------------------------------------------------------- */

/* Reads the window and up to `want` bytes of data behind it with one call, so
 * that the proof belongs to the data. False: the file does not hold what was read
 * from it before, or cannot be read. */
static bool fill(struct tail *tail, size_t want) {
    struct stat info;
    tail->lead = window(tail->at.offset);
    buffer_reset(&tail->bytes);
    if (!buffer_reserve(&tail->bytes, tail->lead + want)) return false;
    if (fstat(tail->file, &info) != 0) return false;
    ssize_t got = read_at(tail->file, tail->bytes.bytes, tail->lead + want,
                          tail->at.offset - tail->lead);
    if (got < (ssize_t)tail->lead) return false;
    if (fingerprint_of(tail->bytes.bytes, tail->lead) != tail->at.fingerprint) return false;
    tail->bytes.len = (size_t)got;
    tail->at.modified = modified_ns(&info);
    return true;
}

static struct tail_data data_of(const struct tail *tail) {
    if (tail->bytes.len == tail->lead) return (struct tail_data){NULL, 0, false};
    return (struct tail_data){tail->bytes.bytes + tail->lead, tail->bytes.len - tail->lead, false};
}

static bool reaches_a_line(struct tail_data data, size_t most) {
    return data.len >= most || (data.len > 0 && memchr(data.bytes, '\n', data.len));
}

/* Fills until a line is complete or the file ends. */
static bool fill_line(struct tail *tail, size_t most) {
    for (size_t want = CHUNK < most ? CHUNK : most;; want = want < most / 2 ? want * 2 : most) {
        if (!fill(tail, want)) return false;
        if (reaches_a_line(data_of(tail), most) || data_of(tail).len < want) return true;
    }
}

static void close_file(struct tail *tail) {
    if (tail->file >= 0) close(tail->file);
    tail->file = -1;
}

static bool is_current(const struct tail *tail) {
    struct stat info;
    return stat(tail->path, &info) == 0 && same_file(&info, &tail->at);
}

/* Nothing complete is left in the file. If it has a successor, takes the rest as it
 * is, or goes on to the successor and returns true. */
static bool leave_file(struct tail *tail, size_t most, struct tail_data *data) {
    if (is_current(tail)) return false;
    struct siblings list = list_siblings(tail->path);
    const struct sibling *next = list.incomplete ? NULL : find_next(tail, &list);
    bool left = false;
    if (next) {
        /* Whoever writes has moved on to the next file, so one more look at this
         * one sees all of it. */
        size_t before = data->len;
        bool filled = fill_line(tail, most);
        *data = filled ? data_of(tail) : (struct tail_data){NULL, 0, false};
        data->final = filled && data->len == before;
        left = data->final && before == 0 && start_file(tail, next);
    }
    free_siblings(&list);
    return left;
}

struct tail_data tail_read(struct tail *tail, size_t most) {
    const struct tail_data nothing = {NULL, 0, false};
    struct tail_data data = nothing;
    do {
        if (tail->file < 0 && !locate(tail)) return nothing;
        if (!fill_line(tail, most)) {
            /* Not the content it was: look for that, and for this one, anew. */
            close_file(tail);
            return nothing;
        }
        data = data_of(tail);
    } while (!reaches_a_line(data, most) && leave_file(tail, most, &data));
    return reaches_a_line(data, most) || (data.final && data.len > 0) ? data : nothing;
}

void tail_advance(struct tail *tail, size_t len) {
    tail->at.offset += len;
    size_t behind = tail->lead + len; /* bytes in the buffer before the new offset */
    size_t covered = window(tail->at.offset);
    tail->at.fingerprint = fingerprint_of(tail->bytes.bytes + behind - covered, covered);
}

void tail_seek(struct tail *tail, const struct tail_position *to) {
    bool same = to->device == tail->at.device && to->inode == tail->at.inode;
    tail->at = *to;
    if (!same) close_file(tail);
}

void tail_init(struct tail *tail, const char *path, struct log log,
               const struct tail_position *from) {
    *tail = (struct tail){.path = path, .log = log, .file = -1, .at = *from};
}

void tail_free(struct tail *tail) {
    close_file(tail);
    buffer_free(&tail->bytes);
}

bool tail_end(const char *path, struct tail_position *end) {
    *end = (struct tail_position){0};
    int file = open_file(path);
    if (file < 0) return errno == ENOENT;
    struct stat info;
    uint8_t bytes[4096];
    bool ok = fstat(file, &info) == 0;
    uint64_t offset = ok ? (uint64_t)info.st_size : 0;
    for (bool found = false; ok && offset > 0 && !found;) {
        size_t len = offset < sizeof bytes ? (size_t)offset : sizeof bytes;
        ok = read_at(file, bytes, len, offset - len) == (ssize_t)len;
        while (ok && len > 0 && !(found = bytes[len - 1] == '\n')) {
            len--;
            offset--;
        }
    }
    size_t covered = window(offset);
    ok = ok && read_at(file, bytes, covered, offset - covered) == (ssize_t)covered;
    if (ok) {
        *end = (struct tail_position){offset, (uint64_t)info.st_dev, (uint64_t)info.st_ino,
                                      fingerprint_of(bytes, covered), modified_ns(&info)};
    }
    close(file);
    return ok;
}
