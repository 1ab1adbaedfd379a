/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "postgres.h"

#include <stdlib.h>
#include <string.h>

#include "iggy_connector_sdk.h"

/* ---- Errors --------------------------------------------------------------- */

/* libpq's texts can have several lines, of which the first says it. They name host and
 * user, never the password. */
static void log_connection(const PGconn *connection) {
    const char *text = PQerrorMessage(connection);
    iggy_log(IGGY_LOG_ERROR, "PostgreSQL: %.*s", (int)strcspn(text, "\n"), text);
}

bool postgres_succeeded(const struct postgres *postgres, const PGresult *result) {
    ExecStatusType status = PQresultStatus(result);
    if (status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK) return true;
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *text = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (code && text) iggy_log(IGGY_LOG_ERROR, "PostgreSQL: %s (%s)", text, code);
    else log_connection(postgres->connection);
    return false;
}

bool postgres_is_transient(const struct postgres *postgres, const PGresult *result) {
    static const char *const classes[] = {"08", "40", "53", "57P"}; /* of SQLSTATE */
    if (PQstatus(postgres->connection) != CONNECTION_OK) return true;
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    for (size_t i = 0; code && i < sizeof classes / sizeof *classes; i++) {
        if (strncmp(code, classes[i], strlen(classes[i])) == 0) return true;
    }
    return false;
}

/* ---- The connection ------------------------------------------------------- */

static bool prepare(struct postgres *postgres) {
    if (!postgres->statement) return true;
    PGresult *result =
        PQprepare(postgres->connection, POSTGRES_STATEMENT, postgres->statement, 0, NULL);
    bool ok = postgres_succeeded(postgres, result);
    PQclear(result);
    return ok;
}

/* libpq would print what the server remarks, such as that a table exists already. */
static void log_notice(void *nothing, const char *text) {
    (void)nothing;
    iggy_log(IGGY_LOG_DEBUG, "PostgreSQL: %.*s", (int)strcspn(text, "\n"), text);
}

bool postgres_connect(struct postgres *postgres) {
    /* What the string itself says comes last and wins. */
    const char *const names[] = {"application_name", "connect_timeout", "tcp_user_timeout",
                                 "dbname", NULL};
    const char *const values[] = {"iggy-connect", "10", "30000", postgres->connection_string, NULL};
    if (PQstatus(postgres->connection) == CONNECTION_OK) return true;
    postgres_close(postgres);
    postgres->connection = PQconnectdbParams(names, values, 1);
    PQsetNoticeProcessor(postgres->connection, log_notice, NULL);
    if (PQstatus(postgres->connection) != CONNECTION_OK) {
        log_connection(postgres->connection);
    } else if (prepare(postgres)) {
        return true;
    }
    postgres_close(postgres);
    return false;
}

void postgres_close(struct postgres *postgres) {
    PQfinish(postgres->connection);
    postgres->connection = NULL;
}

/* ---- Names ---------------------------------------------------------------- */

char *postgres_quoted(const char *name) {
    char *quoted = malloc(3 * strlen(name) + 3), *at = quoted;
    if (!quoted) return NULL;
    *at++ = '"';
    for (; *name; name++) {
        if (*name == '.') {
            memcpy(at, "\".\"", 3);
            at += 3;
            continue;
        }
        if (*name == '"') *at++ = '"';
        *at++ = *name;
    }
    *at++ = '"';
    *at = '\0';
    return quoted;
}
