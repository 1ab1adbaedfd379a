/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * file_sink: appends each message to a file, as one line of JSON. README.md shows a line
 * and lists the configuration.
 *
 * A batch counts as consumed when it is on disk: it is written with one call and
 * followed by fsync. When that fails, the file is cut back to where the batch began,
 * so it never ends in half a line, and the batch has failed as a whole. What a crash
 * left behind is cut off at the next open in the same way.
 *
 * A batch may come again (connector.h). Stream, topic, partition and offset in each
 * line tell a repeated message from a new one.
 *
 * The file stays open: rotate it by copying and truncating.
 *
 * Several consume calls, instances and processes may append to one file: they take
 * turns, by a mutex within an instance and by flock between instances.
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "iggy_connector_config.h"
#include "iggy_connector_json.h"
#include "syscalls.h"

struct file_sink {
    char *path;
    int file;
    pthread_mutex_t mutex; /* flock does not part threads that share a descriptor */
};

/* ---- The file ------------------------------------------------------------- */

static bool lock_file(int file) {
    int error;
    do error = flock(file, LOCK_EX);
    while (error != 0 && errno == EINTR);
    return error == 0;
}

/* Where the last complete line ends, or -1. */
static off_t end_of_lines(int file, off_t size) {
    char bytes[4096];
    while (size > 0) {
        size_t len = size < (off_t)sizeof bytes ? (size_t)size : sizeof bytes;
        if (pread(file, bytes, len, size - (off_t)len) != (ssize_t)len) return -1;
        for (size_t i = len; i > 0; i--) {
            if (bytes[i - 1] == '\n') return size - (off_t)(len - i);
        }
        size -= (off_t)len;
    }
    return 0;
}

/* Cuts off half a line, if it is one of ours, else ends it; the file is locked. */
static bool repair(struct file_sink *sink) {
    static const char ours[] = "{\"stream\":";
    struct stat info;
    if (fstat(sink->file, &info) != 0) return false;
    off_t end = end_of_lines(sink->file, info.st_size);
    if (end < 0 || end == info.st_size) return end >= 0;
    char start[sizeof ours - 1];
    ssize_t got = pread(sink->file, start, sizeof start, end);
    if (got < 0) return false;
    if (memcmp(start, ours, (size_t)got) != 0) {
        return write_all(sink->file, "\n", 1);
    }
    iggy_log(IGGY_LOG_WARN, "%s ended in half a line, which is cut off", sink->path);
    return ftruncate(sink->file, end) == 0;
}

/* Makes the name of a new file as lasting as its content. */
static bool sync_directory(const char *path) {
    const char *slash = strrchr(path, '/');
    char *directory = slash == path ? strdup("/")
                      : slash       ? strndup(path, (size_t)(slash - path))
                                    : strdup(".");
    int file = directory ? open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    free(directory);
    if (file < 0) return false;
    bool ok = sync_file(file);
    close(file);
    return ok;
}

