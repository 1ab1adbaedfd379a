/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * postgres_sink: inserts each message as a row. README.md lists its configuration and the
 * columns.
 *
 * A batch is one transaction: all of its rows are there or none. A batch that comes again
 * (connector.h) leaves no second rows, where the table has the primary key that the plugin
 * gives it: stream, topic, partition and offset.
 */
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iggy_connector_config.h"
#include "iggy_connector_json.h"
#include "postgres.h"
#include "retry.h"
#include "syscalls.h"

/* How payloads are stored: the column's type, and the payload as a value of it. */
static const struct format {
    const char *name;
    const char *value;
} formats[] = {{"bytea", "$8::bytea"}, {"jsonb", "$8::text::jsonb"}, {"text", "$8::text"}};

struct postgres_sink {
    iggy_config config; /* the connection string is in it */
    struct retry retry;
    char *insert;
    pthread_mutex_t mutex; /* one transaction at a time on the connection */
    struct postgres postgres;
};

/* ---- Rows ----------------------------------------------------------------- */

enum { STREAM, TOPIC, PARTITION, OFFSET, TIMESTAMP, ID, HEADERS, PAYLOAD, COLUMNS };

/* The headers as JSON, to be freed with cJSON_free; NULL when there are none. */
static char *headers_of(const iggy_message *message, bool *ok) {
    cJSON *object = cJSON_CreateObject();
    *ok = iggy_json_add_headers(object, "h", message);
    char *text = *ok && message->headers.len > 0 ? cJSON_PrintUnformatted(object->child) : NULL;
    cJSON_Delete(object);
    return text;
}

/* Texts are sent with their length, as the payload is: they end with no NUL. */
static bool send_row(struct postgres_sink *sink, const iggy_batch *batch,
                     const iggy_message *message) {
    char partition[16], offset[24], timestamp[24], id[33];
    bool ok;
    char *headers = headers_of(message, &ok);
    snprintf(partition, sizeof partition, "%" PRIu32, batch->metadata.partition);
    snprintf(offset, sizeof offset, "%" PRIu64, message->offset);
    snprintf(timestamp, sizeof timestamp, "%" PRIu64, message->timestamp);
    snprintf(id, sizeof id, "%016" PRIx64 "%016" PRIx64, message->id.high, message->id.low);
    const char *values[COLUMNS] = {
        [STREAM] = (const char *)batch->topic.stream.data,
        [TOPIC] = (const char *)batch->topic.topic.data,
        [PARTITION] = partition,
        [OFFSET] = offset,
        [TIMESTAMP] = timestamp,
        [ID] = id,
        [HEADERS] = headers,
        [PAYLOAD] = (const char *)message->payload.data,
    };
    const int lengths[COLUMNS] = {
        [STREAM] = (int)batch->topic.stream.len,
        [TOPIC] = (int)batch->topic.topic.len,
        [PAYLOAD] = (int)message->payload.len,
    };
    static const int binary[COLUMNS] = {[STREAM] = 1, [TOPIC] = 1, [PAYLOAD] = 1};
    if (!ok) iggy_log(IGGY_LOG_ERROR, "a message has headers that cannot be decoded");
    ok = ok && PQsendQueryPrepared(sink->postgres.connection, POSTGRES_STATEMENT, COLUMNS, values,
                                   lengths, binary, 0);
    cJSON_free(headers);
    return ok;
}

/* ---- Batches -------------------------------------------------------------- */

enum fate { STORED, RETRY, REFUSED };

/* Reads the results up to the end of the pipeline, and stops at nothing but that. */
static enum fate collect(struct postgres_sink *sink) {
    PGconn *connection = sink->postgres.connection;
    enum fate fate = STORED;
    while (PQstatus(connection) == CONNECTION_OK) {
        PGresult *result = PQgetResult(connection);
        ExecStatusType status = PQresultStatus(result);
        bool end = status == PGRES_PIPELINE_SYNC;
        bool skipped = !result || end || status == PGRES_PIPELINE_ABORTED; /* after the fault */
        if (!skipped && !postgres_succeeded(&sink->postgres, result)) {
            fate = postgres_is_transient(&sink->postgres, result) ? RETRY : REFUSED;
        }
        PQclear(result);
        if (end) return fate;
    }
    return RETRY; /* whether it was stored is unknown */
}

/* Sends all rows before it reads the first result: the time of a round trip is spent once.
 * Up to its end a pipeline is one transaction. */
static enum fate store(struct postgres_sink *sink, iggy_batch *batch) {
    iggy_message message;
    bool sent = true;
    if (!postgres_connect(&sink->postgres)) return RETRY;
    PGconn *connection = sink->postgres.connection;
    iggy_rewind(&batch->messages);
    PQenterPipelineMode(connection);
    while (sent && iggy_next_message(&batch->messages, &message)) {
        sent = send_row(sink, batch, &message);
    }
    sent = sent && PQpipelineSync(connection);
    enum fate fate = sent ? collect(sink) : REFUSED;
    if (!sent && PQstatus(connection) != CONNECTION_OK) fate = RETRY;
    /* What is left of a pipeline that was given up is rolled back with the connection. */
    if (!sent || !PQexitPipelineMode(connection)) postgres_close(&sink->postgres);
    return fate;
}

