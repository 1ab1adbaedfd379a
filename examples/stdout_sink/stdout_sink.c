/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * stdout_sink: prints what it consumes. README.md lists its configuration.
 *
 * The lines of a batch are written together, so those of batches that are consumed
 * at the same time do not mix. A batch that could not be written has failed.
 */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "iggy_connector_config.h"
#include "syscalls.h"

struct stdout_sink {
    bool print_payload;
};

static pthread_mutex_t output = PTHREAD_MUTEX_INITIALIZER; /* there is but one stdout */

/* ---- Printing ------------------------------------------------------------- */

static void print_partition(FILE *out, const iggy_batch *batch) {
    fprintf(out, "%.*s/%.*s/%" PRIu32, (int)batch->topic.stream.len,
            (const char *)batch->topic.stream.data, (int)batch->topic.topic.len,
            (const char *)batch->topic.topic.data, batch->metadata.partition);
}

/* A terminal shows text; what is none is printed as base64. */
static bool print_payload(FILE *out, iggy_bytes payload) {
    if (iggy_is_utf8(payload)) {
        fwrite(payload.data, 1, payload.len, out);
        return true;
    }
    char *base64 = iggy_base64(payload);
    if (base64) fprintf(out, "\"%s\"", base64);
    free(base64);
    return base64 != NULL;
}

static bool print_payloads(FILE *out, iggy_batch *batch) {
    iggy_message message;
    bool ok = true;
    while (ok && iggy_next_message(&batch->messages, &message)) {
        print_partition(out, batch);
        fprintf(out, "@%" PRIu64 ": ", message.offset);
        ok = print_payload(out, message.payload);
        fputc('\n', out);
    }
    return ok;
}

static void print_summary(FILE *out, iggy_batch *batch) {
    iggy_message first, last;
    if (!iggy_next_message(&batch->messages, &first)) return;
    last = first;
    while (iggy_next_message(&batch->messages, &last)) {
    }
    print_partition(out, batch);
    fprintf(out, ": %" PRIu64 " messages, offsets %" PRIu64 " to %" PRIu64 "\n",
            batch->messages.count, first.offset, last.offset);
}

/* The text of a batch, which the caller frees; NULL: out of memory. */
static char *text_of(const struct stdout_sink *sink, iggy_batch *batch, size_t *len) {
    char *text = NULL;
    bool ok = true;
    FILE *out = open_memstream(&text, len);
    if (!out) return NULL;
    if (sink->print_payload) ok = print_payloads(out, batch);
    else print_summary(out, batch);
    ok = !ferror(out) && ok;
    if (fclose(out) == 0 && ok) return text;
    free(text);
    return NULL;
}

/* ---- The callbacks, described in iggy_connector_sdk.h --------------------- */

static int32_t open_sink(const iggy_open_args *args, void **instance) {
    struct stdout_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return IGGY_FAILED;
    iggy_config config = iggy_config_parse(args->config);
    sink->print_payload = iggy_config_bool(&config, "print_payload", false);
    iggy_config_free(&config);
    if (config.failed) {
        free(sink);
        return IGGY_INVALID;
    }
    *instance = sink;
    return IGGY_OK;
}

static int32_t consume(void *instance, iggy_batch *batch) {
    size_t len = 0;
    char *text = text_of(instance, batch, &len);
    if (!text) {
        iggy_log(IGGY_LOG_ERROR, "out of memory");
        return IGGY_FAILED;
    }
    pthread_mutex_lock(&output);
    int error = write_all(STDOUT_FILENO, text, len) ? 0 : errno;
    pthread_mutex_unlock(&output);
    free(text);
    if (error) iggy_log(IGGY_LOG_ERROR, "cannot print: %s", strerror(error));
    return error ? IGGY_FAILED : IGGY_OK;
}

static void close_sink(void *instance) { free(instance); }

static const iggy_sink_plugin plugin = {"stdout_sink", PLUGIN_VERSION, open_sink, consume,
                                        close_sink};
IGGY_SINK_PLUGIN(plugin)
