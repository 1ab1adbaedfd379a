/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * What connector.h asks of any source, of both generations.
 *
 * Usage: source_contract_test <library> <generation 1 library> <config> [brief]
 * With that config the source has at least 20 batches, each with a state. The pauses
 * between Nacks are long; a brief run leaves them out.
 */
#include <pthread.h>
#include <time.h>

#include "check.h"
#include "host.h"
#include "syscalls.h"

static iggy_source_api api;
static iggy_source_api generation1;
static const char *config;
static uint32_t last_id;

static double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Opens a fresh instance and starts it as generation 2. */
static uint32_t started(void) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id, config), IGGY_OK);
    CHECK_EQUAL(api.handle_v2(id, host_send_v2), IGGY_OK);
    return id;
}

static struct host_batch *next(uint64_t batch_id) {
    struct host_batch *batch = host_next_batch();
    CHECK(batch);
    CHECK_EQUAL(batch->id, last_id);
    CHECK_EQUAL(batch->batch_id, batch_id);
    CHECK(batch->count > 0);
    CHECK(batch->has_state);
    return batch;
}

static void expect(uint64_t batch_id) { host_free_batch(next(batch_id)); }

static bool same_state(const struct host_batch *a, const struct host_batch *b) {
    return a->state_len == b->state_len && memcmp(a->state, b->state, a->state_len) == 0;
}

static void close_ok(uint32_t id) {
    CHECK_EQUAL(api.close(id), IGGY_OK);
    CHECK(!host_next_batch_within(50));
}

/* ---- Instances -------------------------------------------------------------- */

static void version_is_there_before_open(void) { CHECK(strlen(api.version()) > 0); }

static void unknown_id_is_refused(void) {
    CHECK_EQUAL(api.handle(4711, host_send), IGGY_INVALID);
    CHECK_EQUAL(api.handle_v2(4711, host_send_v2), IGGY_INVALID);
    CHECK_EQUAL(api.batch_result(4711, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(api.close(4711), IGGY_INVALID);
}

static void duplicate_id_leaves_the_first_alone(void) {
    uint32_t id = started();
    CHECK_EQUAL(host_open_source(&api, id, config), IGGY_INVALID);
    expect(1);
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_OK);
    expect(2);
    close_ok(id);
}

static void broken_config_occupies_its_id_until_close(void) {
    static const char *const broken[] = {"", "{", "[1]", "7",
                                         "{\"path\":1,\"total\":\"x\",\"interval\":3}"};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        uint32_t id = ++last_id;
        CHECK_EQUAL(host_open_source(&api, id, broken[i]), IGGY_INVALID);
        CHECK(host_logged("plugin_config"));
        CHECK_EQUAL(host_open_source(&api, id, config), IGGY_INVALID);
        CHECK_EQUAL(api.handle_v2(id, host_send_v2), IGGY_INVALID);
        CHECK_EQUAL(api.close(id), IGGY_INVALID);
        CHECK_EQUAL(host_open_source(&api, id, config), IGGY_OK);
        CHECK_EQUAL(api.close(id), IGGY_OK);
    }
}

static void unreadable_state_leaves_it_half_open(void) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(
        api.open(id, (const uint8_t *)config, strlen(config), (const uint8_t *)"\xc1", 1, host_log),
        IGGY_FAILED);
    CHECK(host_logged("saved state"));
    CHECK_EQUAL(api.handle_v2(id, host_send_v2), IGGY_INVALID);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    CHECK_EQUAL(api.close(id), IGGY_INVALID);
}

static void empty_state_is_a_fresh_start(void) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(
        api.open(id, (const uint8_t *)config, strlen(config), (const uint8_t *)"", 0, host_log),
        IGGY_OK);
    CHECK(host_logged("empty"));
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

static void handle_is_taken_once(void) {
    uint32_t id = started();
    CHECK_EQUAL(api.handle_v2(id, host_send_v2), IGGY_INVALID);
    CHECK_EQUAL(api.handle(id, host_send), IGGY_INVALID);
    expect(1);
    close_ok(id);
}

static void never_started_instance_can_be_closed(void) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id, config), IGGY_OK);
    close_ok(id);
}

/* ---- Results ---------------------------------------------------------------- */

static void one_batch_is_in_flight(void) {
    uint32_t id = started();
    expect(1);
    CHECK(!host_next_batch_within(300));
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_OK);
    expect(2);
    close_ok(id);
}

