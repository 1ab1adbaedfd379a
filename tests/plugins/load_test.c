/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * What random_source, stdout_sink and the load plugins of the bench produce.
 *
 * Usage: load_test <random_source> <stdout_sink> <blast_source> <count_sink>
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "host.h"

static const char *random_source, *stdout_sink, *blast_source, *count_sink;
static uint32_t last_id;

/* A number in a JSON object; `path` names the members down to it. */
static uint64_t number(const char *json, const char *path) {
    cJSON *root = cJSON_Parse(json), *value = root;
    CHECK(root);
    char names[64], *rest = names;
    snprintf(names, sizeof names, "%s", path);
    for (char *name; (name = strtok_r(rest, ".", &rest));) {
        value = cJSON_GetObjectItemCaseSensitive(value, name);
    }
    CHECK(cJSON_IsNumber(value));
    uint64_t result = (uint64_t)value->valuedouble;
    cJSON_Delete(root);
    return result;
}

static size_t text_length(const char *json) {
    cJSON *root = cJSON_Parse(json);
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(root, "text"));
    CHECK(text);
    size_t len = strlen(text);
    cJSON_Delete(root);
    return len;
}

/* ---- random_source ----------------------------------------------------------------- */

static void random_source_keeps_to_its_configuration(void) {
    iggy_source_api api = host_load_source(random_source);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id,
                                 "{\"interval\":\"1ms\",\"messages_range\":[3,5],"
                                 "\"payload_size\":17,\"max_count\":50}"),
                IGGY_OK);
    CHECK_EQUAL(api.handle_v2(id, host_send_v2), IGGY_OK);
    uint64_t records = 0;
    while (records < 50) {
        struct host_batch *batch = host_next_batch();
        CHECK(batch);
        CHECK_EQUAL(batch->schema, IGGY_SCHEMA_JSON);
        CHECK(batch->count <= 5 && (batch->count >= 3 || records + batch->count == 50));
        for (size_t i = 0; i < batch->count; i++) {
            CHECK_EQUAL(number(batch->payloads[i], "id"), ++records);
            CHECK_EQUAL(text_length(batch->payloads[i]), 17);
        }
        CHECK_EQUAL(api.batch_result(id, batch->batch_id, IGGY_BATCH_ACK), IGGY_OK);
        host_free_batch(batch);
    }
    CHECK(!host_next_batch_within(100)); /* max_count */
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void random_source_waits_for_its_interval(void) {
    iggy_source_api api = host_load_source(random_source);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id, "{\"interval\":\"1h\"}"), IGGY_OK);
    CHECK_EQUAL(api.handle_v2(id, host_send_v2), IGGY_OK);
    CHECK(!host_next_batch_within(200));
    CHECK_EQUAL(api.close(id), IGGY_OK); /* at once */
}

static void random_source_names_bad_options(void) {
    static const char *const broken[][2] = {
        {"{\"interval\":\"soon\"}", "interval is \"soon\""},
        {"{\"interval\":\"-1s\"}", "interval"},
        {"{\"interval\":\"366d\"}", "interval"},
        {"{\"interval\":100}", "interval is 100, expected a duration"},
        {"{\"messages_range\":[5,3]}", "messages_range is [5,3]"},
        {"{\"messages_range\":[1,2,3]}", "messages_range"},
        {"{\"messages_range\":[1]}", "messages_range"},
        {"{\"messages_range\":7}", "messages_range"},
        {"{\"payload_size\":0}", "payload_size is 0"},
        {"{\"max_count\":\"many\"}", "max_count"},
    };
    iggy_source_api api = host_load_source(random_source);
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        uint32_t id = ++last_id;
        CHECK_EQUAL(host_open_source(&api, id, broken[i][0]), IGGY_INVALID);
        CHECK(host_logged(broken[i][1]));
        CHECK_EQUAL(api.close(id), IGGY_INVALID);
    }
}

/* ---- blast_source ------------------------------------------------------------------ */

