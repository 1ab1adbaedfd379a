/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* What postgres_sink and postgres_source share: a connection that comes back. */
#ifndef EXAMPLES_POSTGRES_H
#define EXAMPLES_POSTGRES_H

#include <libpq-fe.h>
#include <stdbool.h>

/* The name under which `statement` is prepared. */
#define POSTGRES_STATEMENT "iggy"

struct postgres {
    const char *connection_string; /* the caller's; it may hold a password and is not logged */
    const char *statement;         /* prepared on each new connection; NULL: none */
    PGconn *connection;            /* NULL: not connected yet */
};

/* Connects, unless a connection is there. False: the log says why. */
bool postgres_connect(struct postgres *postgres);
void postgres_close(struct postgres *postgres);

/* True when the result is no error; else the log says which, without the values of rows. */
bool postgres_succeeded(const struct postgres *postgres, const PGresult *result);

/* Whether trying again can help: the connection is lost, or the server restarts, has no
 * room, or ended the transaction for the sake of another one. */
bool postgres_is_transient(const struct postgres *postgres, const PGresult *result);

/* A name as SQL takes it, with each part of `schema.table` in double quotes. The caller
 * frees it; NULL: out of memory. */
char *postgres_quoted(const char *name);

#endif