static void result_must_name_the_pending_batch(void) {
    uint32_t id = started();
    expect(1);
    CHECK_EQUAL(api.batch_result(id, 2, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(api.batch_result(id, 0, IGGY_BATCH_NACK), IGGY_INVALID);
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_OK);
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    expect(2);
    close_ok(id);
}

static void nacked_batch_is_produced_again(void) {
    uint32_t id = started();
    struct host_batch *first = next(1);
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_NACK), IGGY_OK);
    struct host_batch *again = next(2);
    CHECK(same_state(first, again));
    CHECK_EQUAL(api.batch_result(id, 2, IGGY_BATCH_ACK), IGGY_OK);
    struct host_batch *second = next(3);
    CHECK(!same_state(again, second));
    host_free_batch(first);
    host_free_batch(again);
    host_free_batch(second);
    close_ok(id);
}

static void unknown_result_is_a_nack_and_an_error(void) {
    uint32_t id = started();
    struct host_batch *first = next(1);
    CHECK_EQUAL(api.batch_result(id, 1, 9), IGGY_INVALID);
    struct host_batch *again = next(2);
    CHECK(same_state(first, again));
    host_free_batch(first);
    host_free_batch(again);
    close_ok(id);
}

static void fifth_nack_in_a_row_ends_the_source(void) {
    uint32_t id = started();
    double start = seconds();
    for (uint64_t batch_id = 1; batch_id <= 5; batch_id++) {
        expect(batch_id);
        CHECK_EQUAL(api.batch_result(id, batch_id, IGGY_BATCH_NACK),
                    batch_id < 5 ? IGGY_OK : IGGY_INVALID);
    }
    CHECK(seconds() - start >= 1.5); /* 100 + 200 + 400 + 800 ms of pauses */
    CHECK(!host_next_batch_within(2000));
    CHECK(host_logged("in a row were Nacked"));
    CHECK_EQUAL(api.batch_result(id, 5, IGGY_BATCH_ACK), IGGY_INVALID);
    close_ok(id);
}

static void ack_begins_the_count_of_nacks_anew(void) {
    uint32_t id = started();
    for (uint64_t batch_id = 1; batch_id <= 7; batch_id++) {
        expect(batch_id);
        bool ack = batch_id == 4;
        CHECK_EQUAL(api.batch_result(id, batch_id, ack ? IGGY_BATCH_ACK : IGGY_BATCH_NACK),
                    IGGY_OK);
    }
    expect(8);
    close_ok(id);
}

static int32_t refuse_first(uint32_t id, uint64_t batch_id) {
    (void)id;
    return batch_id == 1 ? -1 : IGGY_OK;
}

static void refused_batch_is_produced_again(void) {
    host_on_send = refuse_first;
    uint32_t id = started();
    struct host_batch *first = next(1);
    struct host_batch *again = next(2);
    CHECK(same_state(first, again));
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(api.batch_result(id, 2, IGGY_BATCH_ACK), IGGY_OK);
    expect(3);
    host_free_batch(first);
    host_free_batch(again);
    close_ok(id);
    host_on_send = NULL;
}

static void *acknowledge_first(void *id) {
    CHECK_EQUAL(api.batch_result(*(uint32_t *)id, 1, IGGY_BATCH_ACK), IGGY_OK);
    return NULL;
}

static int32_t answer_at_once(uint32_t id, uint64_t batch_id) {
    pthread_t thread;
    if (batch_id != 1) return IGGY_OK;
    CHECK_EQUAL(pthread_create(&thread, NULL, acknowledge_first, &id), 0);
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    return IGGY_OK;
}

static void result_may_come_before_send_returns(void) {
    host_on_send = answer_at_once;
    uint32_t id = started();
    struct host_batch *first = next(1);
    struct host_batch *second = next(2);
    CHECK(!same_state(first, second));
    host_free_batch(first);
    host_free_batch(second);
    close_ok(id);
    host_on_send = NULL;
}

/* ---- Closing and starting again ---------------------------------------------- */

static void close_does_not_wait_for_a_result(void) {
    uint32_t id = started();
    expect(1);
    double start = seconds();
    close_ok(id);
    CHECK(seconds() - start < 10); /* not the 30 seconds */
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_INVALID);
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool inside, closing;

static void set(bool *flag, bool value) {
    pthread_mutex_lock(&mutex);
    *flag = value;
    pthread_mutex_unlock(&mutex);
}

static bool is(const bool *flag) {
    pthread_mutex_lock(&mutex);
    bool value = *flag;
    pthread_mutex_unlock(&mutex);
    return value;
}

static int32_t stay_beyond_the_close(uint32_t id, uint64_t batch_id) {
    (void)id, (void)batch_id;
    set(&inside, true);
    while (!is(&closing)) sleep_us(1000);
    sleep_us(200000);
    set(&inside, false);
    return IGGY_OK;
}

static void close_waits_for_a_running_send(void) {
    host_on_send = stay_beyond_the_close;
    uint32_t id = started();
    while (!is(&inside)) sleep_us(1000);
    set(&closing, true);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    CHECK(!is(&inside));
    expect(1);
    CHECK(!host_next_batch_within(50));
    host_on_send = NULL;
}

