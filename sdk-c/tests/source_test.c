/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * What connector.h asks of a source, of the table that an author fills: the delivery
 * contract of both generations, driven by the mock host.
 *
 * Usage: source_test [impatient]; `impatient` is for the program whose SDK waits 3 s
 * for a result and pauses 300 ms at most.
 */
#include <pthread.h>
#include <time.h>

#include "check.h"
#include "iggy_connector_mock.h"

enum { SOON = 20000, NOT_YET = 300 }; /* ms: what comes, comes by then; what does not, has not */

/* ---- A source ------------------------------------------------------------- */

/* Its configuration is one word that says how it behaves. Record n is the number n,
 * and the state of a batch is its last record. */
struct counter {
    char mode[32];
    uint8_t next;
    uint8_t acknowledged;
    unsigned polls;
};

static bool behaves(const struct counter *counter, const char *mode) {
    return strcmp(counter->mode, mode) == 0;
}

static int32_t open_counter(const iggy_open_args *args, void **instance) {
    struct counter *counter = calloc(1, sizeof *counter);
    CHECK(counter && args->config.len < sizeof counter->mode);
    memcpy(counter->mode, args->config.data, args->config.len);
    if (args->state.data && args->state.len == 1) counter->acknowledged = args->state.data[0];
    if (args->state.data && args->state.len == 0) iggy_log(IGGY_LOG_WARN, "the state is empty");
    counter->next = (uint8_t)(counter->acknowledged + 1);
    int32_t code = behaves(counter, "fails")     ? IGGY_FAILED
                   : behaves(counter, "invalid") ? IGGY_INVALID
                                                 : IGGY_OK;
    if (code == IGGY_OK) *instance = counter;
    else free(counter);
    return code;
}

static int32_t poll_counter(void *instance, iggy_producer *producer) {
    struct counter *counter = instance;
    unsigned polls = ++counter->polls;
    if (behaves(counter, "waits") && !iggy_produce_wait(producer, 3600000)) {
        iggy_log(IGGY_LOG_INFO, "the wait was broken off");
    }
    if (behaves(counter, "poll_fails") && polls <= 5) return IGGY_FAILED;
    if (behaves(counter, "idle") && polls <= 3) return IGGY_OK;
    if (behaves(counter, "faulty") && polls <= 2) iggy_produce(producer, "", 0);
    if (behaves(counter, "state_only")) {
        iggy_produce_state(producer, "s", 1);
        return IGGY_OK;
    }
    iggy_produce_schema(producer, IGGY_SCHEMA_RAW);
    iggy_produce(producer, &counter->next, 1);
    iggy_produce_state(producer, &counter->next, 1);
    return IGGY_OK;
}

static int32_t on_result(void *instance, enum iggy_batch_result result) {
    struct counter *counter = instance;
    if (behaves(counter, "hook_fails")) return IGGY_FAILED;
    if (result == IGGY_BATCH_ACK) counter->acknowledged = counter->next++;
    else counter->next = (uint8_t)(counter->acknowledged + 1);
    iggy_log(IGGY_LOG_INFO, "applied %s", result == IGGY_BATCH_ACK ? "Ack" : "Nack");
    return IGGY_OK;
}

static void close_counter(void *instance) {
    iggy_log(IGGY_LOG_INFO, "closed");
    free(instance);
}

static const iggy_source_plugin plugin = {"counter",    "1.2.3",   open_counter,
                                          poll_counter, on_result, close_counter};
IGGY_SOURCE_PLUGIN(plugin)
static const iggy_source_api api = IGGY_MOCK_SOURCE_API;

/* The same without a hook: it never goes back, every poll yields the next record. */
static int32_t poll_onward(void *instance, iggy_producer *producer) {
    int32_t code = poll_counter(instance, producer);
    ((struct counter *)instance)->next++;
    return code;
}
static const iggy_source_plugin onward = {"counter",   "1.2.3", open_counter,
                                          poll_onward, NULL,    close_counter};
static int32_t open_onward(uint32_t id, const uint8_t *config, size_t config_len,
                           const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    return iggy_sdk_source_open(&onward, id, (iggy_bytes){config, config_len},
                                (iggy_bytes){state, state_len}, log);
}
static const iggy_source_api onward_api = {open_onward,           iggy_source_handle,
                                           iggy_source_close,     iggy_source_version,
                                           iggy_source_handle_v2, iggy_source_batch_result};

/* ---- Helpers -------------------------------------------------------------- */

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static iggy_mock_source *opened(const iggy_source_api *functions, const char *mode) {
    int32_t code;
    iggy_mock_forget_log();
    iggy_mock_source *source = iggy_mock_open_source(functions, mode, NULL, 0, &code);
    CHECK_EQUAL(code, IGGY_OK);
    return source;
}

