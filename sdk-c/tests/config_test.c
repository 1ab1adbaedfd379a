/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* IggyConnector::config: every getter, and messages that name the key. */
#include "check.h"
#include "iggy_connector_config.h"
#include "log.h"

static char records[4096];

static void keep_record(uint8_t level, const uint8_t *target, size_t target_len,
                        const uint8_t *message, size_t len) {
    (void)target, (void)target_len;
    CHECK_EQUAL(level, IGGY_LOG_ERROR);
    CHECK(strlen(records) + len + 2 < sizeof records);
    strncat(records, (const char *)message, len);
    strcat(records, "\n");
}

static iggy_config parse(const char *json) {
    records[0] = 0;
    return iggy_config_parse((iggy_bytes){(const uint8_t *)json, strlen(json)});
}

static void expect_faults(iggy_config *config, const char *want) {
    CHECK_TEXT(records, want);
    CHECK_EQUAL(config->failed, *want != 0);
    iggy_config_free(config);
}

static void only_a_table_is_a_configuration(void) {
    static const struct {
        const char *json, *fault;
    } cases[] = {
        {"{}", ""},
        {" {} \n", ""},
        {"null", ""},
        {"", "plugin_config is not valid JSON\n"},
        {"{", "plugin_config is not valid JSON\n"},
        {"{} x", "plugin_config is not valid JSON\n"},
        {"[]", "plugin_config is not a table of keys and values\n"},
        {"7", "plugin_config is not a table of keys and values\n"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        iggy_config config = parse(cases[i].json);
        CHECK_EQUAL(iggy_config_int(&config, "x", 0, 9, 3), 3);
        expect_faults(&config, cases[i].fault);
    }
}

static void present_values_are_read(void) {
    iggy_config config = parse(
        "{\"text\":\"caf\\u00e9\",\"empty\":\"\",\"n\":-5,\"most\":9007199254740992,"
        "\"yes\":true,\"no\":false,\"t\":\"1h 30m\",\"token\":\"s3cret\"}");
    CHECK_TEXT(iggy_config_string(&config, "text", "other"), "caf\xc3\xa9");
    CHECK_TEXT(iggy_config_required_string(&config, "text"), "caf\xc3\xa9");
    CHECK_TEXT(iggy_config_string(&config, "empty", "other"), "");
    CHECK_TEXT(iggy_config_secret(&config, "token", ""), "s3cret");
    CHECK_TEXT(iggy_config_required_secret(&config, "token"), "s3cret");
    CHECK_EQUAL(iggy_config_int(&config, "n", -5, 5, 0), -5);
    CHECK_EQUAL(iggy_config_required_int(&config, "most", 0, INT64_MAX), 9007199254740992);
    CHECK(iggy_config_bool(&config, "yes", false) && iggy_config_required_bool(&config, "yes"));
    CHECK(!iggy_config_bool(&config, "no", true) && !iggy_config_required_bool(&config, "no"));
    CHECK_EQUAL(iggy_config_duration_ms(&config, "t", 0), 5400000);
    CHECK_EQUAL(iggy_config_required_duration_ms(&config, "t"), 5400000);
    expect_faults(&config, "");
}

static void absent_and_null_yield_the_default(void) {
    iggy_config config = parse("{\"text\":null,\"n\":null,\"b\":null,\"t\":null}");
    CHECK_TEXT(iggy_config_string(&config, "text", "other"), "other");
    CHECK(!iggy_config_secret(&config, "absent", NULL));
    CHECK_EQUAL(iggy_config_int(&config, "n", 0, 1, 42), 42);
    CHECK(iggy_config_bool(&config, "b", true));
    CHECK_EQUAL(iggy_config_duration_ms(&config, "t", 9), 9);
    expect_faults(&config, "");
}

static void required_keys_are_named_when_they_are_missing(void) {
    iggy_config config = parse("{\"e\":\"\"}");
    CHECK_TEXT(iggy_config_required_string(&config, "s"), "");
    CHECK_TEXT(iggy_config_required_string(&config, "e"), "");
    CHECK_TEXT(iggy_config_required_secret(&config, "p"), "");
    iggy_config_required_int(&config, "n", 1, 9);
    iggy_config_required_bool(&config, "b");
    iggy_config_required_duration_ms(&config, "t");
    expect_faults(&config,
                  "plugin_config.s is missing, expected a text that is not empty\n"
                  "plugin_config.e is \"\", expected a text that is not empty\n"
                  "plugin_config.p is missing, expected a text that is not empty\n"
                  "plugin_config.n is missing, expected a whole number from 1 to 9\n"
                  "plugin_config.b is missing, expected true or false\n"
                  "plugin_config.t is missing, expected a duration up to 30 days, such as "
                  "\"100ms\" or \"1h 30m\"\n");
}

static void values_of_the_wrong_kind_are_named_and_shown(void) {
    iggy_config config =
        parse("{\"s\":[1],\"n\":\"5\",\"f\":1.5,\"far\":10,\"huge\":1e300,\"b\":1}");
    iggy_config_string(&config, "s", "");
    CHECK_EQUAL(iggy_config_int(&config, "n", 0, 9, 3), 3);
    iggy_config_int(&config, "f", 0, 9, 3);
    iggy_config_int(&config, "far", 0, 9, 3);
    iggy_config_int(&config, "huge", 0, INT64_MAX, 3);
    CHECK(iggy_config_bool(&config, "b", true));
    iggy_config_fault(&config, "far", "an even number");
    expect_faults(
        &config,
        "plugin_config.s is [1], expected a text\n"
        "plugin_config.n is \"5\", expected a whole number from 0 to 9\n"
        "plugin_config.f is 1.5, expected a whole number from 0 to 9\n"
        "plugin_config.far is 10, expected a whole number from 0 to 9\n"
        "plugin_config.huge is 1e+300, expected a whole number from 0 to 9223372036854775807\n"
        "plugin_config.b is 1, expected true or false\n"
        "plugin_config.far is 10, expected an even number\n");
}

static void a_long_value_is_cut_behind_a_whole_character(void) {
    static const char chars[] = "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4";
    char json[256], want[256];
    snprintf(json, sizeof json, "{\"n\":\"%s%s%s%s%s\"}", chars, chars, chars, chars, chars);
    snprintf(want, sizeof want,
             "plugin_config.n is \"%s%s%s%.14s, expected a whole number from 0 to 9\n", chars,
             chars, chars, chars);
    iggy_config config = parse(json);
    iggy_config_int(&config, "n", 0, 9, 3);
    expect_faults(&config, want);
}

static void secret_of_the_wrong_kind_is_not_shown(void) {
    iggy_config config = parse("{\"password\":12345}");
    iggy_config_required_secret(&config, "password");
    expect_faults(&config, "plugin_config.password is not a text that is not empty\n");
}

static void durations_are_read_unit_by_unit(void) {
    static const struct {
        const char *text;
        uint64_t ms;
    } good[] = {{"0s", 0},       {"100ms", 100},        {"1.5s", 1500},
                {"2 m", 120000}, {" 1h 30m ", 5400000}, {"30d", 2592000000},
                {"0.5ms", 1},    {"1h1ms", 3600001}};
    static const char *const bad[] = {"",   " ",    "5",   "ms",  "-1s",  "1.s",
                                      "1x", "1e3s", "31d", "1s,", "1 s s"};
    char json[64];
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(json, sizeof json, "{\"t\":\"%s\"}", good[i].text);
        iggy_config config = parse(json);
        CHECK_EQUAL(iggy_config_duration_ms(&config, "t", 7), good[i].ms);
        expect_faults(&config, "");
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(json, sizeof json, "{\"t\":\"%s\"}", bad[i]);
        iggy_config config = parse(json);
        CHECK_EQUAL(iggy_config_duration_ms(&config, "t", 7), 7);
        CHECK(config.failed && strstr(records, "plugin_config.t is"));
        iggy_config_free(&config);
    }
}

int main(void) {
    iggy_sdk_log_install("test", keep_record);
    RUN(only_a_table_is_a_configuration);
    RUN(present_values_are_read);
    RUN(absent_and_null_yield_the_default);
    RUN(required_keys_are_named_when_they_are_missing);
    RUN(values_of_the_wrong_kind_are_named_and_shown);
    RUN(a_long_value_is_cut_behind_a_whole_character);
    RUN(secret_of_the_wrong_kind_is_not_shown);
    RUN(durations_are_read_unit_by_unit);
    return 0;
}
