/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * What file_sink promises beyond the contract: complete lines of JSON, whatever the
 * messages hold and whatever happens to the file.
 *
 * Usage: file_sink_test <library>
 */
#include <cjson/cJSON.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "host.h"

static iggy_sink_api api;
static uint32_t last_id;

struct fixture {
    uint32_t id;
    char *path;
};

static uint32_t open_on(const char *path) {
    char config[256];
    snprintf(config, sizeof config, "{\"path\":\"%s\"}", path);
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, config), IGGY_OK);
    return id;
}

static struct fixture opened(void) {
    static int files;
    char name[32];
    snprintf(name, sizeof name, "%d.ndjson", ++files);
    struct fixture f = {0, host_path(name)};
    f.id = open_on(f.path);
    return f;
}

static void end(struct fixture *f) {
    CHECK_EQUAL(api.close(f->id), IGGY_OK);
    free(f->path);
}

static int32_t consume(uint32_t id, uint8_t schema, const struct host_message *messages,
                       size_t count) {
    struct host_blobs blobs = host_encode("s", "t", 1, schema, messages, count);
    int32_t code = host_consume(&api, id, &blobs);
    host_free_blobs(&blobs);
    return code;
}

static void expect_file(const struct fixture *f, const char *want) {
    char *got = host_read_file(f->path);
    CHECK_TEXT(got, want);
    free(got);
}

/* ---- Records ------------------------------------------------------------------- */

static void expect_payload(uint8_t schema, const void *payload, size_t len, const char *want) {
    char line[512];
    struct fixture f = opened();
    struct host_message message = {.offset = 5, .payload = payload, .payload_len = len};
    CHECK_EQUAL(consume(f.id, schema, &message, 1), IGGY_OK);
    snprintf(line, sizeof line,
             "{\"stream\":\"s\",\"topic\":\"t\",\"partition\":1,\"offset\":5,\"headers\":{},"
             "\"payload\":%s}\n",
             want);
    expect_file(&f, line);
    end(&f);
}