static iggy_mock_source *started(const char *mode) {
    iggy_mock_source *source = opened(&api, mode);
    CHECK_EQUAL(iggy_mock_start(source, 2), IGGY_OK);
    return source;
}

static void expect(iggy_mock_source *source, uint64_t batch_id, uint8_t record) {
    const iggy_mock_produced *batch = iggy_mock_next(source, SOON);
    CHECK(batch);
    CHECK_EQUAL(batch->batch_id, batch_id);
    CHECK_EQUAL(batch->schema, IGGY_SCHEMA_RAW);
    CHECK_EQUAL(batch->count, 1);
    CHECK_EQUAL(batch->messages[0].payload_len, 1);
    CHECK_EQUAL(*(const uint8_t *)batch->messages[0].payload, record);
    CHECK(batch->has_state && batch->state.len == 1 && batch->state.data[0] == record);
}

static void expect_none(iggy_mock_source *source, unsigned ms) {
    CHECK(!iggy_mock_next(source, ms));
}

static void await_record(const char *text) {
    double end = seconds() + SOON / 1000;
    while (!iggy_mock_logged(text)) {
        CHECK(seconds() < end);
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    }
}

/* ---- Instances ------------------------------------------------------------ */

static void version_is_the_tables(void) { CHECK_TEXT(api.version(), "1.2.3"); }

