/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * file_source: each line of a growing file becomes a message. README.md lists its
 * configuration.
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
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "iggy_connector_config.h"
#include "iggy_connector_state.h"
#include "tail.h"

struct file_source {
    char *path;
    enum iggy_schema schema;
    uint64_t batch_length;
    unsigned poll_interval_ms;
    bool from_end;
    struct tail tail;
    struct tail_position acknowledged; /* where to go back to */
    bool in_long_line;                 /* the rest of a line that is too long is being skipped */
};

/* ---- Lines to messages ---------------------------------------------------- */

/* Takes the next line; false when none is complete. */
static bool next_line(struct tail_data *data, iggy_bytes *line) {
    const uint8_t *end = data->len > 0 ? memchr(data->bytes, '\n', data->len) : NULL;
    if (!end && !(data->final && data->len > 0)) return false;
    size_t len = end ? (size_t)(end - data->bytes) : data->len;
    size_t taken = end ? len + 1 : len;
    *line = (iggy_bytes){data->bytes, len};
    if (len > 0 && line->data[len - 1] == '\r') line->len--;
    data->bytes += taken;
    data->len -= taken;
    return true;
}

/* Produces the lines and returns the number of bytes that they took in the file; 0: there
 * is no line among them, or none but empty ones. */
static size_t produce_lines(iggy_producer *producer, struct tail_data data, uint64_t most) {
    const uint8_t *start = data.bytes;
    uint64_t count = 0;
    for (iggy_bytes line; count < most && next_line(&data, &line);) {
        if (line.len == 0) continue;
        iggy_produce(producer, line.data, line.len);
        count++;
    }
    return count > 0 ? (size_t)(data.bytes - start) : 0;
}

static void produce_position(iggy_producer *producer, const struct tail_position *position) {
    iggy_state_begin(producer, 5);
    iggy_state_put_uint(producer, position->offset);
    iggy_state_put_uint(producer, position->device);
    iggy_state_put_uint(producer, position->inode);
    iggy_state_put_uint(producer, position->fingerprint);
    iggy_state_put_uint(producer, position->modified);
}

/* ---- Polling -------------------------------------------------------------- */

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
        iggy_log(IGGY_LOG_ERROR,
                 "the line at byte %llu of %s is longer than the %d bytes a message can have; "
                 "it is skipped",
                 (unsigned long long)source->tail.at.offset, source->path, IGGY_MAX_PAYLOAD_BYTES);
    }
    source->in_long_line = true;
    tail_advance(&source->tail, data.len);
}

/* Drops the end of a line whose beginning was skipped. */
static struct tail_data finish_long_line(struct file_source *source, struct tail_data data) {
    iggy_bytes rest;
    struct tail_data behind = data;
    if (!next_line(&behind, &rest)) return data;
    source->in_long_line = false;
    tail_advance(&source->tail, data.len - behind.len);
    return tail_read(&source->tail, IGGY_MAX_PAYLOAD_BYTES + 2);
}

static int32_t poll_lines(void *instance, iggy_producer *producer) {
    struct file_source *source = instance;
    /* Room for the longest line with its carriage return and line feed. */
    struct tail_data data = tail_read(&source->tail, IGGY_MAX_PAYLOAD_BYTES + 2);
    if (source->in_long_line) data = finish_long_line(source, data);
    if (data.len == 0) {
        iggy_produce_wait(producer, source->poll_interval_ms);
        return IGGY_OK;
    }
    /* Now that a file is open, going back means going back in this one. */
    if (source->acknowledged.inode == 0) source->acknowledged = source->tail.at;

    size_t taken = produce_lines(producer, data, source->batch_length);
    if (taken == 0) {
        skip(source, data);
        return IGGY_OK;
    }
    tail_advance(&source->tail, taken);
    iggy_produce_schema(producer, source->schema);
    produce_position(producer, &source->tail.at);
    return IGGY_OK;
}

static int32_t on_batch_result(void *instance, enum iggy_batch_result result) {
    struct file_source *source = instance;
    if (result == IGGY_BATCH_ACK) {
        source->acknowledged = source->tail.at;
    } else {
        source->in_long_line = false;
        tail_seek(&source->tail, &source->acknowledged);
    }
    return IGGY_OK;
}

/* ---- Open and close ------------------------------------------------------- */

static void close_source(void *instance) {
    struct file_source *source = instance;
    tail_free(&source->tail);
    free(source->path);
    free(source);
}

static bool read_config(struct file_source *source, iggy_bytes json) {
    iggy_config config = iggy_config_parse(json);
    source->path = strdup(iggy_config_required_string(&config, "path"));
    source->batch_length = (uint64_t)iggy_config_int(&config, "batch_length", 1, 1000000, 1000);
    source->poll_interval_ms =
        (unsigned)iggy_config_int(&config, "poll_interval_ms", 1, 3600000, 100);

    const char *schema = iggy_config_string(&config, "schema", "text");
    source->schema = strcmp(schema, "json") == 0  ? IGGY_SCHEMA_JSON
                     : strcmp(schema, "raw") == 0 ? IGGY_SCHEMA_RAW
                                                  : IGGY_SCHEMA_TEXT;
    if (source->schema == IGGY_SCHEMA_TEXT && strcmp(schema, "text") != 0) {
        iggy_config_fault(&config, "schema", "\"text\", \"json\" or \"raw\"");
    }
    const char *from = iggy_config_string(&config, "from", "beginning");
    source->from_end = strcmp(from, "end") == 0;
    if (!source->from_end && strcmp(from, "beginning") != 0) {
        iggy_config_fault(&config, "from", "\"beginning\" or \"end\"");
    }
    iggy_config_free(&config);
    return !config.failed;
}

/* False: it was not written by this plugin. */
static bool read_position(struct tail_position *position, iggy_bytes bytes) {
    iggy_state state = iggy_state_read(bytes);
    position->offset = iggy_state_take_uint(&state);
    position->device = iggy_state_take_uint(&state);
    position->inode = iggy_state_take_uint(&state);
    position->fingerprint = iggy_state_take_uint(&state);
    position->modified = iggy_state_take_uint(&state);
    return iggy_state_end(&state);
}

/* Finds where to start. False: the reason is in the log. */
static bool find_start(struct file_source *source, iggy_bytes state) {
    struct tail_position *start = &source->acknowledged;
    if (!read_position(start, state)) return false;
    if (start->inode != 0) return true;
    struct stat info;
    if (stat(source->path, &info) == 0 && !S_ISREG(info.st_mode)) {
        iggy_log(IGGY_LOG_ERROR, "%s is not a regular file", source->path);
        return false;
    }
    if (source->from_end && !tail_end(source->path, start)) {
        iggy_log(IGGY_LOG_ERROR, "cannot read %s", source->path);
        return false;
    }
    return true;
}

static int32_t ready(struct file_source *source, const iggy_open_args *args) {
    if (!read_config(source, args->config)) return IGGY_INVALID;
    if (!source->path || !find_start(source, args->state)) return IGGY_FAILED;
    tail_init(&source->tail, source->path, &source->acknowledged);
    return IGGY_OK;
}

static int32_t open_source(const iggy_open_args *args, void **instance) {
    struct file_source *source = calloc(1, sizeof *source);
    if (!source) return IGGY_FAILED;
    source->tail.file = -1;
    int32_t code = ready(source, args);
    if (code == IGGY_OK) *instance = source;
    else close_source(source);
    return code;
}

static const iggy_source_plugin plugin = {"file_source", PLUGIN_VERSION,  open_source,
                                          poll_lines,    on_batch_result, close_source};
IGGY_SOURCE_PLUGIN(plugin)
