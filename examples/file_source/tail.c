/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "tail.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "iggy_connector_sdk.h"
#include "siblings.h"

enum {
    WINDOW = 256,       /* bytes before the offset that the fingerprint covers */
    CHUNK = 512 * 1024, /* bytes read at once, unless a line is longer */
};

static const struct tail_data nothing = {NULL, 0, false};

/* ---- Files and positions --------------------------------------------------- */

/* FNV-1a */
static uint64_t fingerprint_of(const uint8_t *bytes, size_t len) {
    uint64_t hash = 14695981039346656037u;
    for (size_t i = 0; i < len; i++) hash = (hash ^ bytes[i]) * 1099511628211u;
    return hash;
}

static size_t window(uint64_t offset) { return offset < WINDOW ? (size_t)offset : WINDOW; }

static bool same_file(const struct stat *info, const struct tail_position *position) {
    return (uint64_t)info->st_dev == position->device && (uint64_t)info->st_ino == position->inode;
}

static int open_file(const char *path) {
    int file;
    do file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    while (file < 0 && errno == EINTR);
    return file;
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

/* Unknown, by trouble or because the file is just being rotated, is neither yes nor
 * no: whoever asked must look again later and conclude nothing. */
enum answer { NO, YES, UNKNOWN };

/* Are the bytes before the offset those that were read? */
static enum answer has_content(int file, const struct tail_position *position) {
    uint8_t bytes[WINDOW];
    size_t len = window(position->offset);
    ssize_t got = read_at(file, bytes, len, position->offset - len);
    if (got < 0) return UNKNOWN;
    return got == (ssize_t)len && fingerprint_of(bytes, len) == position->fingerprint ? YES : NO;
}

static void close_file(struct tail *tail) {
    if (tail->file >= 0) close(tail->file);
    tail->file = -1;
}

/* Says once why nothing is read, until something is. */
static void report_idle(struct tail *tail, enum iggy_log_level level, const char *what,
                        const char *path, const char *why) {
    if (!tail->idle) iggy_log(level, "%s %s%s", what, path, why);
    tail->idle = true;
}

/* Opens a file for the position, if it has the content before it. */
static enum answer use_file(struct tail *tail, const struct sibling *sibling) {
    struct stat info;
    int file = open_file(sibling->path);
    if (file < 0 && errno != ENOENT) {
        report_idle(tail, IGGY_LOG_ERROR, "cannot open", sibling->path, ", trying again");
    }
    if (file < 0) return UNKNOWN;
    enum answer answer = UNKNOWN;
    if (fstat(file, &info) == 0 && info.st_ino == sibling->info.st_ino) {
        answer = has_content(file, &tail->at);
    }
    if (answer != YES) {
        close(file);
        return answer;
    }
    close_file(tail);
    tail->file = file;
    tail->at.device = (uint64_t)info.st_dev;
    tail->at.inode = (uint64_t)info.st_ino;
    return YES;
}

/* ---- Reading from the open file -------------------------------------------- */

/* Whether the file still begins, from an offset on, with bytes that were read. */
static bool still_holds(int file, const uint8_t *bytes, size_t len, uint64_t offset) {
    uint8_t again[WINDOW];
    if (len > sizeof again) len = sizeof again;
    return read_at(file, again, len, offset) == (ssize_t)len && memcmp(again, bytes, len) == 0;
}

static bool reserve(struct tail *tail, size_t cap) {
    if (cap <= tail->cap) return true;
    uint8_t *bytes = realloc(tail->bytes, cap);
    if (!bytes) return false;
    tail->bytes = bytes;
    tail->cap = cap;
    return true;
}

/* Reads the window and up to `want` bytes of data behind it. False: the file does not
 * hold what was read from it before, was cut short meanwhile, or cannot be read. */
static bool fill(struct tail *tail, size_t want) {
    struct stat info;
    tail->lead = window(tail->at.offset);
    tail->len = 0;
    uint64_t start = tail->at.offset - tail->lead;
    if (!reserve(tail, tail->lead + want) || fstat(tail->file, &info) != 0) return false;
    ssize_t got = read_at(tail->file, tail->bytes, tail->lead + want, start);
    if (got < (ssize_t)tail->lead) return false;
    if (fingerprint_of(tail->bytes, tail->lead) != tail->at.fingerprint) return false;
    /* The end may stem from another file than the beginning, if it was replaced while
     * it was read; then the beginning has changed too. */
    if (!still_holds(tail->file, tail->bytes, (size_t)got, start)) return false;
    tail->len = (size_t)got;
    tail->at.modified = modified_ns(&info);
    tail->idle = false;
    return true;
}

static struct tail_data data_of(const struct tail *tail) {
    if (tail->len == tail->lead) return nothing;
    return (struct tail_data){tail->bytes + tail->lead, tail->len - tail->lead, false};
}

static bool reaches_a_line(struct tail_data data, size_t most) {
    return data.len >= most || (data.len > 0 && memchr(data.bytes, '\n', data.len));
}

/* Reads until a line is complete or the file ends. False as in fill. */
static bool fill_line(struct tail *tail, size_t most, struct tail_data *data) {
    for (size_t want = CHUNK < most ? CHUNK : most;; want = want < most / 2 ? want * 2 : most) {
        *data = nothing;
        if (!fill(tail, want)) return false;
        *data = data_of(tail);
        if (reaches_a_line(*data, most) || data->len < want) return true;
    }
}

/* ---- The file of the position ---------------------------------------------- */

/* Nothing was read before the position, so nothing proves which file it is in. */
static bool unproven(const struct tail_position *position) { return position->offset == 0; }

/* Opens the file that the position was taken in, whatever its name is now, or a copy
 * of it that is no older than what was read. */
static enum answer find_file(struct tail *tail, const struct siblings *list) {
    enum answer answer = NO;
    if (unproven(&tail->at)) return NO;
    for (size_t i = list->count; answer == NO && i-- > 0;) {
        if (same_file(&list->all[i].info, &tail->at)) answer = use_file(tail, &list->all[i]);
    }
    for (size_t i = list->count; answer == NO && i-- > 0;) {
        if (modified_ns(&list->all[i].info) >= tail->at.modified) {
            answer = use_file(tail, &list->all[i]);
        }
    }
    return answer;
}

static bool is_current(const struct tail *tail) {
    struct stat info;
    return stat(tail->path, &info) == 0 && same_file(&info, &tail->at);
}

/* ---- The file after it ------------------------------------------------------ */

/* Between the two steps of copy and truncate the file still holds what its copy has:
 * it was not written to since, and begins as the copy does. */
static bool is_not_truncated_yet(const struct sibling *current, const struct sibling *copy) {
    uint8_t a[WINDOW], b[WINDOW];
    if (modified_ns(&current->info) > modified_ns(&copy->info)) return false;
    int x = open_file(current->path), y = open_file(copy->path);
    ssize_t m = x < 0 ? -1 : read_at(x, a, sizeof a, 0);
    ssize_t n = y < 0 ? -1 : read_at(y, b, sizeof b, 0);
    if (x >= 0) close(x);
    if (y >= 0) close(y);
    return n > 0 && n <= m && memcmp(a, b, (size_t)n) == 0;
}

/* The oldest file that holds anything newer than the position. `found`: the file of
 * the position is known; it is not, when it is gone or was never read from. */
static const struct sibling *find_next(const struct tail_position *position,
                                       const struct siblings *list, bool found) {
    const struct sibling *own = NULL;
    if (list->incomplete) return NULL;
    if (position->modified == 0) return current_sibling(list); /* from no file at all */
    for (size_t i = 0; found && i < list->count; i++) {
        if (same_file(&list->all[i].info, position)) own = &list->all[i];
    }
    for (size_t i = 0; i < list->count; i++) {
        const struct sibling *other = &list->all[i];
        if (other == own || other->info.st_size == 0) continue;
        bool newer = own ? compare_age(other, own) > 0
                         : other->current || modified_ns(&other->info) > position->modified ||
                               (!found && same_file(&other->info, position));
        if (newer) return own && other->current && is_not_truncated_yet(other, own) ? NULL : other;
    }
    return NULL;
}

/* True when the file now open is the one to follow `before`, also after it was read. */
static bool is_still_next(const struct tail *tail, const struct tail_position *before, bool found) {
    struct siblings list = list_siblings(tail->path);
    const struct sibling *next = find_next(before, &list, found);
    bool yes = next && same_file(&next->info, &tail->at);
    free_siblings(&list);
    return yes;
}

/* A file that was moved aside and has a successor that was written to is complete. */
static bool is_complete(const struct siblings *list, const struct sibling *sibling) {
    const struct sibling *current = current_sibling(list);
    return current && current != sibling && current->info.st_size > 0 &&
           !is_not_truncated_yet(current, sibling);
}

/* Reads the first lines of the next file. The position moves only with them: as long
 * as nothing was read, nothing would tell a file from the one that replaces it. */
static struct tail_data read_next(struct tail *tail, bool found, size_t most) {
    struct tail_position before = tail->at;
    struct tail_data data = nothing;
    struct siblings list = list_siblings(tail->path);
    const struct sibling *next = find_next(&before, &list, found);
    tail->at.offset = 0;
    tail->at.fingerprint = fingerprint_of(NULL, 0);
    if (next && use_file(tail, next) == YES && fill_line(tail, most, &data)) {
        data.final = !reaches_a_line(data, most) && is_complete(&list, next);
    }
    bool useful = reaches_a_line(data, most) || (data.final && data.len > 0);
    if (!useful || !is_still_next(tail, &before, found)) {
        close_file(tail);
        tail->at = before;
        data = nothing;
    } else if (!found && !unproven(&before)) {
        iggy_log(IGGY_LOG_WARN,
                 "the file that was read up to byte %llu is gone; what followed there is lost; "
                 "going on at the start of %s",
                 (unsigned long long)before.offset, next->path);
    }
    free_siblings(&list);
    return data;
}

/* ---- The interface ---------------------------------------------------------- */

/* Reads while no file is open: looks for that of the position first. */
static struct tail_data open_and_read(struct tail *tail, size_t most) {
    struct siblings list = list_siblings(tail->path);
    enum answer found = list.incomplete ? UNKNOWN : find_file(tail, &list);
    /* What was made while the files were looked at has not been looked at. */
    if (found == NO && !is_unchanged(&list, tail->path)) found = UNKNOWN;
    if (list.incomplete) {
        report_idle(tail, IGGY_LOG_WARN, "cannot list the files beside", tail->path,
                    ", trying again");
    } else if (!current_sibling(&list)) {
        report_idle(tail, IGGY_LOG_INFO, "waiting for", tail->path, "");
    }
    free_siblings(&list);
    return found == YES  ? tail_read(tail, most)
           : found == NO ? read_next(tail, false, most)
                         : nothing;
}

struct tail_data tail_read(struct tail *tail, size_t most) {
    struct tail_data data, rest;
    if (tail->file < 0) return open_and_read(tail, most);
    if (!fill_line(tail, most, &data)) {
        close_file(tail); /* not the content it was: look for that, next time */
        return nothing;
    }
    if (reaches_a_line(data, most)) return data;
    if (is_current(tail)) return nothing;

    struct siblings list = list_siblings(tail->path);
    bool left = find_next(&tail->at, &list, true) != NULL;
    free_siblings(&list);
    if (!left) return nothing;
    /* Whoever writes has moved on to the next file, so one more look at this one sees
     * all of it. */
    if (!fill_line(tail, most, &rest)) return nothing;
    if (rest.len != data.len) return reaches_a_line(rest, most) ? rest : nothing;
    if (rest.len == 0) return read_next(tail, true, most);
    rest.final = true;
    return rest;
}

void tail_advance(struct tail *tail, size_t len) {
    tail->at.offset += len;
    size_t behind = tail->lead + len; /* bytes in the buffer before the new offset */
    size_t covered = window(tail->at.offset);
    tail->at.fingerprint = fingerprint_of(tail->bytes + behind - covered, covered);
}

void tail_seek(struct tail *tail, const struct tail_position *to) {
    bool same = to->device == tail->at.device && to->inode == tail->at.inode;
    if (!same || unproven(to)) close_file(tail);
    tail->at = *to;
}

void tail_init(struct tail *tail, const char *path, const struct tail_position *from) {
    *tail = (struct tail){.path = path, .file = -1, .at = *from};
}

void tail_free(struct tail *tail) {
    close_file(tail);
    free(tail->bytes);
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
