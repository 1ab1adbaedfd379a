/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Memory runs out at each allocation in turn: the SDK says so, loses nothing and goes
 * on when there is memory again. The linker leads the SDK's calls here (--wrap).
 */
#include <errno.h>
#include <pthread.h>

#include "check.h"
#include "iggy_connector_sdk.h"

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *memory, size_t size);

/* ---- Memory --------------------------------------------------------------- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned allocations;
    unsigned fails; /* this one does, and those after it while `for_good`; 0: none */
    bool for_good;
    bool failed;
} memory = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void fail_at(unsigned allocation, bool for_good) {
    pthread_mutex_lock(&memory.mutex);
    memory.allocations = 0;
    memory.fails = allocation;
    memory.for_good = for_good;
    memory.failed = false;
    pthread_mutex_unlock(&memory.mutex);
}

static bool failed(void) {
    pthread_mutex_lock(&memory.mutex);
    bool yes = memory.failed;
    pthread_mutex_unlock(&memory.mutex);
    return yes;
}

static bool allocation_fails(void) {
    pthread_mutex_lock(&memory.mutex);
    unsigned number = ++memory.allocations;
    bool fails =
        memory.fails > 0 && (number == memory.fails || (memory.for_good && number > memory.fails));
    memory.failed = memory.failed || fails;
    pthread_mutex_unlock(&memory.mutex);
    return fails;
}

void *__wrap_calloc(size_t count, size_t size) {
    return allocation_fails() ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *old, size_t size) {
    return allocation_fails() ? NULL : __real_realloc(old, size);
}

static bool no_threads; /* only the test's own thread looks */

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument) {
    return no_threads ? EAGAIN : __real_pthread_create(thread, attributes, run, argument);
}

/* ---- A source ------------------------------------------------------------- */

static char payload[3000];

static int32_t open_source(const iggy_open_args *args, void **instance) {
    (void)args;
    *instance = payload;
    return IGGY_OK;
}

static int32_t poll_source(void *instance, iggy_producer *producer) {
    iggy_header headers[] = {{iggy_header_string("b"), iggy_header_int8(1)},
                             {iggy_header_string("a"), iggy_header_int8(2)}};
    iggy_produced_message message = {
        .payload = instance, .payload_len = sizeof payload, .headers = headers, .header_count = 2};
    for (int i = 0; i < 3; i++) iggy_produce_message(producer, &message);
    iggy_produce_state(producer, instance, 1000);
    return IGGY_OK;
}

static int32_t on_result(void *instance, enum iggy_batch_result result) {
    (void)instance, (void)result;
    return IGGY_OK;
}

static void close_instance(void *instance) { (void)instance; }

static const iggy_source_plugin source = {"alloc",     "1",       open_source,
                                          poll_source, on_result, close_instance};
IGGY_SOURCE_PLUGIN(source)

static int32_t consume(void *instance, iggy_batch *batch) {
    (void)instance, (void)batch;
    return IGGY_OK;
}

static const iggy_sink_plugin sink = {"alloc", "1", open_source, consume, close_instance};
IGGY_SINK_PLUGIN(sink)

/* ---- A host --------------------------------------------------------------- */

static unsigned received;
static size_t received_len;
static bool said_out_of_memory;

static void note_record(uint8_t level, const uint8_t *target, size_t target_len,
                        const uint8_t *message, size_t len) {
    (void)level, (void)target, (void)target_len;
    char text[256] = {0};
    memcpy(text, message, len < 255 ? len : 255);
    pthread_mutex_lock(&memory.mutex);
    said_out_of_memory = said_out_of_memory || strstr(text, "out of memory") != NULL;
    pthread_mutex_unlock(&memory.mutex);
}

static int32_t receive(uint32_t id, uint64_t batch_id, const uint8_t *messages, size_t len) {
    (void)id, (void)messages;
    pthread_mutex_lock(&memory.mutex);
    CHECK_EQUAL(batch_id, 1); /* a batch that failed had none */
    CHECK(received_len == 0 || received_len == len);
    received_len = len;
    received++;
    pthread_cond_signal(&memory.changed);
    pthread_mutex_unlock(&memory.mutex);
    return IGGY_OK;
}

static const uint8_t null_config[] = {'n', 'u', 'l', 'l'};

static int32_t open_it(uint32_t id) {
    return iggy_source_open(id, null_config, 4, NULL, 0, note_record);
}

static void await_batch(void) {
    pthread_mutex_lock(&memory.mutex);
    while (received == 0) pthread_cond_wait(&memory.changed, &memory.mutex);
    received = 0;
    pthread_mutex_unlock(&memory.mutex);
}

/* ---- Promises ------------------------------------------------------------- */

static void open_without_memory_fails_and_leaks_nothing(void) {
    unsigned allocation = 1;
    for (;; allocation++) {
        fail_at(allocation, true);
        int32_t code = open_it(allocation);
        bool ran_out = failed();
        fail_at(0, false);
        CHECK_EQUAL(code, ran_out ? IGGY_FAILED : IGGY_OK);
        (void)iggy_source_close(allocation);
        CHECK_EQUAL(iggy_source_close(allocation), IGGY_INVALID);
        if (!ran_out) break;
    }
    CHECK(allocation > 2); /* an instance and a source at least */
    fail_at(1, true);
    CHECK_EQUAL(iggy_sink_open(1, null_config, 4, note_record), IGGY_FAILED);
    fail_at(0, false);
    CHECK_EQUAL(iggy_sink_open(1, null_config, 4, note_record), IGGY_OK);
    CHECK_EQUAL(iggy_sink_close(1), IGGY_OK);
}

/* Given an allocation that fails while a batch is filled, then the batch is Nacked and the
 * next poll delivers it whole. */
static void batch_comes_whole_once_there_is_memory_again(void) {
    bool ran_out = true;
    unsigned allocation = 1;
    for (; ran_out; allocation++) {
        uint32_t id = 1000 + allocation;
        CHECK_EQUAL(open_it(id), IGGY_OK);
        said_out_of_memory = false;
        fail_at(allocation, false);
        CHECK_EQUAL(iggy_source_handle_v2(id, receive), IGGY_OK);
        await_batch();
        ran_out = failed() && said_out_of_memory;
        CHECK_EQUAL(failed(), said_out_of_memory);
        fail_at(0, false);
        CHECK_EQUAL(iggy_source_batch_result(id, 1, IGGY_BATCH_NACK), IGGY_OK);
        CHECK_EQUAL(iggy_source_close(id), IGGY_OK);
    }
    CHECK(allocation > 5);
    CHECK(received_len > 10000);
}

static void source_without_a_thread_can_be_started_later(void) {
    CHECK_EQUAL(open_it(5000), IGGY_OK);
    no_threads = true;
    CHECK_EQUAL(iggy_source_handle_v2(5000, receive), IGGY_FAILED);
    no_threads = false;
    CHECK_EQUAL(iggy_source_handle_v2(5000, receive), IGGY_OK);
    await_batch();
    CHECK_EQUAL(iggy_source_close(5000), IGGY_OK);
}

int main(void) {
    RUN(open_without_memory_fails_and_leaks_nothing);
    RUN(batch_comes_whole_once_there_is_memory_again);
    RUN(source_without_a_thread_can_be_started_later);
    return 0;
}
