/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * What connector.h asks of any sink.
 *
 * Usage: sink_contract_test <library> <config> <broken config>...
 */
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "check.h"
#include "host.h"

static iggy_sink_api api;
static const char *config;
static char **broken_configs;
static uint32_t last_id;

static uint32_t opened(void) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_OK);
    return id;
}

/* A batch with headers and two messages. */
static struct host_blobs sample(void) {
    static const struct host_header header = {IGGY_HEADER_STRING, "k",        1,
                                              IGGY_HEADER_RAW,    "\x01\x02", 2};
    static const struct host_message messages[] = {
        {.offset = 300,
         .headers = &header,
         .header_count = 1,
         .payload = "{\"a\": 1}",
         .payload_len = 8},
        {.offset = 301, .payload = "[]", .payload_len = 2},
    };
    return host_encode("stream", "topic", 7, IGGY_SCHEMA_JSON, messages, 2);
}

static int32_t consume_sample(uint32_t id) {
    struct host_blobs blobs = sample();
    int32_t code = host_consume(&api, id, &blobs);
    host_free_blobs(&blobs);
    return code;
}

static void version_is_there_before_open(void) { CHECK(strlen(api.version()) > 0); }

static void unknown_id_is_refused(void) {
    CHECK_EQUAL(consume_sample(4711), IGGY_INVALID);
    CHECK_EQUAL(api.close(4711), IGGY_INVALID);
}

static void batch_is_consumed(void) {
    uint32_t id = opened();
    CHECK_EQUAL(consume_sample(id), IGGY_OK);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    CHECK_EQUAL(consume_sample(id), IGGY_INVALID);
    CHECK_EQUAL(api.close(id), IGGY_INVALID);
}

static void duplicate_id_leaves_the_first_alone(void) {
    uint32_t id = opened();
    CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_INVALID);
    CHECK_EQUAL(consume_sample(id), IGGY_OK);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void broken_config_occupies_its_id_until_close(void) {
    for (char **broken = broken_configs; *broken; broken++) {
        uint32_t id = ++last_id;
        CHECK_EQUAL(host_open_sink(&api, id, *broken), IGGY_INVALID);
        CHECK(host_logged("plugin_config"));
        CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_INVALID);
        CHECK_EQUAL(consume_sample(id), IGGY_INVALID);
        CHECK_EQUAL(api.close(id), IGGY_INVALID);
        CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_OK);
        CHECK_EQUAL(api.close(id), IGGY_OK);
    }
}