static void json_stays_json_on_one_line(void) {
    static const char *const cases[][2] = {
        {"{\"a\":1}", "{\"a\":1}"},
        {" { \"a\" :\r\n [ 1 , 2.50 , -0e+1 , \"x y\\n\\\" \" ] ,\t\"b\":null } ",
         "{\"a\":[1,2.50,-0e+1,\"x y\\n\\\" \"],\"b\":null}"},
        {"123456789012345678901234567890", "123456789012345678901234567890"},
        {"\"\xc3\xa4\"", "\"\xc3\xa4\""},
        {"{\"a\":1,\"a\":2}", "{\"a\":1,\"a\":2}"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_payload(IGGY_SCHEMA_JSON, cases[i][0], strlen(cases[i][0]), cases[i][1]);
    }
}

static void what_is_no_json_is_a_string(void) {
    expect_payload(IGGY_SCHEMA_JSON, "{\"a\":", 5, "\"{\\\"a\\\":\"");
    expect_payload(IGGY_SCHEMA_JSON, "\xff", 1, "\"/w==\",\"encoding\":\"base64\"");
}

static void text_is_a_string(void) {
    expect_payload(IGGY_SCHEMA_TEXT, "a\"b\\c\n\r\t\x01\x1f\xe2\x82\xac", 13,
                   "\"a\\\"b\\\\c\\n\\r\\t\\u0001\\u001f\xe2\x82\xac\"");
    expect_payload(IGGY_SCHEMA_TEXT, "", 0, "\"\"");
    expect_payload(IGGY_SCHEMA_TEXT, "\xc0\x80", 2, "\"wIA=\",\"encoding\":\"base64\"");
}

static void other_schemas_are_base64(void) {
    static const uint8_t others[] = {IGGY_SCHEMA_RAW, IGGY_SCHEMA_PROTO, IGGY_SCHEMA_FLAT_BUFFER,
                                     IGGY_SCHEMA_AVRO};
    for (size_t i = 0; i < sizeof others; i++) {
        expect_payload(others[i], "\x00\xfb\xff", 3, "\"APv/\",\"encoding\":\"base64\"");
    }
    expect_payload(IGGY_SCHEMA_RAW, "a", 1, "\"YQ==\",\"encoding\":\"base64\"");
    expect_payload(IGGY_SCHEMA_RAW, "ab", 2, "\"YWI=\",\"encoding\":\"base64\"");
}

#define FF8 "\xff\xff\xff\xff\xff\xff\xff\xff"
#define ZERO8 "\0\0\0\0\0\0\0\0"

static void headers_of_every_kind_are_told(void) {
    static const struct {
        uint8_t kind;
        const char *value;
        size_t len;
        const char *as_value, *as_key;
    } cases[] = {
        {IGGY_HEADER_RAW, "\x01\x02", 2, "{\"raw\":\"AQI=\"}", "\"AQI=\""},
        {IGGY_HEADER_STRING, "a\"\n", 3, "{\"string\":\"a\\\"\\n\"}", "\"a\\\"\\n\""},
        {IGGY_HEADER_BOOL, "\x01", 1, "{\"bool\":true}", "\"true\""},
        {IGGY_HEADER_BOOL, "\x00", 1, "{\"bool\":false}", "\"false\""},
        {IGGY_HEADER_INT8, "\x80", 1, "{\"int8\":-128}", "\"-128\""},
        {IGGY_HEADER_INT16, "\xff\x7f", 2, "{\"int16\":32767}", "\"32767\""},
        {IGGY_HEADER_INT32, "\xfe\xff\xff\xff", 4, "{\"int32\":-2}", "\"-2\""},
        {IGGY_HEADER_INT64, "\0\0\0\0\0\0\0\x80", 8, "{\"int64\":-9223372036854775808}",
         "\"-9223372036854775808\""},
        {IGGY_HEADER_INT128, FF8 FF8, 16, "{\"int128\":\"-1\"}", "\"-1\""},
        {IGGY_HEADER_INT128, ZERO8 "\0\0\0\0\0\0\0\x80", 16,
         "{\"int128\":\"-170141183460469231731687303715884105728\"}",
         "\"-170141183460469231731687303715884105728\""},
        {IGGY_HEADER_UINT8, "\xff", 1, "{\"uint8\":255}", "\"255\""},
        {IGGY_HEADER_UINT16, "\x00\x01", 2, "{\"uint16\":256}", "\"256\""},
        {IGGY_HEADER_UINT32, "\xff\xff\xff\xff", 4, "{\"uint32\":4294967295}", "\"4294967295\""},
        {IGGY_HEADER_UINT64, FF8, 8, "{\"uint64\":18446744073709551615}",
         "\"18446744073709551615\""},
        {IGGY_HEADER_UINT128, FF8 FF8, 16,
         "{\"uint128\":\"340282366920938463463374607431768211455\"}",
         "\"340282366920938463463374607431768211455\""},
        {IGGY_HEADER_UINT128, ZERO8 ZERO8, 16, "{\"uint128\":\"0\"}", "\"0\""},
        {IGGY_HEADER_FLOAT32, "\0\0\xc0\x3f", 4, "{\"float32\":1.5}", "\"1.5\""},
        {IGGY_HEADER_FLOAT64, "\0\0\0\0\0\0\xf0\xbf", 8, "{\"float64\":-1}", "\"-1\""},
        {IGGY_HEADER_FLOAT64, "\0\0\0\0\0\0\xf0\x7f", 8, "{\"float64\":\"inf\"}", "\"inf\""},
        {IGGY_HEADER_INT32, "\x01", 1, "{\"int32\":\"AQ==\"}", "\"AQ==\""}, /* wrong size */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f = opened();
        char line[512];
        const struct host_header headers[] = {
            {IGGY_HEADER_STRING, "k", 1, cases[i].kind, cases[i].value, cases[i].len},
            {cases[i].kind, cases[i].value, cases[i].len, IGGY_HEADER_STRING, "v", 1},
        };
        struct host_message message = {
            .offset = 1, .headers = headers, .header_count = 2, .payload = "1", .payload_len = 1};
        CHECK_EQUAL(consume(f.id, IGGY_SCHEMA_JSON, &message, 1), IGGY_OK);
        snprintf(line, sizeof line,
                 "{\"stream\":\"s\",\"topic\":\"t\",\"partition\":1,\"offset\":1,"
                 "\"headers\":{\"k\":%s,%s:{\"string\":\"v\"}},\"payload\":1}\n",
                 cases[i].as_value, cases[i].as_key);
        expect_file(&f, line);
        end(&f);
    }
}

static void longest_header_is_told(void) {
    uint8_t longest[255];
    struct fixture f = opened();
    memset(longest, 'h', sizeof longest);
    const struct host_header header = {IGGY_HEADER_STRING, longest, 255,
                                       IGGY_HEADER_STRING, longest, 255};
    struct host_message message = {
        .headers = &header, .header_count = 1, .payload = "1", .payload_len = 1};
    CHECK_EQUAL(consume(f.id, IGGY_SCHEMA_JSON, &message, 1), IGGY_OK);
    char *text = host_read_file(f.path);
    CHECK(strlen(text) > 510);
    free(text);
    end(&f);
}

static void broken_headers_refuse_the_batch(void) {
    static const struct {
        const char *bytes;
        size_t len;
    } cases[] = {
        {"\x01", 1}, /* an entry is announced, none follows */
        {"\x01\x01\x04"
         "aw=="
         "\x0f\x04"
         "AA==",
         13}, /* kind 15 */
        {"\x01\x01\x04"
         "aw=-"
         "\x01\x04"
         "AA==",
         13}, /* no base64 */
        {"\x01\x01\x04"
         "aw=="
         "\x01\x05"
         "AAAAA",
         14}, /* no length of base64 */
        {"\x01\x01\x04"
         "ax=="
         "\x01\x04"
         "AA==",
         13}, /* bits where padding is */
    };
    struct fixture f = opened();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t messages[64] = {0, 1, 1, 0, 0, 0, 0};
        size_t len = 7;
        messages[len++] = (uint8_t)cases[i].len;
        memcpy(messages + len, cases[i].bytes, cases[i].len);
        len += cases[i].len;
        messages[len++] = 1;
        messages[len++] = '1';
        CHECK_EQUAL(api.consume(f.id, (const uint8_t *)"\x01s\x01t", 4, (const uint8_t *)"\0\0\0",
                                3, messages, len),
                    IGGY_INVALID);
    }
    expect_file(&f, "");
    end(&f);
}

