/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * http_sink: posts messages to an HTTP service. README.md lists its configuration.
 *
 * A batch counts as consumed when each of its requests was answered with 2xx. When one was
 * not, the host hands the batch over again as a whole: stream, topic, partition and offset
 * in the metadata tell a repeated message from a new one.
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "iggy_connector_config.h"
#include "iggy_connector_json.h"
#include "request.h"

enum mode { INDIVIDUAL, NDJSON, JSON_ARRAY, RAW };

static const struct {
    const char *name;
    const char *content_type;
} modes[] = {
    {"individual", "Content-Type: application/json"},
    {"ndjson", "Content-Type: application/x-ndjson"},
    {"json_array", "Content-Type: application/json"},
    {"raw", "Content-Type: application/octet-stream"},
};

/* A connection that no call is using. */
struct idle {
    CURL *curl;
    struct idle *next;
};

struct http_sink {
    iggy_config config; /* the endpoint's texts are in it */
    struct endpoint endpoint;
    enum mode mode;
    bool include_metadata;
    pthread_mutex_t mutex; /* guards what follows */
    struct idle *idle;
};

/* ---- Connections ---------------------------------------------------------- */

/* Calls run side by side, each with a connection of its own that later ones use again. */
static struct idle *take_connection(struct http_sink *sink) {
    pthread_mutex_lock(&sink->mutex);
    struct idle *taken = sink->idle;
    if (taken) sink->idle = taken->next;
    pthread_mutex_unlock(&sink->mutex);
    if (taken) return taken;
    taken = calloc(1, sizeof *taken);
    if (taken) taken->curl = request_connect(&sink->endpoint);
    if (taken && taken->curl) return taken;
    free(taken);
    iggy_log(IGGY_LOG_ERROR, "out of memory");
    return NULL;
}

static void give_back(struct http_sink *sink, struct idle *connection) {
    pthread_mutex_lock(&sink->mutex);
    connection->next = sink->idle;
    sink->idle = connection;
    pthread_mutex_unlock(&sink->mutex);
}

/* ---- Bodies --------------------------------------------------------------- */

static bool add_metadata(cJSON *object, const iggy_batch *batch, const iggy_message *message) {
    char id[33];
    snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, message->id.high, message->id.low);
    cJSON *metadata = cJSON_AddObjectToObject(object, "metadata");
    return cJSON_AddStringToObject(metadata, "iggy_id", id) &&
           iggy_json_add_uint(metadata, "iggy_timestamp", message->timestamp) &&
           iggy_json_add_text(metadata, "iggy_stream", batch->topic.stream) &&
           iggy_json_add_text(metadata, "iggy_topic", batch->topic.topic) &&
           iggy_json_add_uint(metadata, "iggy_partition_id", batch->metadata.partition) &&
           iggy_json_add_uint(metadata, "iggy_offset", message->offset) &&
           (message->headers.len == 0 || iggy_json_add_headers(metadata, "iggy_headers", message));
}

/* One message as JSON, to be freed with cJSON_free; NULL: it cannot be told. */
static char *json_of(const struct http_sink *sink, const iggy_batch *batch,
                     const iggy_message *message) {
    cJSON *object = cJSON_CreateObject();
    bool ok = (!sink->include_metadata || add_metadata(object, batch, message)) &&
              iggy_json_add_payload(object, "payload", batch->metadata.schema, message->payload);
    const cJSON *shown = sink->include_metadata ? object : cJSON_GetObjectItem(object, "payload");
    char *text = ok ? cJSON_PrintUnformatted(shown) : NULL;
    cJSON_Delete(object);
    if (!text) {
        iggy_log(IGGY_LOG_ERROR, "headers of a message cannot be decoded, or memory is short");
    }
    return text;
}

static bool print_all(FILE *out, const struct http_sink *sink, iggy_batch *batch) {
    const char *before = sink->mode == JSON_ARRAY ? "[" : "";
    iggy_message message;
    while (iggy_next_message(&batch->messages, &message)) {
        char *json = json_of(sink, batch, &message);
        if (!json) return false;
        fprintf(out, "%s%s", before, json);
        cJSON_free(json);
        before = sink->mode == JSON_ARRAY ? "," : "\n";
    }
    fputs(sink->mode == JSON_ARRAY ? "]" : "\n", out);
    return !ferror(out);
}

/* ---- Sending -------------------------------------------------------------- */

static bool send_together(struct http_sink *sink, CURL *curl, iggy_batch *batch) {
    char *body = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&body, &len);
    bool ok = out && print_all(out, sink, batch);
    ok = out && fclose(out) == 0 && ok;
    ok = ok && request_send(curl, &sink->endpoint, body, len);
    free(body);
    return ok;
}

static bool send_message(struct http_sink *sink, CURL *curl, const iggy_batch *batch,
                         const iggy_message *message) {
    if (sink->mode == RAW) {
        return request_send(curl, &sink->endpoint, message->payload.data, message->payload.len);
    }
    char *json = json_of(sink, batch, message);
    bool ok = json && request_send(curl, &sink->endpoint, json, strlen(json));
    cJSON_free(json);
    return ok;
}

static bool send_each(struct http_sink *sink, CURL *curl, iggy_batch *batch) {
    iggy_message message;
    bool ok = true;
    while (ok && iggy_next_message(&batch->messages, &message)) {
        ok = send_message(sink, curl, batch, &message);
    }
    return ok;
}

