/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * file_source: each line of a growing file becomes a message.
 *
 * plugin_config:
 *     path              the file; it need not exist yet
 *     schema            "text" (default), "json" for NDJSON, or "raw"
 *     from              "beginning" (default) or "end": where to start when there is
 *                       no state yet
 *     batch_length      most lines in one batch, default 1000
 *     poll_interval_ms  pause at the end of the file, default 100
 *
 * A line ends with a line feed; a carriage return before it is dropped, and so are
 * empty lines, which Iggy does not take. A line is read when it is complete.
 *
 * Delivery: each batch carries the position behind its last line as the state. The
 * position moves when the batch is acknowledged and not before, so a batch that
 * failed is read again, and after a restart the host hands back the position of the
 * last batch it stored: no line is lost or repeated, also when the file was rotated
 * meanwhile (tail.h says what can be followed). State: MessagePack array
 * [offset, device, inode, fingerprint, modified], see struct tail_position.
 *
 * Thread safety: poll runs on the loop's thread, acknowledge and go_back maybe on
 * the host's, never two of them at once (source_loop.h).
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "config.h"
#include "connector.h"
#include "instances.h"
#include "postcard.h"
#include "source_loop.h"
#include "state.h"
#include "tail.h"

enum { STATE_FIELDS = 5 };

struct file_source {
    struct source_loop loop;
    struct log log;
    char *path;
    uint32_t schema;
    uint64_t batch_length;
    uint64_t poll_interval_ms;
    struct tail tail;
    struct tail_position acknowledged; /* where to go back to */
    struct buffer batch;
    bool in_long_line; /* the rest of a line that is too long is being skipped */
};

static struct instances instances = INSTANCES_INITIALIZER;

/* ---- Lines to messages ---------------------------------------------------- */

/* Takes the next line; false when none is complete. */
static bool next_line(struct tail_data *data, struct slice *line) {
    const uint8_t *end = data->len > 0 ? memchr(data->bytes, '\n', data->len) : NULL;
    if (!end && !(data->final && data->len > 0)) return false;
    size_t len = end ? (size_t)(end - data->bytes) : data->len;
    size_t taken = end ? len + 1 : len;
    *line = (struct slice){data->bytes, len};
    if (len > 0 && line->bytes[len - 1] == '\r') line->len--;
    data->bytes += taken;
    data->len -= taken;
    return true;
}

/* The format wants the count in front, so the lines are counted first. */
static uint64_t count_lines(struct tail_data data, uint64_t most) {
    uint64_t count = 0;
    for (struct slice line; count < most && next_line(&data, &line);) count += line.len > 0;
    return count;
}

/* Appends so many messages and returns the number of bytes they took in the file. */
static size_t put_lines(struct buffer *batch, struct tail_data data, uint64_t count) {
    const uint8_t *start = data.bytes;
    for (struct slice line; count > 0 && next_line(&data, &line);) {
        if (line.len == 0) continue;
        put_message(batch, line.bytes, line.len);
        count--;
    }
    return (size_t)(data.bytes - start);
}

static void put_position(struct buffer *batch, const struct tail_position *position) {
    const uint64_t fields[STATE_FIELDS] = {position->offset, position->device, position->inode,
                                           position->fingerprint, position->modified};
    uint8_t state[STATE_BYTES(STATE_FIELDS)];
    put_messages_end(batch, state, state_write(state, fields, STATE_FIELDS));
}

/* ---- The steps of the loop (source_loop.h) -------------------------------- */

/* Passes over what is no message: empty lines alone, or a piece of a line that no
 * message can hold. */
static void skip(struct file_source *source, struct tail_data data) {
    const uint8_t *last = data.bytes + data.len;
    while (last > data.bytes && last[-1] != '\n') last--;
    if (last > data.bytes) {
        tail_advance(&source->tail, (size_t)(last - data.bytes));
        return;
    }
    if (!source->in_long_line) {
        log_printf(&source->log, IGGY_LOG_ERROR,
                   "the line at byte %llu of %s is longer than the %d bytes a message can have; "
                   "it is skipped",
                   (unsigned long long)source->tail.at.offset, source->path,
                   IGGY_MAX_PAYLOAD_BYTES);
    }
    source->in_long_line = true;
    tail_advance(&source->tail, data.len);
}

/* Drops the end of a line whose beginning was skipped. */
static struct tail_data finish_long_line(struct file_source *source, struct tail_data data) {
    struct slice rest;
    struct tail_data behind = data;
    if (!next_line(&behind, &rest)) return data;
    source->in_long_line = false;
    tail_advance(&source->tail, data.len - behind.len);
    return tail_read(&source->tail, IGGY_MAX_PAYLOAD_BYTES + 2);
}

static bool poll_lines(void *self, struct source_batch *batch, unsigned *idle_ms) {
    struct file_source *source = self;
    /* Room for the longest line with its carriage return and line feed. */
    struct tail_data data = tail_read(&source->tail, IGGY_MAX_PAYLOAD_BYTES + 2);
    if (source->in_long_line) data = finish_long_line(source, data);
    if (data.len == 0) {
        *idle_ms = (unsigned)source->poll_interval_ms;
        return false;
    }
    /* Now that a file is open, going back means going back in this one. */
    if (source->acknowledged.inode == 0) source->acknowledged = source->tail.at;

    uint64_t count = count_lines(data, source->batch_length);
    if (count == 0) {
        skip(source, data);
        return false;
    }
    buffer_reset(&source->batch);
    put_messages_begin(&source->batch, source->schema, count);
    tail_advance(&source->tail, put_lines(&source->batch, data, count));
    put_position(&source->batch, &source->tail.at);
    if (source->batch.failed) {
        log_printf(&source->log, IGGY_LOG_ERROR, "out of memory, trying again");
        tail_seek(&source->tail, &source->acknowledged);
        *idle_ms = 1000;
        return false;
    }
    *batch = (struct source_batch){source->batch.bytes, source->batch.len};
    return true;
}