static void restart_goes_on_after_the_acknowledged_state(void) {
    uint32_t id = started();
    expect(1);
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_OK);
    struct host_batch *second = next(2);
    CHECK_EQUAL(api.batch_result(id, 2, IGGY_BATCH_ACK), IGGY_OK);
    struct host_batch *third = next(3); /* without a result */
    close_ok(id);

    uint32_t restarted = ++last_id;
    CHECK_EQUAL(api.open(restarted, (const uint8_t *)config, strlen(config), second->state,
                         second->state_len, host_log),
                IGGY_OK);
    CHECK_EQUAL(api.handle_v2(restarted, host_send_v2), IGGY_OK);
    struct host_batch *first = next(1);
    CHECK(same_state(first, third));
    host_free_batch(first);
    host_free_batch(second);
    host_free_batch(third);
    close_ok(restarted);
}

static void instances_run_side_by_side(void) {
    uint32_t a = started(), b = started();
    struct host_batch *one = host_next_batch(), *two = host_next_batch();
    CHECK(one && two && one->id != two->id);
    CHECK_EQUAL(one->batch_id, 1);
    CHECK_EQUAL(two->batch_id, 1);
    host_free_batch(one);
    host_free_batch(two);
    CHECK_EQUAL(api.close(a), IGGY_OK);
    CHECK_EQUAL(api.batch_result(b, 1, IGGY_BATCH_ACK), IGGY_OK);
    expect(2);
    close_ok(b);
}

/* ---- Generation 1 ------------------------------------------------------------ */

static void generation_1_goes_on_without_results(const iggy_source_api *library) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(library, id, config), IGGY_OK);
    CHECK_EQUAL(library->handle(id, host_send), IGGY_OK);
    struct host_batch *first = next(0), *second = next(0);
    CHECK(!same_state(first, second));
    CHECK_EQUAL(library->close(id), IGGY_OK);
    for (struct host_batch *more; (more = host_next_batch_within(0));) host_free_batch(more);
    CHECK(!host_next_batch_within(100));

    uint32_t restarted = ++last_id;
    CHECK_EQUAL(library->open(restarted, (const uint8_t *)config, strlen(config), first->state,
                              first->state_len, host_log),
                IGGY_OK);
    CHECK_EQUAL(library->handle(restarted, host_send), IGGY_OK);
    struct host_batch *again = next(0);
    CHECK(same_state(again, second));
    CHECK_EQUAL(library->close(restarted), IGGY_OK);
    for (struct host_batch *more; (more = host_next_batch_within(0));) host_free_batch(more);
    host_free_batch(first);
    host_free_batch(second);
    host_free_batch(again);
}

static void generation_1_works_in_the_full_library(void) {
    generation_1_goes_on_without_results(&api);
}

static void generation_1_library_has_no_other(void) {
    CHECK(!generation1.handle_v2 && !generation1.batch_result);
    generation_1_goes_on_without_results(&generation1);
}

static void results_mean_nothing_to_generation_1(void) {
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id, config), IGGY_OK);
    CHECK_EQUAL(api.handle(id, host_send), IGGY_OK);
    expect(0);
    CHECK_EQUAL(api.batch_result(id, 1, IGGY_BATCH_ACK), IGGY_INVALID);
    CHECK_EQUAL(api.close(id), IGGY_OK);
    for (struct host_batch *more; (more = host_next_batch_within(0));) host_free_batch(more);
}

int main(int argc, char **argv) {
    CHECK(argc == 4 || argc == 5);
    api = host_load_source(argv[1]);
    generation1 = host_load_source(argv[2]);
    config = argv[3];
    RUN(version_is_there_before_open);
    RUN(unknown_id_is_refused);
    RUN(duplicate_id_leaves_the_first_alone);
    RUN(broken_config_occupies_its_id_until_close);
    RUN(unreadable_state_leaves_it_half_open);
    RUN(empty_state_is_a_fresh_start);
    RUN(handle_is_taken_once);
    RUN(never_started_instance_can_be_closed);
    RUN(one_batch_is_in_flight);
    RUN(result_must_name_the_pending_batch);
    RUN(nacked_batch_is_produced_again);
    RUN(unknown_result_is_a_nack_and_an_error);
    if (argc == 4) {
        RUN(fifth_nack_in_a_row_ends_the_source);
        RUN(ack_begins_the_count_of_nacks_anew);
    }
    RUN(refused_batch_is_produced_again);
    RUN(result_may_come_before_send_returns);
    RUN(close_does_not_wait_for_a_result);
    RUN(close_waits_for_a_running_send);
    RUN(restart_goes_on_after_the_acknowledged_state);
    RUN(instances_run_side_by_side);
    RUN(generation_1_works_in_the_full_library);
    RUN(generation_1_library_has_no_other);
    RUN(results_mean_nothing_to_generation_1);
    return 0;
}