static void blast_source_sends_what_was_ordered(void) {
    iggy_source_api api = host_load_source(blast_source);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id, "{\"total\":25,\"batch\":10,\"payload\":256}"), IGGY_OK);
    CHECK_EQUAL(api.handle_v2(id, host_send_v2), IGGY_OK);
    for (uint64_t batch_id = 1; batch_id <= 3; batch_id++) {
        struct host_batch *batch = host_next_batch();
        CHECK(batch);
        CHECK_EQUAL(batch->count, 10);
        CHECK(!batch->has_state);
        for (size_t i = 0; i < batch->count; i++) {
            CHECK_EQUAL(batch->lens[i], 256);
            CHECK_EQUAL(number(batch->payloads[i], "seq"), i);
        }
        CHECK_EQUAL(api.batch_result(id, batch_id, IGGY_BATCH_ACK), IGGY_OK);
        host_free_batch(batch);
    }
    CHECK(!host_next_batch_within(100));
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void blast_source_tells_its_state_when_asked(void) {
    iggy_source_api api = host_load_source(blast_source);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id, "{\"total\":20,\"batch\":10,\"state\":true}"), IGGY_OK);
    CHECK_EQUAL(api.handle(id, host_send), IGGY_OK);
    struct host_batch *batches[2] = {host_next_batch(), host_next_batch()};
    for (int i = 0; i < 2; i++) {
        CHECK(batches[i] && batches[i]->has_state);
        CHECK_EQUAL(batches[i]->state_len, 2);
        CHECK_EQUAL(batches[i]->state[1], 10 * (i + 1));
        host_free_batch(batches[i]);
    }
    CHECK(!host_next_batch_within(50));
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

/* ---- Sinks --------------------------------------------------------------------------- */

static uint64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void consume(const iggy_sink_api *api, uint32_t id, uint8_t schema, const char *payload,
                    uint64_t count) {
    struct host_message messages[16];
    CHECK(count <= 16);
    for (uint64_t i = 0; i < count; i++) {
        messages[i] = (struct host_message){.offset = 7 + i,
                                            .timestamp = now_us() - 1000,
                                            .payload = payload,
                                            .payload_len = strlen(payload)};
    }
    struct host_blobs blobs = host_encode("s", "t", 3, schema, messages, (size_t)count);
    CHECK_EQUAL(host_consume(api, id, &blobs), IGGY_OK);
    host_free_blobs(&blobs);
}

static void count_sink_reports_when_all_has_come(void) {
    iggy_sink_api api = host_load_sink(count_sink);
    char config[256], *path = host_path("report.json"), *text;
    snprintf(config, sizeof config, "{\"expect\":20,\"latency\":true,\"report\":\"%s\"}", path);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_OK);
    consume(&api, id, IGGY_SCHEMA_RAW, "abc", 10);
    CHECK(access(path, F_OK) != 0);
    consume(&api, id, IGGY_SCHEMA_RAW, "abc", 10);
    text = host_read_file(path);
    CHECK_EQUAL(number(text, "messages"), 20);
    CHECK_EQUAL(number(text, "batches"), 2);
    CHECK(number(text, "bytes") > 20 * 4);
    CHECK(number(text, "message_us.p50") >= 1000);
    CHECK(number(text, "message_us.p50") <= number(text, "message_us.p99"));
    CHECK(number(text, "message_us.p99") <= number(text, "message_us.max"));
    CHECK_EQUAL(unlink(path), 0);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    CHECK(access(path, F_OK) != 0); /* not twice */
    free(text);
    free(path);
}

static void count_sink_reports_at_close(void) {
    iggy_sink_api api = host_load_sink(count_sink);
    char config[256], *path = host_path("report.json"), *text;
    snprintf(config, sizeof config, "{\"report\":\"%s\"}", path);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_OK);
    consume(&api, id, IGGY_SCHEMA_JSON, "1", 3);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    text = host_read_file(path);
    CHECK_EQUAL(number(text, "messages"), 3);
    free(text);
    free(path);
}