static void acknowledge(void *self) {
    struct file_source *source = self;
    source->acknowledged = source->tail.at;
}

static void go_back(void *self) {
    struct file_source *source = self;
    source->in_long_line = false;
    tail_seek(&source->tail, &source->acknowledged);
}

static const struct source_steps steps = {poll_lines, acknowledge, go_back};

/* ---- Opening -------------------------------------------------------------- */

static void free_source(struct file_source *source) {
    if (!source) return;
    tail_free(&source->tail);
    buffer_free(&source->batch);
    free(source->path);
    free(source);
}

static bool read_config(struct file_source *source, const uint8_t *bytes, size_t len,
                        bool *from_end) {
    struct config config = config_parse(bytes, len, source->log);
    source->batch_length = 1000;
    source->poll_interval_ms = 100;
    source->schema = IGGY_SCHEMA_TEXT;
    source->path = config_required_string(&config, "path");
    config_uint(&config, "batch_length", 1, 1000000, &source->batch_length);
    config_uint(&config, "poll_interval_ms", 1, 3600000, &source->poll_interval_ms);

    char *schema = config_string(&config, "schema");
    if (schema && strcmp(schema, "json") == 0) source->schema = IGGY_SCHEMA_JSON;
    else if (schema && strcmp(schema, "raw") == 0) source->schema = IGGY_SCHEMA_RAW;
    else if (schema && strcmp(schema, "text") != 0) {
        config_fault(&config, "schema", "\"text\", \"json\" or \"raw\"");
    }
    char *from = config_string(&config, "from");
    *from_end = from && strcmp(from, "end") == 0;
    if (from && !*from_end && strcmp(from, "beginning") != 0) {
        config_fault(&config, "from", "\"beginning\" or \"end\"");
    }
    free(schema);
    free(from);
    return !config.failed;
}

/* Finds where to start. False: the reason is in the log. */
static bool find_start(struct file_source *source, const uint8_t *state, size_t state_len,
                       bool from_end) {
    struct tail_position *start = &source->acknowledged;
    uint64_t fields[STATE_FIELDS] = {0};
    if (!state_read(&source->log, state, state_len, fields, STATE_FIELDS)) return false;
    *start = (struct tail_position){fields[0], fields[1], fields[2], fields[3], fields[4]};
    if (start->inode != 0) return true;
    struct stat info;
    if (stat(source->path, &info) == 0 && !S_ISREG(info.st_mode)) {
        log_printf(&source->log, IGGY_LOG_ERROR, "%s is not a regular file", source->path);
        return false;
    }
    if (from_end && !tail_end(source->path, start)) {
        log_printf(&source->log, IGGY_LOG_ERROR, "cannot read %s", source->path);
        return false;
    }
    return true;
}

static int32_t open_source(uint32_t id, const uint8_t *config, size_t config_len,
                           const uint8_t *state, size_t state_len, iggy_log_fn *log,
                           struct file_source **result) {
    bool from_end;
    struct file_source *source = calloc(1, sizeof *source);
    if (!source) return IGGY_FAILED;
    source->log = (struct log){log, "file_source"};
    source->tail.file = -1;
    if (!read_config(source, config, config_len, &from_end)) {
        free_source(source);
        return IGGY_INVALID;
    }
    if (!find_start(source, state, state_len, from_end) ||
        !source_loop_init(&source->loop, id, &steps, source, source->log)) {
        free_source(source);
        return IGGY_FAILED;
    }
    tail_init(&source->tail, source->path, source->log, &source->acknowledged);
    *result = source;
    return IGGY_OK;
}

/* ---- The exported functions; connector.h describes each ------------------- */

int32_t iggy_source_open(uint32_t id, const uint8_t *config, size_t config_len,
                         const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    struct instance *instance = instance_reserve(&instances, id);
    struct file_source *source = NULL;
    if (!instance) return IGGY_INVALID;
    int32_t code = open_source(id, config, config_len, state, state_len, log, &source);
    return instance_opened(&instances, instance, code, source);
}

static int32_t start(uint32_t id, iggy_send_fn *send, iggy_send_v2_fn *send_v2) {
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct file_source *source = instance->object;
    int32_t code = source_loop_start(&source->loop, send, send_v2);
    instance_release(&instances, instance);
    return code;
}

int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send) {
    return start(id, send, NULL);
}

#ifndef GENERATION_1_ONLY
int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send) {
    return start(id, NULL, send);
}

int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result) {
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct file_source *source = instance->object;
    int32_t code = source_loop_result(&source->loop, batch_id, result);
    instance_release(&instances, instance);
    return code;
}
#endif

int32_t iggy_source_close(uint32_t id) {
    struct instance *instance = instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct file_source *source = instance->object;
    if (source) source_loop_stop(&source->loop);
    free_source(source);
    return instance_end_close(&instances, instance);
}

const char *iggy_source_version(void) {
    return PLUGIN_VERSION;
}
