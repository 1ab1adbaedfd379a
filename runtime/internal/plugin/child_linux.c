// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* The process of an isolated plugin. A constructor turns the process into one before the Go
 * runtime starts, so that there is none: a plugin may bring its own, and a limit on memory
 * meets the plugin alone. child.go starts it; child.h says how they talk.
 *
 * Threads take turns in listening: the one that gets a call makes it, and when nobody else
 * listens it appoints another first. So any number of calls run side by side, and the end
 * of the channel, which ends the process, is always seen at once. */
#define _GNU_SOURCE
#include "child.h"
#include "timerslack.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "connector.h"
#include "crash.h"
#include "signals.h"

static iggy_sink_api sink;
static iggy_source_api source;

static _Thread_local uint32_t current_instance; /* of the call on this thread; 0: none */

/* ---- Channel ------------------------------------------------------------- */

static void emit(struct frame *frame, const void *text, size_t text_length, const void *more,
                 size_t more_length) {
    struct iovec parts[] = {
        {frame, sizeof *frame}, {(void *)text, text_length}, {(void *)more, more_length}};
    struct msghdr packet = {.msg_iov = parts, .msg_iovlen = 3};
    while (sendmsg(CHANNEL_FD, &packet, MSG_NOSIGNAL) < 0)
        if (errno != EINTR) _exit(0); /* the host is gone */
}

static size_t at_most(size_t length, size_t limit) { return length < limit ? length : limit; }

/* The same for a text, whose last character stays whole. Of one that cannot be nothing is left,
 * as in the host. */
static size_t characters_at_most(const uint8_t *text, size_t length, size_t limit) {
    if (text == NULL || length > MAX_BATCH_BYTES) return 0;
    size_t end = at_most(length, limit);
    for (int i = 0; i < 3 && end < length && (text[end] & 0xc0) == 0x80; i++) end--;
    return end;
}

static void log_callback(uint8_t level, const uint8_t *target, size_t target_length,
                         const uint8_t *message, size_t message_length) {
    enum {
        TARGET_BYTES = 1 << 10,
        MESSAGE_BYTES = PACKET_BYTES - TARGET_BYTES - sizeof(struct frame)
    };
    target_length = characters_at_most(target, target_length, TARGET_BYTES);
    message_length = characters_at_most(message, message_length, MESSAGE_BYTES);
    struct frame frame = {.kind = FRAME_LOG,
                          .instance = current_instance,
                          .value = level,
                          .length = {(uint32_t)target_length, (uint32_t)message_length}};
    emit(&frame, target, target_length, message, message_length);
}

static _Noreturn void die(const char *why) {
    log_callback(IGGY_LOG_ERROR, (const uint8_t *)"isolation", 9, (const uint8_t *)why,
                 strlen(why));
    abort();
}

/* ---- Shared memory ------------------------------------------------------- */

/* The part of a slot that is mapped. */
struct window {
    uint8_t *bytes;
    size_t size;
};

static uint8_t *window_of(struct window *window, int file, uint32_t slot, size_t length) {
    enum { SMALLEST = 64 << 10 };
    if (length <= window->size && window->bytes != NULL) return window->bytes;
    if (window->bytes != NULL) munmap(window->bytes, window->size);
    for (window->size = SMALLEST; window->size < length;) window->size *= 2;
    int protection = file == CALLS_FD ? PROT_READ : PROT_READ | PROT_WRITE;
    window->bytes =
        mmap(NULL, window->size, protection, MAP_SHARED, file, (off_t)(slot * SLOT_BYTES));
    if (window->bytes == MAP_FAILED) die("shared memory cannot be mapped");
    return window->bytes;
}

/* ---- Batches ------------------------------------------------------------- */

/* A slot of the batches file, and the thread of the plugin that waits there for the answer. */
static struct batch_slot {
    struct window window;
    pthread_cond_t answer;
    bool taken, answered;
    int32_t code;
} batch_slots[SLOTS];

static pthread_mutex_t batches_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t batch_slot_free = PTHREAD_COND_INITIALIZER;

static uint32_t take_batch_slot(void) {
    pthread_mutex_lock(&batches_lock);
    for (;;) {
        for (uint32_t slot = 0; slot < SLOTS; slot++) {
            if (batch_slots[slot].taken) continue;
            batch_slots[slot].taken = true;
            pthread_mutex_unlock(&batches_lock);
            return slot;
        }
        pthread_cond_wait(&batch_slot_free, &batches_lock);
    }
}

static int32_t await_answer(struct batch_slot *slot) {
    pthread_mutex_lock(&batches_lock);
    while (!slot->answered) pthread_cond_wait(&slot->answer, &batches_lock);
    slot->answered = false;
    int32_t code = slot->code;
    pthread_mutex_unlock(&batches_lock);
    return code;
}