/* ---- The file -------------------------------------------------------------------- */

static const struct host_message two[] = {
    {.offset = 1, .payload = "11", .payload_len = 2},
    {.offset = 2, .payload = "22", .payload_len = 2},
};
static const char two_lines[] =
    "{\"stream\":\"s\",\"topic\":\"t\",\"partition\":1,\"offset\":1,\"headers\":{},\"payload\":11}"
    "\n"
    "{\"stream\":\"s\",\"topic\":\"t\",\"partition\":1,\"offset\":2,\"headers\":{},\"payload\":22}"
    "\n";

static void restart_appends(void) {
    struct fixture f = opened();
    CHECK_EQUAL(consume(f.id, IGGY_SCHEMA_JSON, &two[0], 1), IGGY_OK);
    CHECK_EQUAL(api.close(f.id), IGGY_OK);
    f.id = open_on(f.path);
    CHECK_EQUAL(consume(f.id, IGGY_SCHEMA_JSON, &two[1], 1), IGGY_OK);
    expect_file(&f, two_lines);
    end(&f);
}

/* A limit on the size of files is a disk that fills up: the first part of the write
 * succeeds, the rest does not. */
static void full_disk_leaves_no_half_line(void) {
    struct fixture f = opened();
    struct rlimit before, full;
    CHECK_EQUAL(getrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    CHECK_EQUAL(consume(f.id, IGGY_SCHEMA_JSON, two, 2), IGGY_OK);
    full = before;
    full.rlim_cur = sizeof two_lines - 1 + 20;
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &full), 0);
    CHECK_EQUAL(consume(f.id, IGGY_SCHEMA_JSON, two, 2), IGGY_FAILED);
    CHECK(host_logged("cannot append"));
    expect_file(&f, two_lines);
    CHECK_EQUAL(setrlimit(RLIMIT_FSIZE, &before), 0);
    CHECK_EQUAL(consume(f.id, IGGY_SCHEMA_JSON, two, 2), IGGY_OK);
    char twice[2 * sizeof two_lines];
    snprintf(twice, sizeof twice, "%s%s", two_lines, two_lines);
    expect_file(&f, twice);
    end(&f);
}