static void count_sink_takes_its_time(void) {
    iggy_sink_api api = host_load_sink(count_sink);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, "{\"delay_us\":50000}"), IGGY_OK);
    uint64_t start = now_us();
    consume(&api, id, IGGY_SCHEMA_JSON, "1", 1);
    CHECK(now_us() - start >= 50000);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

/* Runs with stdout in a file and returns what was printed. */
static char *printed(const char *config, uint8_t schema, const char *payload, uint64_t count) {
    iggy_sink_api api = host_load_sink(stdout_sink);
    char *path = host_path("stdout");
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_OK);
    int before = dup(STDOUT_FILENO), file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    CHECK(before >= 0 && file >= 0);
    CHECK_EQUAL(dup2(file, STDOUT_FILENO), STDOUT_FILENO);
    consume(&api, id, schema, payload, count);
    CHECK_EQUAL(dup2(before, STDOUT_FILENO), STDOUT_FILENO);
    close(before);
    close(file);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    char *text = host_read_file(path);
    free(path);
    return text;
}

static void stdout_sink_prints_batches_or_payloads(void) {
    static const struct {
        const char *config;
        uint8_t schema;
        const char *payload, *want;
    } cases[] = {
        {"null", IGGY_SCHEMA_TEXT, "hi", "s/t/3: 2 messages, offsets 7 to 8\n"},
        {"{\"print_payload\":false}", IGGY_SCHEMA_RAW, "hi", "s/t/3: 2 messages, offsets 7 to 8\n"},
        {"{\"print_payload\":true}", IGGY_SCHEMA_TEXT, "hi", "s/t/3@7: hi\ns/t/3@8: hi\n"},
        {"{\"print_payload\":true}", IGGY_SCHEMA_JSON, "{\"a\":1}",
         "s/t/3@7: {\"a\":1}\ns/t/3@8: {\"a\":1}\n"},
        {"{\"print_payload\":true}", IGGY_SCHEMA_RAW, "\xff",
         "s/t/3@7: \"/w==\"\ns/t/3@8: \"/w==\"\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *got = printed(cases[i].config, cases[i].schema, cases[i].payload, 2);
        CHECK_TEXT(got, cases[i].want);
        free(got);
    }
}

static void stdout_sink_fails_when_it_cannot_print(void) {
    iggy_sink_api api = host_load_sink(stdout_sink);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, "null"), IGGY_OK);
    int before = dup(STDOUT_FILENO), full = open("/dev/full", O_WRONLY);
    CHECK(before >= 0 && full >= 0 && dup2(full, STDOUT_FILENO) == STDOUT_FILENO);
    struct host_message message = {.payload = "x", .payload_len = 1};
    struct host_blobs blobs = host_encode("s", "t", 3, IGGY_SCHEMA_TEXT, &message, 1);
    int32_t code = host_consume(&api, id, &blobs);
    CHECK_EQUAL(dup2(before, STDOUT_FILENO), STDOUT_FILENO);
    CHECK_EQUAL(code, IGGY_FAILED);
    CHECK(host_logged("cannot print"));
    close(before);
    close(full);
    host_free_blobs(&blobs);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

int main(int argc, char **argv) {
    CHECK_EQUAL(argc, 5);
    random_source = argv[1];
    stdout_sink = argv[2];
    blast_source = argv[3];
    count_sink = argv[4];
    RUN(random_source_keeps_to_its_configuration);
    RUN(random_source_waits_for_its_interval);
    RUN(random_source_names_bad_options);
    RUN(blast_source_sends_what_was_ordered);
    RUN(blast_source_tells_its_state_when_asked);
    RUN(count_sink_reports_when_all_has_come);
    RUN(count_sink_reports_at_close);
    RUN(count_sink_takes_its_time);
    RUN(stdout_sink_prints_batches_or_payloads);
    RUN(stdout_sink_fails_when_it_cannot_print);
    return 0;
}