static void leave_batch_slot(uint32_t slot, size_t used) {
    if (used > SLOT_KEEP_BYTES) /* else it would stay in memory */
        fallocate(BATCHES_FD, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                  (off_t)(slot * SLOT_BYTES + SLOT_KEEP_BYTES), (off_t)(used - SLOT_KEEP_BYTES));
    pthread_mutex_lock(&batches_lock);
    batch_slots[slot].taken = false;
    pthread_cond_signal(&batch_slot_free);
    pthread_mutex_unlock(&batches_lock);
}

static void answer(const struct frame *frame) {
    struct batch_slot *slot = &batch_slots[frame->slot];
    pthread_mutex_lock(&batches_lock);
    slot->code = (int32_t)frame->value;
    slot->answered = true;
    pthread_cond_signal(&slot->answer);
    pthread_mutex_unlock(&batches_lock);
}

static int32_t hand_over(uint32_t generation, uint32_t instance, uint64_t batch,
                         const uint8_t *messages, size_t length) {
    uint32_t slot = take_batch_slot();
    uint32_t low = (uint32_t)length, high = (uint32_t)((uint64_t)length >> 32);
    bool possible = length <= MAX_BATCH_BYTES && (messages != NULL || length == 0);
    if (!possible) length = 0;
    uint8_t *window = window_of(&batch_slots[slot].window, BATCHES_FD, slot, length);
    if (length > 0) memcpy(window, messages, length);
    struct frame frame = {.kind = FRAME_BATCH,
                          .slot = slot,
                          .instance = instance,
                          .value = generation,
                          .batch = batch,
                          .length = {possible ? low : IMPOSSIBLE_LENGTH, low, high}};
    emit(&frame, NULL, 0, NULL, 0);
    int32_t code = await_answer(&batch_slots[slot]);
    leave_batch_slot(slot, length);
    return code;
}

static void send_v1(uint32_t instance, const uint8_t *messages, size_t length) {
    hand_over(1, instance, 0, messages, length);
}

static int32_t send_v2(uint32_t instance, uint64_t batch, const uint8_t *messages, size_t length) {
    return hand_over(2, instance, batch, messages, length);
}

/* ---- Calls --------------------------------------------------------------- */

static struct window call_windows[SLOTS];

static const struct {
    const char *name;
    void *function; /* where its address goes */
} symbols[] = {
    {"iggy_sink_open", &sink.open},
    {"iggy_sink_consume", &sink.consume},
    {"iggy_sink_close", &sink.close},
    {"iggy_sink_version", &sink.version},
    {"iggy_source_open", &source.open},
    {"iggy_source_handle", &source.handle},
    {"iggy_source_handle_v2", &source.handle_v2},
    {"iggy_source_batch_result", &source.batch_result},
    {"iggy_source_close", &source.close},
    {"iggy_source_version", &source.version},
};

static int32_t load(const char *path, uint32_t exported, const char **text) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        *text = dlerror();
        return IGGY_FAILED;
    }
    for (size_t i = 0; i < sizeof symbols / sizeof *symbols; i++)
        if (exported & (1u << i)) *(void **)symbols[i].function = dlsym(library, symbols[i].name);
    return IGGY_OK;
}

static const char *version(const char *(*function)(void)) {
    return function == NULL ? NULL : function();
}

/* Makes a call. A function that the library lacks is an invalid one. */
static int32_t call(struct frame *f, const uint8_t *first, const char **text) {
    const uint8_t *second = first + f->length[0], *third = second + f->length[1];
    const uint8_t *state = f->value == 1 ? NULL : second;
#define CALL(function, ...) (function == NULL ? IGGY_INVALID : function(__VA_ARGS__))
    switch (f->kind) {
    case FRAME_LOAD:
        return load((const char *)first, f->value, text);
    case FRAME_SINK_VERSION:
        *text = version(sink.version);
        return IGGY_OK;
    case FRAME_SOURCE_VERSION:
        *text = version(source.version);
        return IGGY_OK;
    case FRAME_SINK_OPEN:
        return CALL(sink.open, f->instance, first, f->length[0], log_callback);
    case FRAME_SINK_CONSUME:
        return CALL(sink.consume, f->instance, first, f->length[0], second, f->length[1], third,
                    f->length[2]);
    case FRAME_SINK_CLOSE:
        return CALL(sink.close, f->instance);
    case FRAME_SOURCE_OPEN:
        return CALL(source.open, f->instance, first, f->length[0], state, f->length[1],
                    log_callback);
    case FRAME_SOURCE_HANDLE:
        return CALL(source.handle, f->instance, send_v1);
    case FRAME_SOURCE_HANDLE_V2:
        return CALL(source.handle_v2, f->instance, send_v2);
    case FRAME_SOURCE_BATCH_RESULT:
        return CALL(source.batch_result, f->instance, f->batch, (uint8_t)f->value);
    case FRAME_SOURCE_CLOSE:
        return CALL(source.close, f->instance);
    case FRAME_SIGNALS:
        f->batch = host_unguarded_signal_handlers();
        return IGGY_OK;
    }
    return IGGY_INVALID;
#undef CALL
}

