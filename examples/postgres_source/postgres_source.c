/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * postgres_source: polls a table, and each row becomes a message. README.md lists its
 * configuration.
 *
 * Three ways to know what was read:
 *
 *     a cursor          rows whose tracking column is above that of the last one
 *     delete_after_read rows that are there; they are deleted when they were stored
 *     processed_column  rows in which it is not true; it is set when they were stored
 *
 * Stored means acknowledged by the host (in generation 1: handed over). A Nack changes
 * nothing, so the same rows are read again. Between the acknowledgement and the deletion
 * a crash can fall; then those rows are produced twice, never lost.
 *
 * State: MessagePack array [value of the tracking column of the last row, as text].
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "iggy_connector_config.h"
#include "iggy_connector_state.h"
#include "postgres.h"

enum payload_format { JSON, TEXT, RAW };

struct postgres_source {
    iggy_config config; /* the connection string is in it */
    unsigned poll_interval_ms;
    enum payload_format format;
    struct postgres postgres;
    char *select; /* $1 is the cursor; used when there is one */
    char *select_first;
    char *settle; /* what becomes of rows that were stored, $1 is their keys; NULL: nothing */
    char *cursor; /* of the last row that was stored; NULL: none was */
    PGresult *in_flight; /* rows without a result yet */
    PGresult *stored;    /* rows that are to be settled */
};

enum { TRACKING, PAYLOAD }; /* columns of a result */

/* ---- Settling ------------------------------------------------------------- */

/* The tracking values of rows as an array literal, which the caller frees. */
static char *keys_of(const PGresult *rows) {
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);
    if (!out) return NULL;
    for (int row = 0; row < PQntuples(rows); row++) {
        fputs(row == 0 ? "{\"" : ",\"", out);
        for (const char *at = PQgetvalue(rows, row, TRACKING); *at; at++) {
            if (*at == '"' || *at == '\\') fputc('\\', out);
            fputc(*at, out);
        }
        fputc('"', out);
    }
    fputc('}', out);
    if (fclose(out) == 0) return text;
    free(text);
    return NULL;
}

/* Deletes or marks the rows that were stored. False: it is to be tried again. */
static bool settle(struct postgres_source *source) {
    if (!source->stored) return true;
    char *keys = keys_of(source->stored);
    const char *values[] = {keys};
    bool ok = keys && postgres_connect(&source->postgres);
    if (ok) {
        PGresult *result = PQexecParams(source->postgres.connection, source->settle, 1, NULL,
                                        values, NULL, NULL, 0);
        ok = postgres_succeeded(&source->postgres, result);
        PQclear(result);
    }
    free(keys);
    if (!ok) return false;
    PQclear(source->stored);
    source->stored = NULL;
    return true;
}

/* ---- Polling -------------------------------------------------------------- */

/* NULL: the log says why not. */
static PGresult *select_rows(struct postgres_source *source) {
    const char *values[] = {source->cursor};
    if (!postgres_connect(&source->postgres)) return NULL;
    bool first = source->settle || !source->cursor;
    PGresult *rows =
        PQexecParams(source->postgres.connection, first ? source->select_first : source->select,
                     first ? 0 : 1, NULL, values, NULL, NULL, 0);
    if (postgres_succeeded(&source->postgres, rows)) return rows;
    PQclear(rows);
    return NULL;
}

/* Iggy takes no empty message: a row without a payload is none. */
static bool produce_row(const struct postgres_source *source, iggy_producer *producer, int row) {
    const char *value = PQgetvalue(source->in_flight, row, PAYLOAD);
    size_t len = (size_t)PQgetlength(source->in_flight, row, PAYLOAD);
    if (len == 0) return true;
    if (source->format != RAW) {
        iggy_produce(producer, value, len);
        return true;
    }
    unsigned char *bytes = PQunescapeBytea((const unsigned char *)value, &len);
    if (bytes && len > 0) iggy_produce(producer, bytes, len);
    PQfreemem(bytes);
    return bytes != NULL;
}

