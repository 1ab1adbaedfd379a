/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "request.h"

#include <stdio.h>
#include <stdlib.h>

#include "iggy_connector_sdk.h"
#include "syscalls.h"

/* What the service says is of no interest, only that it says it. */
static size_t discard(char *data, size_t size, size_t count, void *nothing) {
    (void)data, (void)nothing;
    return size * count;
}

CURL *request_connect(const struct endpoint *endpoint) {
    CURL *curl = curl_easy_init();
    if (!curl) return NULL;
    bool ok = curl_easy_setopt(curl, CURLOPT_URL, endpoint->url) == CURLE_OK &&
              curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, endpoint->method) == CURLE_OK &&
              (!endpoint->ca_file ||
               curl_easy_setopt(curl, CURLOPT_CAINFO, endpoint->ca_file) == CURLE_OK);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, endpoint->headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, endpoint->timeout_ms);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, discard);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); /* signals are the host's */
    if (ok) return curl;
    curl_easy_cleanup(curl);
    return NULL;
}

/* ---- Attempts ------------------------------------------------------------- */

enum fate { SENT, RETRY, REFUSED };

static bool may_help_again(CURLcode code) {
    switch (code) {
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_URL_MALFORMAT:
    case CURLE_OUT_OF_MEMORY:
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
        return false;
    default:
        return true;
    }
}

/* Tries once and says in `why` what was wrong. */
static enum fate attempt(CURL *curl, char why[128]) {
    long status = 0;
    CURLcode code = curl_easy_perform(curl);
    if (code != CURLE_OK) {
        snprintf(why, 128, "%s", curl_easy_strerror(code));
        return may_help_again(code) ? RETRY : REFUSED;
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
    snprintf(why, 128, "the service answered %ld", status);
    if (status >= 200 && status < 300) return SENT;
    return status == 429 || status >= 500 ? RETRY : REFUSED;
}

/* ---- Pauses --------------------------------------------------------------- */

/* What the service asked for, else the growing pause. */
static unsigned pause_ms(CURL *curl, const struct endpoint *endpoint, unsigned retry) {
    curl_off_t seconds = 0;
    curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &seconds);
    if (seconds <= 0) return retry_pause_ms(&endpoint->retry, retry);
    unsigned most = endpoint->retry.max_delay_ms;
    return seconds < most / 1000 ? (unsigned)seconds * 1000 : most;
}

bool request_send(CURL *curl, const struct endpoint *endpoint, const void *body, size_t len) {
    char why[128];
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)len);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, body);
    for (unsigned retry = 1;; retry++) {
        enum fate fate = attempt(curl, why);
        if (fate == SENT) return true;
        if (fate == REFUSED || retry > endpoint->retry.most) break;
        unsigned ms = pause_ms(curl, endpoint, retry);
        iggy_log(IGGY_LOG_WARN, "%s, retry %u of %u in %u ms", why, retry, endpoint->retry.most,
                 ms);
        sleep_us((uint64_t)ms * 1000);
    }
    iggy_log(IGGY_LOG_ERROR, "a request failed: %s", why);
    return false;
}