static void perform(struct frame *frame) {
    enum { TEXT_BYTES = 4 << 10 };
    size_t length = (size_t)frame->length[0] + frame->length[1] + frame->length[2];
    const uint8_t *arguments = window_of(&call_windows[frame->slot], CALLS_FD, frame->slot, length);
    const char *text = NULL;
    current_instance = frame->instance;
    crash_enter(frame->slot);
    int32_t code = call(frame, arguments, &text);
    crash_leave();
    current_instance = 0;
    size_t text_length = text == NULL ? 0 : strnlen(text, TEXT_BYTES);
    struct frame returned = {.kind = FRAME_RETURN,
                             .slot = frame->slot,
                             .instance = frame->instance,
                             .value = (uint32_t)code,
                             .batch = frame->batch,
                             .length = {(uint32_t)text_length}};
    emit(&returned, text, text_length, NULL, 0);
}

/* ---- Limits -------------------------------------------------------------- */

static void limit(const struct frame *frame) {
    struct rlimit now, wanted = {frame->batch, frame->batch + frame->length[0]};
    if (getrlimit((int)frame->value, &now) != 0) die("a limit is not known");
    if (wanted.rlim_max > now.rlim_max) wanted.rlim_max = now.rlim_max;
    if (wanted.rlim_cur > wanted.rlim_max) wanted.rlim_cur = wanted.rlim_max;
    if (setrlimit((int)frame->value, &wanted) != 0) die("a limit cannot be set");
}

/* Both act before there is a second thread: niceness is a thread's own. */
static bool limited(const struct frame *frame) {
    if (frame->kind == FRAME_LIMIT) limit(frame);
    else if (frame->kind != FRAME_NICE) return false;
    else if (errno = 0, nice((int)frame->value) == -1 && errno != 0) die("it cannot be made nice");
    return true;
}

/* ---- Threads ------------------------------------------------------------- */

static atomic_int listening = 1;

static void *serve(void *unused);

static void appoint_listener(void) {
    pthread_t thread;
    atomic_fetch_add(&listening, 1);
    if (pthread_create(&thread, NULL, serve, NULL) != 0) die("no thread can be started");
    pthread_detach(thread);
}

static void *serve(void *unused) {
    crash_guard_thread();
    for (;;) {
        struct frame frame;
        ssize_t length = recv(CHANNEL_FD, &frame, sizeof frame, 0);
        if (length < 0 && errno == EINTR) continue;
        if (length <= 0) _exit(0); /* the host wants no more, or is gone */
        if (limited(&frame)) continue;
        if (frame.kind == FRAME_ANSWER) {
            answer(&frame);
            continue;
        }
        if (atomic_fetch_sub(&listening, 1) == 1) appoint_listener();
        perform(&frame);
        atomic_fetch_add(&listening, 1);
    }
    return unused;
}

static void do_nothing(int signal_number) { (void)signal_number; }

/* What a terminal or a service manager sends to all processes is the host's business: it
 * ends this one in order. A handler, and not to ignore them, so that what the plugin starts
 * is as usual. */
static void leave_requests_to_the_host(void) {
    static const int requests[] = {SIGHUP, SIGINT, SIGTERM};
    struct sigaction action = {.sa_handler = do_nothing, .sa_flags = SA_RESTART | SA_ONSTACK};
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++)
        sigaction(requests[i], &action, NULL);
}

static void close_from(unsigned first) {
    if (syscall(SYS_close_range, first, ~0u, 0) == 0) return;
    for (long fd = first, end = sysconf(_SC_OPEN_MAX); fd < end; fd++) close((int)fd);
}

__attribute__((constructor)) static void become_child(void) {
    const char *marker = secure_getenv(CHILD_MARKER);
    if (marker == NULL) return;
    close_from((unsigned)atoi(marker));
    unsetenv(CHILD_MARKER); /* not for processes that the plugin starts */
    for (int fd = CHANNEL_FD; fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;) fd++;
    prctl(PR_SET_NAME, "iggy-plugin");
    host_timer_slack_of_plugins(); /* the host left it its own */
    signal(SIGPIPE, SIG_IGN);
    leave_requests_to_the_host();
    for (int i = 0; i < SLOTS; i++) pthread_cond_init(&batch_slots[i].answer, NULL);
    crash_watch(BATCHES_FD);
    serve(NULL);
}
