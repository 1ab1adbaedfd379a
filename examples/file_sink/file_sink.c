/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * file_sink: appends each message to a file, as one line of JSON (record.h).
 *
 * plugin_config:
 *     path    the file; created when it is not there, its directory is not
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
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config.h"
#include "connector.h"
#include "instances.h"
#include "io.h"
#include "record.h"

struct file_sink {
    struct log log;
    char *path;
    int file;
    pthread_mutex_t mutex; /* flock does not part threads that share a descriptor */
};

static struct instances instances = INSTANCES_INITIALIZER;

/* ---- The file ------------------------------------------------------------- */

static bool lock_file(int file) {
    int error;
    do error = flock(file, LOCK_EX);
    while (error != 0 && errno == EINTR);
    return error == 0;
}

/* Where the last complete line ends, or -1. */
static off_t end_of_lines(int file, off_t size) {
    uint8_t bytes[4096];
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
        return write_all(sink->file, (const uint8_t *)"\n", 1);
    }
    log_printf(&sink->log, IGGY_LOG_WARN, "%s ended in half a line, which is cut off", sink->path);
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
        log_printf(&sink->log, IGGY_LOG_ERROR, "cannot open %s: %s", sink->path, strerror(errno));
    }
    return ok;
}

/* Writes the lines and waits for the disk; the file is locked. */
static bool append_locked(struct file_sink *sink, const struct buffer *lines) {
    struct stat before;
    if (fstat(sink->file, &before) != 0) return false;
    if (write_all(sink->file, lines->bytes, lines->len) && sync_file(sink->file)) return true;
    int error = errno;
    if (S_ISREG(before.st_mode) && ftruncate(sink->file, before.st_size) != 0) {
        log_printf(&sink->log, IGGY_LOG_ERROR, "%s may end in half a line: %s", sink->path,
                   strerror(errno));
    }
    errno = error;
    return false;
}

static int32_t append(struct file_sink *sink, const struct buffer *lines) {
    if (lines->failed) {
        log_printf(&sink->log, IGGY_LOG_ERROR, "out of memory");
        return IGGY_FAILED;
    }
    if (lines->len == 0) return IGGY_OK;
    pthread_mutex_lock(&sink->mutex);
    bool ok = lock_file(sink->file);
    if (ok) {
        ok = append_locked(sink, lines);
        int error = errno;
        flock(sink->file, LOCK_UN);
        errno = error;
    }
    int error = errno;
    pthread_mutex_unlock(&sink->mutex);
    if (!ok) {
        log_printf(&sink->log, IGGY_LOG_ERROR, "cannot append to %s: %s", sink->path,
                   strerror(error));
    }
    return ok ? IGGY_OK : IGGY_FAILED;
}

/* ---- The exported functions; connector.h describes each ------------------- */

static void free_sink(struct file_sink *sink) {
    if (!sink) return;
    if (sink->file >= 0) close(sink->file);
    pthread_mutex_destroy(&sink->mutex);
    free(sink->path);
    free(sink);
}

static int32_t open_sink(const uint8_t *config_json, size_t config_len, struct file_sink *sink) {
    struct config config = config_parse(config_json, config_len, sink->log);
    sink->path = config_required_string(&config, "path");
    if (config.failed) return IGGY_INVALID;
    return open_file(sink) ? IGGY_OK : IGGY_FAILED;
}

int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len, iggy_log_fn *log) {
    struct instance *instance = instance_reserve(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct file_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return instance_opened(&instances, instance, IGGY_FAILED, NULL);
    *sink = (struct file_sink){.log = {log, "file_sink"}, .file = -1};
    pthread_mutex_init(&sink->mutex, NULL);
    int32_t code = open_sink(config, config_len, sink);
    return instance_opened(&instances, instance, code, sink);
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic_bytes, size_t topic_len,
                          const uint8_t *metadata_bytes, size_t metadata_len,
                          const uint8_t *messages_bytes, size_t messages_len) {
    struct instance *instance = instance_acquire(&instances, id);
    if (!instance) return IGGY_INVALID;
    struct file_sink *sink = instance->object;
    struct reader topic_reader = reader_over(topic_bytes, topic_len);
    struct reader metadata_reader = reader_over(metadata_bytes, metadata_len);
    struct reader messages = reader_over(messages_bytes, messages_len);
    struct topic_metadata topic = read_topic_metadata(&topic_reader);
    struct messages_metadata metadata = read_messages_metadata(&metadata_reader);
    uint64_t count = read_message_count(&messages);
    bool sound = !topic_reader.failed && !metadata_reader.failed;
    struct buffer lines = {0};
    for (uint64_t i = 0; i < count && sound; i++) {
        struct message message = read_message(&messages);
        sound = !messages.failed && put_record(&lines, &topic, &metadata, &message);
    }
    sound = sound && !messages.failed;
    int32_t code = sound ? append(sink, &lines) : IGGY_INVALID;
    if (!sound) log_printf(&sink->log, IGGY_LOG_ERROR, "a batch that cannot be decoded");
    buffer_free(&lines);
    instance_release(&instances, instance);
    return code;
}

int32_t iggy_sink_close(uint32_t id) {
    struct instance *instance = instance_begin_close(&instances, id);
    if (!instance) return IGGY_INVALID;
    free_sink(instance->object);
    return instance_end_close(&instances, instance);
}

const char *iggy_sink_version(void) {
    return PLUGIN_VERSION;
}