static void half_line_of_a_crash_is_cut_off(void) {
    static const char *const halves[] = {"{\"stream\":\"s\",\"topic\":\"t", "{\"str", "{"};
    for (size_t i = 0; i < sizeof halves / sizeof *halves; i++) {
        struct fixture f = opened();
        CHECK_EQUAL(api.close(f.id), IGGY_OK);
        host_write_file(f.path, two_lines);
        host_append_file(f.path, halves[i]);
        f.id = open_on(f.path);
        CHECK(host_logged("half a line"));
        expect_file(&f, two_lines);
        end(&f);
    }
}

static void foreign_text_gets_a_line_of_its_own(void) {
    struct fixture f = opened();
    CHECK_EQUAL(api.close(f.id), IGGY_OK);
    host_write_file(f.path, "no line feed at the end");
    f.id = open_on(f.path);
    expect_file(&f, "no line feed at the end\n");
    end(&f);
}

static void path_that_cannot_be_opened_leaves_it_half_open(void) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_sink(&api, id, "{\"path\":\"/nonexistent/file\"}"), IGGY_FAILED);
    CHECK(host_logged("cannot open"));
    CHECK_EQUAL(consume(id, IGGY_SCHEMA_JSON, two, 2), IGGY_INVALID);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    CHECK_EQUAL(api.close(id), IGGY_INVALID);
}

static void device_can_be_written_to(void) {
    uint32_t id = open_on("/dev/null");
    CHECK_EQUAL(consume(id, IGGY_SCHEMA_JSON, two, 2), IGGY_OK);
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

enum { THREADS = 8, BATCHES = 40, BATCH = 25 };

static void *consume_many(void *id) {
    char payload[64];
    struct host_message messages[BATCH];
    for (int batch = 0; batch < BATCHES; batch++) {
        memset(payload, 'p', sizeof payload);
        for (int i = 0; i < BATCH; i++) {
            messages[i] = (struct host_message){
                .offset = (uint64_t)i, .payload = payload, .payload_len = (size_t)(batch % 60 + 1)};
        }
        CHECK_EQUAL(consume(*(uint32_t *)id, IGGY_SCHEMA_TEXT, messages, BATCH), IGGY_OK);
    }
    return NULL;
}

/* Two instances on one file, each with four threads. */
static void concurrent_batches_stay_whole(void) {
    struct fixture f = opened();
    uint32_t ids[2] = {f.id, open_on(f.path)};
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        CHECK_EQUAL(pthread_create(&threads[i], NULL, consume_many, &ids[i % 2]), 0);
    }
    for (int i = 0; i < THREADS; i++) CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
    char *text = host_read_file(f.path);
    int lines = 0;
    for (char *line = text, *next; *line; line = next, lines++) {
        next = strchr(line, '\n');
        CHECK(next);
        *next++ = '\0';
        cJSON *record = cJSON_Parse(line);
        const cJSON *offset = cJSON_GetObjectItemCaseSensitive(record, "offset");
        CHECK(cJSON_IsNumber(offset));
        CHECK_EQUAL(offset->valuedouble, lines % BATCH); /* batches are not interleaved */
        cJSON_Delete(record);
    }
    CHECK_EQUAL(lines, THREADS * BATCHES * BATCH);
    free(text);
    CHECK_EQUAL(api.close(ids[1]), IGGY_OK);
    end(&f);
}

int main(int argc, char **argv) {
    CHECK_EQUAL(argc, 2);
    api = host_load_sink(argv[1]);
    RUN(json_stays_json_on_one_line);
    RUN(what_is_no_json_is_a_string);
    RUN(text_is_a_string);
    RUN(other_schemas_are_base64);
    RUN(headers_of_every_kind_are_told);
    RUN(longest_header_is_told);
    RUN(broken_headers_refuse_the_batch);
    RUN(restart_appends);
    RUN(full_disk_leaves_no_half_line);
    RUN(half_line_of_a_crash_is_cut_off);
    RUN(foreign_text_gets_a_line_of_its_own);
    RUN(path_that_cannot_be_opened_leaves_it_half_open);
    RUN(device_can_be_written_to);
    RUN(concurrent_batches_stay_whole);
    return 0;
}