static int32_t poll(void *instance, iggy_producer *producer) {
    static const enum iggy_schema schemas[] = {IGGY_SCHEMA_JSON, IGGY_SCHEMA_TEXT, IGGY_SCHEMA_RAW};
    struct postgres_source *source = instance;
    PQclear(source->in_flight); /* of a poll that failed */
    source->in_flight = NULL;
    if (!settle(source)) return IGGY_FAILED;
    source->in_flight = select_rows(source);
    if (!source->in_flight) return IGGY_FAILED;
    int count = PQntuples(source->in_flight);
    if (count == 0) {
        iggy_produce_wait(producer, source->poll_interval_ms);
        return IGGY_OK;
    }
    for (int row = 0; row < count; row++) {
        if (!produce_row(source, producer, row)) return IGGY_FAILED;
    }
    iggy_produce_schema(producer, schemas[source->format]);
    iggy_state_begin(producer, 1);
    iggy_state_put_text(producer, PQgetvalue(source->in_flight, count - 1, TRACKING));
    return IGGY_OK;
}

static bool move_cursor(struct postgres_source *source) {
    int last = PQntuples(source->in_flight) - 1;
    char *cursor = strdup(PQgetvalue(source->in_flight, last, TRACKING));
    if (!cursor) return false;
    free(source->cursor);
    source->cursor = cursor;
    return true;
}

/* It may run on a thread of the host: the database is left to the next poll. */
static int32_t on_batch_result(void *instance, enum iggy_batch_result result) {
    struct postgres_source *source = instance;
    if (result == IGGY_BATCH_NACK) return IGGY_OK;
    if (!move_cursor(source)) return IGGY_FAILED;
    if (!source->settle) return IGGY_OK;
    source->stored = source->in_flight;
    source->in_flight = NULL;
    return IGGY_OK;
}

/* ---- Statements ----------------------------------------------------------- */

/* What the configuration names, quoted, and freed by names_free. */
struct names {
    char *table, *tracking, *payload, *processed; /* the last two may be NULL */
};

static char *quoted_or_null(const char *name) { return name ? postgres_quoted(name) : NULL; }

static void names_free(struct names *names) {
    free(names->table);
    free(names->tracking);
    free(names->payload);
    free(names->processed);
}

/* The rows to read, all of them or those behind the cursor; the caller frees it. */
static char *select_from(const struct names *names, bool behind, int64_t batch_size) {
    char *sql = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&sql, &len);
    if (!out) return NULL;
    fprintf(out, "SELECT t.%s::text, ", names->tracking);
    if (names->payload) fprintf(out, "t.%s::text", names->payload);
    else fputs("row_to_json(t)::text", out);
    fprintf(out, " FROM %s t WHERE t.%s IS NOT NULL", names->table, names->tracking);
    if (behind) fprintf(out, " AND t.%s > $1", names->tracking);
    if (names->processed) fprintf(out, " AND t.%s IS NOT TRUE", names->processed);
    fprintf(out, " ORDER BY t.%s LIMIT %lld", names->tracking, (long long)batch_size);
    if (fclose(out) == 0) return sql;
    free(sql);
    return NULL;
}

static char *settle_in(const struct names *names, bool delete_after_read) {
    static const char delete[] = "DELETE FROM %s WHERE %s = ANY ($1)";
    static const char mark[] = "UPDATE %s SET %s = true WHERE %s = ANY ($1)";
    const char *processed = names->processed ? names->processed : "";
    size_t size = sizeof mark + strlen(names->table) + strlen(names->tracking) + strlen(processed);
    char *sql = malloc(size);
    if (!sql) return NULL;
    if (delete_after_read) snprintf(sql, size, delete, names->table, names->tracking);
    else snprintf(sql, size, mark, names->table, processed, names->tracking);
    return sql;
}

/* ---- Open and close ------------------------------------------------------- */

