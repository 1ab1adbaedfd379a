/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* What connector.h asks of a sink, of the table that an author fills. */
#include <pthread.h>
#include <time.h>

#include "check.h"
#include "iggy_connector_mock.h"

/* ---- A sink --------------------------------------------------------------- */

/* Counts what it is given. The process has one, so that a test can look. */
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned inside, most_inside; /* calls of consume that run */
    unsigned wait_for;            /* consume returns once so many have been inside */
    unsigned long batches, messages, bytes;
    int32_t code;
    bool closed;
} sink = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static int32_t open_sink(const iggy_open_args *args, void **instance) {
    CHECK(!args->state.data && args->id > 0);
    *instance = &sink;
    if (args->config.len == 5 && memcmp(args->config.data, "fails", 5) == 0) return IGGY_FAILED;
    if (args->config.len == 7 && memcmp(args->config.data, "invalid", 7) == 0) return IGGY_INVALID;
    if (args->config.len == 3 && memcmp(args->config.data, "odd", 3) == 0) return 42;
    sink.closed = false;
    return IGGY_OK;
}

static void check_message(const iggy_batch *batch, const iggy_message *message) {
    iggy_header_field value;
    int64_t number;
    CHECK(message->payload.len > 0 && message->offset > 0);
    CHECK(iggy_find_header(message, "kind", &value) && iggy_header_as_int(&value, &number));
    CHECK_EQUAL(number, batch->metadata.schema);
}

static int32_t consume_batch(void *instance, iggy_batch *batch) {
    iggy_message message;
    CHECK(instance == &sink);
    CHECK(batch->topic.stream.len == 6 && memcmp(batch->topic.stream.data, "stream", 6) == 0);
    CHECK(batch->topic.topic.len == 5 && memcmp(batch->topic.topic.data, "topic", 5) == 0);
    CHECK(batch->metadata.partition == 7 && batch->metadata.current_offset == 1000);
    pthread_mutex_lock(&sink.mutex);
    if (++sink.inside > sink.most_inside) sink.most_inside = sink.inside;
    pthread_cond_broadcast(&sink.changed);
    while (sink.most_inside < sink.wait_for) pthread_cond_wait(&sink.changed, &sink.mutex);
    for (; iggy_next_message(&batch->messages, &message); sink.messages++) {
        check_message(batch, &message);
        sink.bytes += message.payload.len;
    }
    CHECK(!sink.closed);
    sink.batches++;
    sink.inside--;
    int32_t code = sink.code;
    pthread_mutex_unlock(&sink.mutex);
    return code;
}

static void close_sink(void *instance) {
    CHECK(instance == &sink && sink.inside == 0 && !sink.closed);
    sink.closed = true;
}

static const iggy_sink_plugin plugin = {"test_sink", "4.5.6", open_sink, consume_batch, close_sink};
IGGY_SINK_PLUGIN(plugin)
static const iggy_sink_api api = IGGY_MOCK_SINK_API;

/* ---- Helpers -------------------------------------------------------------- */

static iggy_mock_sink *opened(void) {
    int32_t code;
    sink.inside = sink.most_inside = sink.wait_for = 0;
    sink.batches = sink.messages = sink.bytes = 0;
    sink.code = IGGY_OK;
    iggy_mock_sink *mock = iggy_mock_open_sink(&api, "null", &code);
    CHECK_EQUAL(code, IGGY_OK);
    return mock;
}

static int32_t consume(iggy_mock_sink *mock, size_t count, size_t payload_len,
                       enum iggy_schema schema) {
    iggy_header header = {iggy_header_string("kind"), iggy_header_int32((int32_t)schema)};
    iggy_mock_message *messages = calloc(count + 1, sizeof *messages);
    uint8_t *payload = calloc(1, payload_len + 1);
    CHECK(messages && payload);
    for (size_t i = 0; i < count; i++) {
        messages[i] = (iggy_mock_message){.payload = payload,
                                          .payload_len = payload_len,
                                          .headers = &header,
                                          .header_count = 1,
                                          .offset = i + 1};
    }
    iggy_mock_batch batch = {"stream", "topic", 7, 1000, schema, messages, count};
    int32_t code = iggy_mock_consume(mock, &batch);
    free(payload);
    free(messages);
    return code;
}