/* ---- Configuration -------------------------------------------------------- */

/* The value of a header may be a secret, so it is not shown. */
static void fault(iggy_config *config, const char *what) {
    iggy_log(IGGY_LOG_ERROR, "plugin_config.%s", what);
    config->failed = true;
}

static void add_line(struct http_sink *sink, const char *line) {
    struct curl_slist *lines = curl_slist_append(sink->endpoint.headers, line);
    if (lines) sink->endpoint.headers = lines;
    else fault(&sink->config, "headers: out of memory");
}

static void add_header(struct http_sink *sink, const char *name, const char *value) {
    char line[8192];
    bool ok = value && !strpbrk(name, " \t\r\n:") && !strpbrk(value, "\r\n") &&
              snprintf(line, sizeof line, "%s: %s", name, value) < (int)sizeof line;
    if (ok) add_line(sink, line);
    else fault(&sink->config, "headers is not a table of names and texts of one line");
}

static void read_headers(struct http_sink *sink) {
    const cJSON *headers = cJSON_GetObjectItemCaseSensitive(sink->config.root, "headers"), *header;
    bool has_type = false;
    if (headers && !cJSON_IsNull(headers) && !cJSON_IsObject(headers)) {
        fault(&sink->config, "headers is not a table of names and texts of one line");
        return;
    }
    cJSON_ArrayForEach(header, headers) {
        has_type |= strcasecmp(header->string, "Content-Type") == 0;
        add_header(sink, header->string, cJSON_GetStringValue(header));
    }
    if (!has_type) add_line(sink, modes[sink->mode].content_type);
    add_line(sink, "Expect:"); /* no round trip before a large body */
}

static void read_mode(struct http_sink *sink) {
    const char *name = iggy_config_string(&sink->config, "batch_mode", "individual");
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        if (strcmp(modes[i].name, name) != 0) continue;
        sink->mode = (enum mode)i;
        return;
    }
    iggy_config_fault(&sink->config, "batch_mode", "individual, ndjson, json_array or raw");
}

static void read_url(struct http_sink *sink) {
    char *scheme = NULL;
    CURLU *url = curl_url();
    sink->endpoint.url = iggy_config_required_secret(&sink->config, "url");
    bool ok = url && curl_url_set(url, CURLUPART_URL, sink->endpoint.url, 0) == CURLUE_OK &&
              curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              (strcmp(scheme, "http") == 0 || strcmp(scheme, "https") == 0);
    if (!ok) fault(&sink->config, "url is not an http or https URL");
    curl_free(scheme);
    curl_url_cleanup(url);
}

static bool read_config(struct http_sink *sink, iggy_bytes json) {
    struct endpoint *endpoint = &sink->endpoint;
    iggy_config *config = &sink->config;
    *config = iggy_config_parse(json);
    read_url(sink);
    read_mode(sink);
    read_headers(sink);
    sink->include_metadata = iggy_config_bool(config, "include_metadata", true);
    endpoint->method = iggy_config_string(config, "method", "POST");
    endpoint->ca_file = iggy_config_string(config, "ca_file", NULL);
    endpoint->timeout_ms = (long)iggy_config_duration_ms(config, "timeout", 30000);
    endpoint->retry.most = (unsigned)iggy_config_int(config, "max_retries", 0, 1000, 3);
    endpoint->retry.delay_ms = (unsigned)iggy_config_duration_ms(config, "retry_delay", 1000);
    endpoint->retry.max_delay_ms =
        (unsigned)iggy_config_duration_ms(config, "max_retry_delay", 30000);
    return !config->failed;
}

/* ---- The callbacks, described in iggy_connector_sdk.h --------------------- */

static void close_sink(void *instance) {
    struct http_sink *sink = instance;
    while (sink->idle) {
        struct idle *connection = sink->idle;
        sink->idle = connection->next;
        curl_easy_cleanup(connection->curl);
        free(connection);
    }
    curl_slist_free_all(sink->endpoint.headers);
    iggy_config_free(&sink->config);
    pthread_mutex_destroy(&sink->mutex);
    free(sink);
}

static void init_curl(void) { curl_global_init(CURL_GLOBAL_DEFAULT); }

static int32_t open_sink(const iggy_open_args *args, void **instance) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct http_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return IGGY_FAILED;
    pthread_once(&once, init_curl);
    pthread_mutex_init(&sink->mutex, NULL);
    if (!read_config(sink, args->config)) {
        close_sink(sink);
        return IGGY_INVALID;
    }
    *instance = sink;
    return IGGY_OK;
}

static int32_t consume(void *instance, iggy_batch *batch) {
    struct http_sink *sink = instance;
    if (batch->messages.count == 0) return IGGY_OK;
    struct idle *connection = take_connection(sink);
    if (!connection) return IGGY_FAILED;
    bool together = sink->mode == NDJSON || sink->mode == JSON_ARRAY;
    bool ok = together ? send_together(sink, connection->curl, batch)
                       : send_each(sink, connection->curl, batch);
    give_back(sink, connection);
    return ok ? IGGY_OK : IGGY_FAILED;
}

static const iggy_sink_plugin plugin = {"http_sink", PLUGIN_VERSION, open_sink, consume,
                                        close_sink};
IGGY_SINK_PLUGIN(plugin)
