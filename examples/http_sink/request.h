/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Requests to one HTTP service, repeated as long as that can help. */
#ifndef HTTP_SINK_REQUEST_H
#define HTTP_SINK_REQUEST_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

#include "retry.h"

/* Texts are the caller's. */
struct endpoint {
    const char *url;
    const char *method;
    const char *ca_file;        /* NULL: those of the system */
    struct curl_slist *headers; /* lines */
    long timeout_ms;            /* of one attempt */
    struct retry retry;
};

/* A connection to the endpoint, for one thread at a time. NULL: out of memory. */
CURL *request_connect(const struct endpoint *endpoint);

/* Sends a body. It is tried again, after a pause that grows, when the connection failed or
 * the service answered 429 or 5xx; a Retry-After of the service counts, up to the longest
 * pause. True after a 2xx. Otherwise the log says why, without the URL, in which secrets
 * may be. */
bool request_send(CURL *curl, const struct endpoint *endpoint, const void *body, size_t len);

#endif