/* ---- Promises ------------------------------------------------------------- */

static void version_is_the_tables(void) { CHECK_TEXT(api.version(), "4.5.6"); }

static void batches_of_every_size_and_schema_are_consumed(void) {
    iggy_mock_sink *mock = opened();
    for (int schema = IGGY_SCHEMA_JSON; schema <= IGGY_SCHEMA_AVRO; schema++) {
        CHECK_EQUAL(consume(mock, 1, 3, (enum iggy_schema)schema), IGGY_OK);
    }
    CHECK_EQUAL(consume(mock, 0, 0, IGGY_SCHEMA_RAW), IGGY_OK);
    CHECK_EQUAL(consume(mock, 10000, 10, IGGY_SCHEMA_RAW), IGGY_OK);
    CHECK_EQUAL(consume(mock, 1, 5000000, IGGY_SCHEMA_RAW), IGGY_OK);
    CHECK_EQUAL(sink.batches, 9);
    CHECK_EQUAL(sink.messages, 10007);
    CHECK_EQUAL(sink.bytes, 5100018);
    CHECK_EQUAL(iggy_mock_close_sink(mock), IGGY_OK);
    CHECK(sink.closed);
}

static void codes_of_consume_reach_the_host(void) {
    static const int32_t codes[][2] = {
        {IGGY_FAILED, IGGY_FAILED}, {IGGY_INVALID, IGGY_INVALID}, {77, IGGY_FAILED}};
    iggy_mock_sink *mock = opened();
    for (int i = 0; i < 3; i++) {
        sink.code = codes[i][0];
        CHECK_EQUAL(consume(mock, 1, 1, IGGY_SCHEMA_RAW), codes[i][1]);
    }
    CHECK_EQUAL(iggy_mock_close_sink(mock), IGGY_OK);
}

static void batch_that_cannot_be_decoded_never_reaches_the_plugin(void) {
    static const uint8_t topic[] = {6, 's', 't', 'r', 'e', 'a', 'm', 5, 't', 'o', 'p', 'i', 'c'};
    static const uint8_t metadata[] = {7, 0xe8, 7, 1}, messages[] = {1, 0}, broken[] = {1, 1, 0};
    iggy_mock_sink *mock = opened();
    uint32_t id = iggy_mock_sink_id(mock);
    CHECK_EQUAL(api.consume(id, topic, 12, metadata, 4, messages, 2), IGGY_INVALID);
    CHECK_EQUAL(api.consume(id, topic, 13, metadata, 3, messages, 2), IGGY_INVALID);
    CHECK_EQUAL(api.consume(id, topic, 13, metadata, 4, broken, 3), IGGY_INVALID);
    CHECK_EQUAL(api.consume(id, NULL, 0, NULL, 0, NULL, 0), IGGY_INVALID);
    CHECK_EQUAL(sink.batches, 0);
    CHECK(iggy_mock_logged("cannot be decoded"));
    CHECK_EQUAL(api.consume(id, topic, 13, metadata, 4, messages, 2), IGGY_OK);
    CHECK_EQUAL(iggy_mock_close_sink(mock), IGGY_OK);
}

static void ignore_record(uint8_t level, const uint8_t *target, size_t target_len,
                          const uint8_t *message, size_t message_len) {
    (void)level, (void)target, (void)target_len, (void)message, (void)message_len;
}

