/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Follows a file that grows, through rotation and restarts.
 *
 * A position says where in which file: device and inode name the file, and
 * a fingerprint of the bytes just before the offset proves that it still has the
 * content that was read. So a file that was moved aside, replaced, copied or cut
 * short since is found again or told apart:
 *
 *     rename and create   The moved file is read to its end, then the next one.
 *     copy and truncate   The copy is read on from the offset, then the file from
 *                         its start.
 *     several rotations   All files in between are read, in the order of their age;
 *                         siblings.h says which names count.
 *
 * What cannot be found any more, such as a compressed copy, is reported as lost.
 */
#ifndef FILE_SOURCE_TAIL_H
#define FILE_SOURCE_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct tail_position {
    uint64_t offset;
    uint64_t device;
    uint64_t inode;
    uint64_t fingerprint;
    uint64_t modified; /* nanoseconds; when the file was last written to, as far as read */
};

struct tail {
    const char *path; /* the caller's */
    int file;         /* -1: none is open */
    struct tail_position at;
    uint8_t *bytes; /* what was read: `lead` bytes before the offset, then data */
    size_t len;
    size_t cap;
    size_t lead;
    bool idle; /* it was reported why nothing is read */
};

/* Starts at a position. One of all zeros is the start of whatever file is there. */
void tail_init(struct tail *tail, const char *path, const struct tail_position *from);
void tail_free(struct tail *tail);

/* The position behind the last complete line of the file that is there now. False
 * when it cannot be read; no file at all is the start of the one to come. */
bool tail_end(const char *path, struct tail_position *end);

struct tail_data {
    const uint8_t *bytes;
    size_t len;
    bool final; /* the file has ended: the rest is a line, terminated or not */
};

/* Reads from the position, in the next file when this one has ended. Empty: there is
 * nothing to be read now. Else the data holds a line feed, or is final, or is `most`
 * bytes long; it is to be advanced over, or sought away from, before the next call. */
struct tail_data tail_read(struct tail *tail, size_t most);

/* Moves the position over the first bytes of what was read last. */
void tail_advance(struct tail *tail, size_t len);

/* Moves the position anywhere; its file is looked for at the next read. */
void tail_seek(struct tail *tail, const struct tail_position *to);

#endif