static int32_t consume(void *instance, iggy_batch *batch) {
    struct postgres_sink *sink = instance;
    enum fate fate = STORED;
    if (batch->messages.count == 0) return IGGY_OK;
    pthread_mutex_lock(&sink->mutex);
    for (unsigned retry = 1;; retry++) {
        fate = store(sink, batch);
        if (fate != RETRY || retry > sink->retry.most) break;
        unsigned ms = retry_pause_ms(&sink->retry, retry);
        iggy_log(IGGY_LOG_WARN, "retry %u of %u in %u ms", retry, sink->retry.most, ms);
        sleep_us((uint64_t)ms * 1000);
    }
    pthread_mutex_unlock(&sink->mutex);
    return fate == STORED ? IGGY_OK : IGGY_FAILED;
}

/* ---- Open and close ------------------------------------------------------- */

static void close_sink(void *instance) {
    struct postgres_sink *sink = instance;
    postgres_close(&sink->postgres);
    free(sink->insert);
    iggy_config_free(&sink->config);
    pthread_mutex_destroy(&sink->mutex);
    free(sink);
}

static const struct format *read_format(iggy_config *config) {
    const char *name = iggy_config_string(config, "payload_format", "bytea");
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        if (strcmp(formats[i].name, name) == 0) return &formats[i];
    }
    iggy_config_fault(config, "payload_format", "bytea, jsonb or text");
    return &formats[0];
}

/* One statement without parameters, on a connection of its own. */
static bool create_table(const struct postgres_sink *sink, const char *table,
                         const struct format *format) {
    char sql[1024];
    struct postgres postgres = {.connection_string = sink->postgres.connection_string};
    int len = snprintf(sql, sizeof sql,
                       "CREATE TABLE IF NOT EXISTS %s (iggy_stream text, iggy_topic text,"
                       " iggy_partition_id bigint, iggy_offset bigint, iggy_timestamp timestamptz,"
                       " iggy_id uuid, iggy_headers jsonb, payload %s, PRIMARY KEY"
                       " (iggy_stream, iggy_topic, iggy_partition_id, iggy_offset))",
                       table, format->name);
    if (len >= (int)sizeof sql || !postgres_connect(&postgres)) return false;
    PGresult *result = PQexec(postgres.connection, sql);
    bool ok = postgres_succeeded(&postgres, result);
    PQclear(result);
    postgres_close(&postgres);
    return ok;
}

static char *insert_into(const char *table, const struct format *format) {
    static const char sql[] =
        "INSERT INTO %s (iggy_stream, iggy_topic, iggy_partition_id, iggy_offset, iggy_timestamp,"
        " iggy_id, iggy_headers, payload) VALUES ($1::text, $2::text, $3::bigint, $4::bigint,"
        " 'epoch'::timestamptz + $5::bigint * interval '1 microsecond', $6::uuid, $7::jsonb, %s)"
        " ON CONFLICT DO NOTHING";
    size_t size = sizeof sql + strlen(table) + strlen(format->value);
    char *insert = malloc(size);
    if (insert) snprintf(insert, size, sql, table, format->value);
    return insert;
}

static int32_t ready(struct postgres_sink *sink, iggy_bytes json) {
    iggy_config *config = &sink->config;
    *config = iggy_config_parse(json);
    sink->postgres.connection_string = iggy_config_required_secret(config, "connection_string");
    const char *name = iggy_config_required_string(config, "target_table");
    const struct format *format = read_format(config);
    bool create = iggy_config_bool(config, "auto_create_table", false);
    sink->retry.most = (unsigned)iggy_config_int(config, "max_retries", 0, 1000, 3);
    sink->retry.delay_ms = (unsigned)iggy_config_duration_ms(config, "retry_delay", 1000);
    sink->retry.max_delay_ms = (unsigned)iggy_config_duration_ms(config, "max_retry_delay", 30000);
    if (config->failed) return IGGY_INVALID;
    char *table = postgres_quoted(name);
    bool ok = table && (!create || create_table(sink, table, format));
    if (ok) sink->insert = insert_into(table, format);
    free(table);
    sink->postgres.statement = sink->insert;
    return sink->insert && postgres_connect(&sink->postgres) ? IGGY_OK : IGGY_FAILED;
}

static int32_t open_sink(const iggy_open_args *args, void **instance) {
    struct postgres_sink *sink = calloc(1, sizeof *sink);
    if (!sink) return IGGY_FAILED;
    pthread_mutex_init(&sink->mutex, NULL);
    int32_t code = ready(sink, args->config);
    if (code == IGGY_OK) *instance = sink;
    else close_sink(sink);
    return code;
}

static const iggy_sink_plugin plugin = {"postgres_sink", PLUGIN_VERSION, open_sink, consume,
                                        close_sink};
IGGY_SINK_PLUGIN(plugin)