static void ids_are_kept_as_the_contract_says(void) {
    CHECK_EQUAL(api.close(4711), IGGY_INVALID);
    CHECK_EQUAL(api.consume(4711, NULL, 0, NULL, 0, NULL, 0), IGGY_INVALID);
    iggy_mock_sink *mock = opened();
    uint32_t id = iggy_mock_sink_id(mock);
    CHECK_EQUAL(api.open(id, (const uint8_t *)"x", 1, ignore_record), IGGY_INVALID);
    CHECK_EQUAL(consume(mock, 1, 1, IGGY_SCHEMA_RAW), IGGY_OK);
    CHECK_EQUAL(iggy_mock_close_sink(mock), IGGY_OK);
    CHECK_EQUAL(api.close(id), IGGY_INVALID);
}

static void failed_open_leaves_only_close(void) {
    static const struct {
        const char *config;
        int32_t open, close;
    } cases[] = {{"fails", IGGY_FAILED, IGGY_OK},
                 {"invalid", IGGY_INVALID, IGGY_INVALID},
                 {"odd", IGGY_FAILED, IGGY_OK},
                 {"\xc0", IGGY_INVALID, IGGY_INVALID}};
    sink.closed = true; /* a close of the plugin would abort */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t code;
        iggy_mock_sink *mock = iggy_mock_open_sink(&api, cases[i].config, &code);
        CHECK_EQUAL(code, cases[i].open);
        CHECK_EQUAL(consume(mock, 1, 1, IGGY_SCHEMA_RAW), IGGY_INVALID);
        CHECK_EQUAL(iggy_mock_close_sink(mock), cases[i].close);
    }
    CHECK(iggy_mock_logged("plugin_config is not UTF-8"));
}

static void *consume_once(void *mock) {
    CHECK_EQUAL(consume(mock, 10, 10, IGGY_SCHEMA_JSON), IGGY_OK);
    return NULL;
}

static void calls_for_one_instance_run_side_by_side(void) {
    pthread_t threads[8];
    iggy_mock_sink *mock = opened();
    sink.wait_for = 8; /* no call returns before all are inside */
    for (int i = 0; i < 8; i++)
        CHECK_EQUAL(pthread_create(&threads[i], NULL, consume_once, mock), 0);
    for (int i = 0; i < 8; i++) CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    CHECK_EQUAL(sink.messages, 80);
    CHECK_EQUAL(iggy_mock_close_sink(mock), IGGY_OK);
}

static void *release_later(void *unused) {
    nanosleep(&(struct timespec){0, 50000000}, NULL);
    pthread_mutex_lock(&sink.mutex);
    CHECK(!sink.closed);
    sink.wait_for = 0;
    pthread_cond_broadcast(&sink.changed);
    pthread_mutex_unlock(&sink.mutex);
    return unused;
}

static void close_waits_for_running_calls(void) {
    pthread_t consumer, releaser;
    iggy_mock_sink *mock = opened();
    sink.wait_for = 2;
    CHECK_EQUAL(pthread_create(&consumer, NULL, consume_once, mock), 0);
    pthread_mutex_lock(&sink.mutex);
    while (sink.inside == 0) pthread_cond_wait(&sink.changed, &sink.mutex);
    pthread_mutex_unlock(&sink.mutex);
    CHECK_EQUAL(pthread_create(&releaser, NULL, release_later, NULL), 0);
    CHECK_EQUAL(api.close(iggy_mock_sink_id(mock)), IGGY_OK);
    CHECK_EQUAL(pthread_join(consumer, NULL), 0);
    CHECK_EQUAL(pthread_join(releaser, NULL), 0);
    CHECK_EQUAL(sink.batches, 1);
    CHECK_EQUAL(iggy_mock_close_sink(mock), IGGY_INVALID); /* it is closed already */
}

int main(void) {
    RUN(version_is_the_tables);
    RUN(batches_of_every_size_and_schema_are_consumed);
    RUN(codes_of_consume_reach_the_host);
    RUN(batch_that_cannot_be_decoded_never_reaches_the_plugin);
    RUN(ids_are_kept_as_the_contract_says);
    RUN(failed_open_leaves_only_close);
    RUN(calls_for_one_instance_run_side_by_side);
    RUN(close_waits_for_running_calls);
    iggy_mock_forget_log();
    return 0;
}