static bool open_file(struct file_sink *sink) {
    struct stat info;
    do sink->file = open(sink->path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    while (sink->file < 0 && errno == EINTR);
    bool ok = sink->file >= 0 && fstat(sink->file, &info) == 0 && lock_file(sink->file);
    if (ok) {
        /* A pipe or a device has no end to repair. */
        ok = !S_ISREG(info.st_mode) || (repair(sink) && sync_directory(sink->path));
        flock(sink->file, LOCK_UN);
    }
    if (!ok) {
        iggy_log(IGGY_LOG_ERROR, "cannot open %s: %s", sink->path, strerror(errno));
    }
    return ok;
}

/* Writes the lines and waits for the disk; the file is locked. */
static bool append_locked(struct file_sink *sink, const char *lines, size_t len) {
    struct stat before;
    if (fstat(sink->file, &before) != 0) return false;
    if (write_all(sink->file, lines, len) && sync_file(sink->file)) return true;
    int error = errno;
    if (S_ISREG(before.st_mode) && ftruncate(sink->file, before.st_size) != 0) {
        iggy_log(IGGY_LOG_ERROR, "%s may end in half a line: %s", sink->path, strerror(errno));
    }
    errno = error;
    return false;
}

/* False: errno says why. */
static bool append(struct file_sink *sink, const char *lines, size_t len) {
    pthread_mutex_lock(&sink->mutex);
    bool ok = lock_file(sink->file) && append_locked(sink, lines, len);
    int error = errno;
    flock(sink->file, LOCK_UN);
    pthread_mutex_unlock(&sink->mutex);
    errno = error;
    return ok;
}

/* ---- Lines ---------------------------------------------------------------- */

/* What one message is about; see README.md. */
static bool fill_record(cJSON *record, const iggy_batch *batch, const iggy_message *message) {
    return iggy_json_add_text(record, "stream", batch->topic.stream) &&
           iggy_json_add_text(record, "topic", batch->topic.topic) &&
           iggy_json_add_uint(record, "partition", batch->metadata.partition) &&
           iggy_json_add_uint(record, "offset", message->offset) &&
           iggy_json_add_headers(record, "headers", message) &&
           iggy_json_add_payload(record, "payload", batch->metadata.schema, message->payload);
}

static bool print_record(FILE *out, const iggy_batch *batch, const iggy_message *message) {
    cJSON *record = cJSON_CreateObject();
    char *line = fill_record(record, batch, message) ? cJSON_PrintUnformatted(record) : NULL;
    if (line) fprintf(out, "%s\n", line);
    cJSON_free(line);
    cJSON_Delete(record);
    return line != NULL;
}

/* The lines of a batch, which the caller frees; NULL: one of its messages cannot be told. */
static char *lines_of(iggy_batch *batch, size_t *len) {
    char *lines = NULL;
    iggy_message message;
    FILE *out = open_memstream(&lines, len);
    bool ok = out != NULL;
    while (ok && iggy_next_message(&batch->messages, &message)) {
        ok = print_record(out, batch, &message);
    }
    ok = ok && !ferror(out);
    if (out && fclose(out) == 0 && ok) return lines;
    free(lines);
    return NULL;
}

/* ---- The callbacks, described in iggy_connector_sdk.h --------------------- */

static void close_sink(void *instance) {
    struct file_sink *sink = instance;
    if (sink->file >= 0) close(sink->file);
    pthread_mutex_destroy(&sink->mutex);
    free(sink->path);
    free(sink);
}

static int32_t ready(struct file_sink *sink, iggy_bytes json) {
    iggy_config config = iggy_config_parse(json);
    sink->path = strdup(iggy_config_required_string(&config, "path"));
    iggy_config_free(&config);
    if (config.failed) return IGGY_INVALID;
    return sink->path && open_file(sink) ? IGGY_OK : IGGY_FAILED;
}

static int32_t open_sink(const iggy_open_args *args, void **instance) {
    struct file_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return IGGY_FAILED;
    sink->file = -1;
    pthread_mutex_init(&sink->mutex, NULL);
    int32_t code = ready(sink, args->config);
    if (code == IGGY_OK) *instance = sink;
    else close_sink(sink);
    return code;
}

static int32_t consume(void *instance, iggy_batch *batch) {
    struct file_sink *sink = instance;
    size_t len = 0;
    char *lines = lines_of(batch, &len);
    if (!lines) {
        iggy_log(IGGY_LOG_ERROR, "headers of a message cannot be decoded, or memory is short");
        return IGGY_INVALID;
    }
    bool ok = len == 0 || append(sink, lines, len);
    if (!ok) iggy_log(IGGY_LOG_ERROR, "cannot append to %s: %s", sink->path, strerror(errno));
    free(lines);
    return ok ? IGGY_OK : IGGY_FAILED;
}

static const iggy_sink_plugin plugin = {"file_sink", PLUGIN_VERSION, open_sink, consume,
                                        close_sink};
IGGY_SINK_PLUGIN(plugin)