static void unknown_id_is_refused(void) {
    CHECK_EQUAL(api.handle(4711, NULL), IGGY_INVALID);
    CHECK_EQUAL(api.handle_v2(4711, NULL), IGGY_INVALID);
    CHECK_EQUAL(api.batch_result(4711, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(api.close(4711), IGGY_INVALID);
}

static void ignore_record(uint8_t level, const uint8_t *target, size_t target_len,
                          const uint8_t *message, size_t message_len) {
    (void)level, (void)target, (void)target_len, (void)message, (void)message_len;
}

static void duplicate_id_leaves_the_first_alone(void) {
    iggy_mock_source *source = started("counts");
    uint32_t id = iggy_mock_source_id(source);
    CHECK_EQUAL(api.open(id, (const uint8_t *)"x", 1, NULL, 0, ignore_record), IGGY_INVALID);
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
    CHECK_EQUAL(api.close(id), IGGY_INVALID);
}

static void failed_open_occupies_its_id_until_close(void) {
    static const struct {
        const char *config;
        int32_t open, close;
    } cases[] = {{"fails", IGGY_FAILED, IGGY_OK},
                 {"invalid", IGGY_INVALID, IGGY_INVALID},
                 {"\xff", IGGY_INVALID, IGGY_INVALID}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int32_t code;
        iggy_mock_forget_log();
        iggy_mock_source *source = iggy_mock_open_source(&api, cases[i].config, NULL, 0, &code);
        CHECK_EQUAL(code, cases[i].open);
        CHECK_EQUAL(iggy_mock_start(source, 2), IGGY_INVALID);
        CHECK_EQUAL(
            api.open(iggy_mock_source_id(source), (const uint8_t *)"x", 1, NULL, 0, ignore_record),
            IGGY_INVALID);
        CHECK_EQUAL(iggy_mock_close_source(source), cases[i].close);
        CHECK(!iggy_mock_logged("closed"));
    }
}

static void state_comes_back_at_open(void) {
    int32_t code;
    iggy_mock_source *source = iggy_mock_open_source(&api, "counts", "\x07", 1, &code);
    CHECK_EQUAL(code, IGGY_OK);
    CHECK_EQUAL(iggy_mock_start(source, 2), IGGY_OK);
    expect(source, 1, 8);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);

    source = iggy_mock_open_source(&api, "counts", "", 0, &code);
    CHECK_EQUAL(code, IGGY_OK);
    CHECK(iggy_mock_logged("the state is empty")); /* present, and not NULL */
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void starts_once(void) {
    iggy_mock_source *source = started("counts");
    CHECK_EQUAL(iggy_mock_start(source, 2), IGGY_INVALID);
    CHECK_EQUAL(iggy_mock_start(source, 1), IGGY_INVALID);
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void never_started_instance_can_be_closed(void) {
    iggy_mock_source *source = opened(&api, "counts");
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
    CHECK(iggy_mock_logged("closed"));
}

/* ---- Results -------------------------------------------------------------- */

static void one_batch_is_in_flight(void) {
    iggy_mock_source *source = started("counts");
    expect(source, 1, 1);
    expect_none(source, NOT_YET);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_ACK), IGGY_OK);
    expect(source, 2, 2);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void nacked_records_come_again(void) {
    iggy_mock_source *source = started("counts");
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_NACK), IGGY_OK);
    expect(source, 2, 1);
    CHECK_EQUAL(iggy_mock_result(source, 2, IGGY_BATCH_ACK), IGGY_OK);
    expect(source, 3, 2);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void result_must_name_the_pending_batch(void) {
    iggy_mock_source *source = started("counts");
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_result(source, 2, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(iggy_mock_result(source, 0, IGGY_BATCH_NACK), IGGY_INVALID);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_ACK), IGGY_OK);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    expect(source, 2, 2);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void unknown_result_is_a_nack_and_an_error(void) {
    iggy_mock_source *source = started("counts");
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_result(source, 1, 9), IGGY_INVALID);
    CHECK(iggy_mock_logged("applied Nack"));
    expect(source, 2, 1);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void refused_batch_is_a_nack(void) {
    iggy_mock_source *source = opened(&api, "counts");
    iggy_mock_refuse(source, 2);
    CHECK_EQUAL(iggy_mock_start(source, 2), IGGY_OK);
    expect(source, 3, 1);
    CHECK(iggy_mock_logged("batch 1 was refused"));
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void fifth_nack_in_a_row_ends_the_source(void) {
    iggy_mock_source *source = started("counts");
    double start = seconds();
    for (uint64_t batch_id = 1; batch_id <= 5; batch_id++) {
        expect(source, batch_id, 1);
        CHECK_EQUAL(iggy_mock_result(source, batch_id, IGGY_BATCH_NACK),
                    batch_id < 5 ? IGGY_OK : IGGY_INVALID);
    }
    CHECK(seconds() - start >= 1.5); /* 100 + 200 + 400 + 800 ms of pauses */
    expect_none(source, 1000);
    CHECK(iggy_mock_logged("too many batches in a row"));
    CHECK_EQUAL(iggy_mock_result(source, 5, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void ack_begins_the_count_of_nacks_anew(void) {
    iggy_mock_source *source = started("counts");
    for (uint64_t batch_id = 1; batch_id <= 7; batch_id++) {
        expect(source, batch_id, batch_id <= 4 ? 1 : 2);
        uint8_t result = batch_id == 4 ? IGGY_BATCH_ACK : IGGY_BATCH_NACK;
        CHECK_EQUAL(iggy_mock_result(source, batch_id, result), IGGY_OK);
    }
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void failing_hook_ends_the_source(void) {
    iggy_mock_source *source = started("hook_fails");
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    expect_none(source, NOT_YET);
    CHECK(iggy_mock_logged("on_batch_result failed"));
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void without_a_hook_the_batch_is_sent_again(void) {
    iggy_mock_source *source = opened(&onward_api, "counts");
    CHECK_EQUAL(iggy_mock_start(source, 2), IGGY_OK);
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_NACK), IGGY_OK);
    expect(source, 2, 1);
    CHECK_EQUAL(iggy_mock_result(source, 2, IGGY_BATCH_NACK), IGGY_OK);
    expect(source, 3, 1);
    CHECK_EQUAL(iggy_mock_result(source, 3, IGGY_BATCH_ACK), IGGY_OK);
    expect(source, 4, 2);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void *acknowledge(void *batch_id) {
    CHECK_EQUAL(api.batch_result(9001, *(uint64_t *)batch_id, IGGY_BATCH_ACK), IGGY_OK);
    return NULL;
}

static unsigned sent;
static int32_t answer_inside_send(uint32_t id, uint64_t batch_id, const uint8_t *messages,
                                  size_t len) {
    pthread_t thread;
    CHECK(id == 9001 && messages && len > 0);
    if (batch_id > 3) return IGGY_OK;
    CHECK_EQUAL(pthread_create(&thread, NULL, acknowledge, &batch_id), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    sent++;
    return IGGY_OK;
}

static void result_may_come_before_send_has_returned(void) {
    CHECK_EQUAL(api.open(9001, (const uint8_t *)"waits", 0, NULL, 0, ignore_record), IGGY_OK);
    CHECK_EQUAL(api.handle_v2(9001, answer_inside_send), IGGY_OK);
    while (api.batch_result(9001, 4, IGGY_BATCH_NACK) != IGGY_OK)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
    CHECK_EQUAL(api.close(9001), IGGY_OK);
    CHECK_EQUAL(sent, 3);
}

/* ---- Polls ---------------------------------------------------------------- */

static void empty_poll_is_no_batch(void) {
    iggy_mock_source *source = started("idle");
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void state_alone_is_a_batch(void) {
    iggy_mock_source *source = started("state_only");
    const iggy_mock_produced *batch = iggy_mock_next(source, SOON);
    CHECK(batch && batch->count == 0 && batch->has_state && batch->state.len == 1);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void batch_beyond_the_limits_is_a_nack_without_an_id(void) {
    iggy_mock_source *source = started("faulty");
    expect(source, 1, 1);
    CHECK(iggy_mock_logged("a payload is empty"));
    CHECK(iggy_mock_logged("applied Nack"));
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void source_that_cannot_go_back_ends_at_such_a_batch(void) {
    iggy_mock_source *source = opened(&onward_api, "faulty");
    CHECK_EQUAL(iggy_mock_start(source, 2), IGGY_OK);
    await_record("cannot go back");
    const iggy_mock_produced *last = iggy_mock_next(source, SOON);
    CHECK(last && last->batch_id == 1 && last->count == 0 && !last->has_state);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_ACK), IGGY_INVALID); /* the host learns */
    expect_none(source, NOT_YET);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void source_that_ends_in_generation_1_sends_nothing_more(void) {
    iggy_mock_source *source = opened(&onward_api, "faulty");
    CHECK_EQUAL(iggy_mock_start(source, 1), IGGY_OK);
    await_record("cannot go back");
    expect_none(source, NOT_YET);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

/* ---- Close ---------------------------------------------------------------- */

static void close_breaks_off_a_waiting_poll(void) {
    iggy_mock_source *source = started("waits");
    expect_none(source, 50);
    double start = seconds();
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK); /* a batch after it would abort */
    CHECK(seconds() - start < SOON / 1000);
    CHECK(!iggy_mock_logged("applied"));
}

static void close_nacks_the_batch_in_flight(void) {
    iggy_mock_source *source = started("counts");
    expect(source, 1, 1);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
    CHECK(iggy_mock_logged("applied Nack"));
    CHECK(iggy_mock_logged("closed"));
}

/* ---- Generation 1 --------------------------------------------------------- */

static void generation_1_goes_on_without_results(void) {
    iggy_mock_source *source = opened(&api, "counts");
    CHECK_EQUAL(iggy_mock_start(source, 1), IGGY_OK);
    for (uint8_t record = 1; record <= 20; record++) expect(source, 0, record);
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

/* ---- Impatience ----------------------------------------------------------- */

static void result_that_does_not_come_is_a_nack(void) {
    iggy_mock_source *source = started("counts");
    expect(source, 1, 1);
    expect(source, 2, 1);
    CHECK(iggy_mock_logged("batch 1 got no result in time"));
    CHECK_EQUAL(iggy_mock_result(source, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

static void failed_poll_is_no_batch_and_no_nack(void) {
    iggy_mock_source *source = started("poll_fails");
    expect(source, 1, 1); /* five failures would have been too many Nacks */
    CHECK(iggy_mock_logged("a poll failed, the next one is in 100 ms"));
    CHECK(iggy_mock_logged("the next one is in 200 ms"));
    CHECK(iggy_mock_logged("the next one is in 300 ms"));
    CHECK(!iggy_mock_logged("the next one is in 400 ms"));
    CHECK(!iggy_mock_logged("applied"));
    CHECK_EQUAL(iggy_mock_close_source(source), IGGY_OK);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        CHECK_TEXT(argv[1], "impatient");
        RUN(result_that_does_not_come_is_a_nack);
        RUN(failed_poll_is_no_batch_and_no_nack);
        iggy_mock_forget_log();
        return 0;
    }
    RUN(version_is_the_tables);
    RUN(unknown_id_is_refused);
    RUN(duplicate_id_leaves_the_first_alone);
    RUN(failed_open_occupies_its_id_until_close);
    RUN(state_comes_back_at_open);
    RUN(starts_once);
    RUN(never_started_instance_can_be_closed);
    RUN(one_batch_is_in_flight);
    RUN(nacked_records_come_again);
    RUN(result_must_name_the_pending_batch);
    RUN(unknown_result_is_a_nack_and_an_error);
    RUN(refused_batch_is_a_nack);
    RUN(fifth_nack_in_a_row_ends_the_source);
    RUN(ack_begins_the_count_of_nacks_anew);
    RUN(failing_hook_ends_the_source);
    RUN(without_a_hook_the_batch_is_sent_again);
    RUN(result_may_come_before_send_has_returned);
    RUN(empty_poll_is_no_batch);
    RUN(state_alone_is_a_batch);
    RUN(batch_beyond_the_limits_is_a_nack_without_an_id);
    RUN(source_that_cannot_go_back_ends_at_such_a_batch);
    RUN(source_that_ends_in_generation_1_sends_nothing_more);
    RUN(close_breaks_off_a_waiting_poll);
    RUN(close_nacks_the_batch_in_flight);
    RUN(generation_1_goes_on_without_results);
    iggy_mock_forget_log();
    return 0;
}