static void close_source(void *instance) {
    struct postgres_source *source = instance;
    settle(source); /* what cannot be settled now is read again */
    PQclear(source->stored);
    PQclear(source->in_flight);
    postgres_close(&source->postgres);
    free(source->select);
    free(source->select_first);
    free(source->settle);
    free(source->cursor);
    iggy_config_free(&source->config);
    free(source);
}

static enum payload_format read_format(iggy_config *config, bool has_column) {
    const char *name = iggy_config_string(config, "payload_format", "json");
    if (strcmp(name, "json") == 0) return JSON;
    if (has_column && strcmp(name, "text") == 0) return TEXT;
    if (has_column && strcmp(name, "raw") == 0) return RAW;
    iggy_config_fault(config, "payload_format",
                      has_column ? "json, text or raw" : "json, unless payload_column is set");
    return JSON;
}

/* False: out of memory. */
static bool prepare_statements(struct postgres_source *source, struct names *names,
                               bool delete_after_read, int64_t batch_size) {
    bool settles = delete_after_read || names->processed;
    if (!names->table || !names->tracking) return false;
    source->select = select_from(names, true, batch_size);
    source->select_first = select_from(names, false, batch_size);
    if (settles) source->settle = settle_in(names, delete_after_read);
    return source->select && source->select_first && (source->settle || !settles);
}

static int32_t read_config(struct postgres_source *source, iggy_bytes json) {
    iggy_config *config = &source->config;
    *config = iggy_config_parse(json);
    source->postgres.connection_string = iggy_config_required_secret(config, "connection_string");
    const char *table = iggy_config_required_string(config, "table");
    const char *tracking = iggy_config_string(config, "tracking_column", "id");
    const char *payload = iggy_config_string(config, "payload_column", NULL);
    const char *processed = iggy_config_string(config, "processed_column", NULL);
    const char *initial = iggy_config_string(config, "initial_offset", NULL);
    bool delete_after_read = iggy_config_bool(config, "delete_after_read", false);
    int64_t batch_size = iggy_config_int(config, "batch_size", 1, 100000, 1000);
    source->poll_interval_ms = (unsigned)iggy_config_duration_ms(config, "poll_interval", 1000);
    source->format = read_format(config, payload != NULL);
    if (delete_after_read && processed) {
        iggy_config_fault(config, "processed_column", "no such key beside delete_after_read");
    }
    if (config->failed) return IGGY_INVALID;
    struct names names = {postgres_quoted(table), postgres_quoted(tracking),
                          quoted_or_null(payload), quoted_or_null(processed)};
    bool ok = prepare_statements(source, &names, delete_after_read, batch_size) &&
              (!payload || names.payload) && (!processed || names.processed);
    names_free(&names);
    if (initial) source->cursor = strdup(initial);
    return ok && (!initial || source->cursor) ? IGGY_OK : IGGY_FAILED;
}

/* The cursor of the state wins over `initial_offset`. */
static bool read_state(struct postgres_source *source, iggy_bytes bytes) {
    iggy_state state = iggy_state_read(bytes);
    iggy_bytes text = iggy_state_take_text(&state);
    char *cursor = text.data ? strndup((const char *)text.data, text.len) : NULL;
    bool ok = iggy_state_end(&state) && (cursor || !text.data);
    if (cursor) {
        free(source->cursor);
        source->cursor = cursor;
    }
    return ok;
}

static int32_t open_source(const iggy_open_args *args, void **instance) {
    struct postgres_source *source = calloc(1, sizeof *source);
    if (!source) return IGGY_FAILED;
    int32_t code = read_config(source, args->config);
    if (code == IGGY_OK &&
        !(read_state(source, args->state) && postgres_connect(&source->postgres))) {
        code = IGGY_FAILED;
    }
    if (code == IGGY_OK) *instance = source;
    else close_source(source);
    return code;
}

static const iggy_source_plugin plugin = {"postgres_source", PLUGIN_VERSION, open_source, poll,
                                          on_batch_result,   close_source};
IGGY_SOURCE_PLUGIN(plugin)