static void empty_batch_is_consumed(void) {
    uint32_t id = opened();
    struct host_blobs blobs = host_encode("s", "t", 0, IGGY_SCHEMA_RAW, NULL, 0);
    CHECK_EQUAL(host_consume(&api, id, &blobs), IGGY_OK);
    host_free_blobs(&blobs);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

/* Runs over an allocation of exactly that size, so that a sanitizer sees every step
 * beyond it. */
static int32_t consume_messages(uint32_t id, const struct host_blobs *blobs, size_t len) {
    uint8_t *exact = malloc(len > 0 ? len : 1);
    CHECK(exact);
    memcpy(exact, blobs->messages, len);
    int32_t code = api.consume(id, blobs->topic, blobs->topic_len, blobs->metadata,
                               blobs->metadata_len, exact, len);
    free(exact);
    return code;
}

static void bytes_behind_a_batch_are_ignored(void) {
    uint32_t id = opened();
    struct host_blobs blobs = sample();
    blobs.messages = realloc(blobs.messages, blobs.messages_len + 2);
    CHECK(blobs.messages);
    memcpy(blobs.messages + blobs.messages_len, "xy", 2);
    blobs.messages_len += 2;
    CHECK_EQUAL(host_consume(&api, id, &blobs), IGGY_OK);
    host_free_blobs(&blobs);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

/* A sink that looks at the first message alone sees only that one cut short. */
static void truncated_batch_is_refused(bool reads_all) {
    uint32_t id = opened();
    struct host_blobs blobs = sample();
    size_t checked = reads_all ? blobs.messages_len : 10;
    for (size_t len = 0; len < checked; len++) {
        CHECK_EQUAL(consume_messages(id, &blobs, len), IGGY_INVALID);
    }
    if (reads_all) {
        for (size_t len = 0; len < blobs.topic_len; len++) {
            struct host_blobs cut = blobs;
            cut.topic_len = len;
            CHECK_EQUAL(host_consume(&api, id, &cut), IGGY_INVALID);
        }
        for (size_t len = 0; len < blobs.metadata_len; len++) {
            struct host_blobs cut = blobs;
            cut.metadata_len = len;
            CHECK_EQUAL(host_consume(&api, id, &cut), IGGY_INVALID);
        }
    }
    host_free_blobs(&blobs);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void bytes_at_random_do_no_harm(void) {
    uint64_t seed = 42;
    uint32_t id = opened();
    struct host_blobs blobs = sample();
    for (int round = 0; round < 3000; round++) {
        struct host_blobs bad = sample();
        for (int flips = 0; flips < 3; flips++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            bad.messages[(seed >> 33) % bad.messages_len] = (uint8_t)(seed >> 20);
        }
        int32_t code = consume_messages(id, &bad, bad.messages_len);
        /* What can be decoded may still be nothing that the far end takes. */
        CHECK(code == IGGY_OK || code == IGGY_INVALID || code == IGGY_FAILED);
        host_free_blobs(&bad);
    }
    host_free_blobs(&blobs);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void absurd_counts_are_refused(void) {
    static const char *const absurd[] = {
        "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",         /* 2^64 - 1 messages */
        "\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02",         /* more than 64 bits */
        "\x06\x01\x01\x01\x01\x01\x01\x01\x01",                 /* schema 6 */
        "\x00\x01\x01\x01\x01\x01\x01\x01\xff\xff\xff\xff\x0f", /* a payload of 4 GiB */
    };
    static const size_t lens[] = {11, 11, 9, 13};
    uint32_t id = opened();
    struct host_blobs blobs = sample();
    for (size_t i = 0; i < sizeof lens / sizeof *lens; i++) {
        CHECK_EQUAL(api.consume(id, blobs.topic, blobs.topic_len, blobs.metadata,
                                blobs.metadata_len, (const uint8_t *)absurd[i], lens[i]),
                    IGGY_INVALID);
    }
    host_free_blobs(&blobs);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void *consume_often(void *id) {
    for (int i = 0; i < 50; i++) CHECK_EQUAL(consume_sample(*(uint32_t *)id), IGGY_OK);
    return NULL;
}

static void calls_for_one_id_may_overlap(void) {
    pthread_t threads[8];
    uint32_t id = opened();
    for (int i = 0; i < 8; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, consume_often, &id), 0);
    for (int i = 0; i < 8; i++) CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void *consume_until_refused(void *id) {
    while (consume_sample(*(uint32_t *)id) == IGGY_OK) {
    }
    return NULL;
}

static void close_waits_for_running_calls(void) {
    pthread_t threads[4];
    for (int round = 0; round < 20; round++) {
        uint32_t id = opened();
        for (int i = 0; i < 4; i++) {
            CHECK_EQUAL(pthread_create(&threads[i], NULL, consume_until_refused, &id), 0);
        }
        CHECK_EQUAL(api.close(id), IGGY_OK);
        for (int i = 0; i < 4; i++) CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    }
}

int main(int argc, char **argv) {
    CHECK(argc >= 4);
    api = host_load_sink(argv[1]);
    config = argv[2];
    broken_configs = argv + 3;
    /* What a sink prints must not drown the names of the tests. */
    int null = open("/dev/null", O_WRONLY);
    int out = dup(STDOUT_FILENO);
    CHECK(null >= 0 && out >= 0 && dup2(null, STDOUT_FILENO) == STDOUT_FILENO);
    stdout = fdopen(out, "w");
    CHECK(stdout);
    RUN(version_is_there_before_open);
    RUN(unknown_id_is_refused);
    RUN(batch_is_consumed);
    RUN(duplicate_id_leaves_the_first_alone);
    RUN(broken_config_occupies_its_id_until_close);
    RUN(empty_batch_is_consumed);
    RUN(bytes_behind_a_batch_are_ignored);
    printf("truncated_batch_is_refused\n");
    truncated_batch_is_refused(strstr(argv[1], "count_sink") == NULL);
    RUN(bytes_at_random_do_no_harm);
    RUN(absurd_counts_are_refused);
    RUN(calls_for_one_id_may_overlap);
    RUN(close_waits_for_running_calls);
    return 0;
}
