/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * scripted: a plugin of both kinds that does as it is told, for the tests of
 * runtime/internal/plugin. A sink runs the words of its configuration in `open` and
 * those of the messages in `consume`; a source runs its configuration in `open` up to
 * the word `then`, and the rest on a thread that `handle` starts. What happened is told
 * by return codes and log records, which is all that a host sees.
 *
 * -DNO_SINK, -DNO_SOURCE, -DNO_GEN1, -DNO_GEN2, -DNO_BATCH_RESULT, -DNO_CLOSE and
 * -DNO_VERSION leave symbols out.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "connector.h"

/* ---- Instances ---------------------------------------------------------- */

struct instance {
    struct instance *next;
    uint32_t id;
    char *script; /* of a source, what is left for its thread */
    iggy_send_fn *send;
    iggy_send_v2_fn *send_v2;
    pthread_t thread;
    bool started, send_at_close;
    atomic_bool stop;
    bool hang_in_handle, hang_in_batch_result, hang_in_close;
    uint64_t batch; /* last one that was sent */
    int result;     /* of that batch, -1 while there is none */
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct instance *instances;
static atomic_uint last_closed;
static iggy_log_fn *log_record;

static void say(const char *format, ...) {
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    log_record(IGGY_LOG_INFO, (const uint8_t *)"scripted", 8, (const uint8_t *)text,
               (size_t)length);
}

static struct instance *add(uint32_t id) {
    struct instance *instance = calloc(1, sizeof *instance);
    instance->id = id;
    pthread_mutex_lock(&mu);
    instance->next = instances;
    instances = instance;
    pthread_mutex_unlock(&mu);
    return instance;
}

static struct instance *find(uint32_t id) {
    pthread_mutex_lock(&mu);
    struct instance *found = instances;
    while (found != NULL && found->id != id) found = found->next;
    pthread_mutex_unlock(&mu);
    return found;
}

static struct instance *take(uint32_t id) {
    pthread_mutex_lock(&mu);
    struct instance **at = &instances;
    while (*at != NULL && (*at)->id != id) at = &(*at)->next;
    struct instance *taken = *at;
    if (taken != NULL) *at = taken->next;
    pthread_mutex_unlock(&mu);
    return taken;
}

/* ---- What a script can do ------------------------------------------------ */

/* The next word of a script, or NULL; words are separated by one space. */
static char *word(char **script) { return *script == NULL ? NULL : strsep(script, " "); }
static long number(char **script) { return atol(word(script)); }

static void log_words(char **script) {
    uint8_t level = (uint8_t)number(script);
    char *target = word(script), *message = word(script);
    log_record(level, (const uint8_t *)target, strlen(target), (const uint8_t *)message,
               strlen(message));
}

static void log_invalid(void) {
    static const uint8_t broken[] = {'a', 0xff, 'b'};
    log_record(IGGY_LOG_WARN, broken, sizeof broken, broken, sizeof broken);
}

static void *log_often(void *count) {
    for (long i = 0; i < (long)count; i++) say("from a thread");
    return NULL;
}

static void on_threads(long threads, void *(*run)(void *), void *argument) {
    pthread_t thread[64];
    for (long i = 0; i < threads; i++) pthread_create(&thread[i], NULL, run, argument);
    for (long i = 0; i < threads; i++) pthread_join(thread[i], NULL);
}

static void *write_broken_socket(void *unused) {
    (void)unused;
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) return NULL;
    close(pair[1]);
    say("write %s", write(pair[0], "x", 1) < 0 && errno == EPIPE ? "EPIPE" : "unexpected");
    close(pair[0]);
    return NULL;
}

static void *say_timer_slack(void *unused) {
    (void)unused;
    say("slack %d", prctl(PR_GET_TIMERSLACK));
    return NULL;
}

static volatile sig_atomic_t handled;
static struct sigaction replaced[65];

/* Does as signal registries do: notes the signal and passes it on to the handler that was
 * there before, which is the host's. */
static void handle_signal(int signal_number, siginfo_t *info, void *context) {
    volatile char stack[16384]; /* more than a goroutine has */
    memset((void *)stack, 0, sizeof stack);
    handled = signal_number;
    if (replaced[signal_number].sa_flags & SA_SIGINFO)
        replaced[signal_number].sa_sigaction(signal_number, info, context);
}

static void install_handler(int signal_number) {
    struct sigaction action = {0};
    action.sa_sigaction = handle_signal;
    action.sa_flags = SA_SIGINFO | SA_RESTART; /* and not SA_ONSTACK */
    sigaction(signal_number, &action, &replaced[signal_number]);
}

static void block_all_signals(void) {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, NULL);
}

static long blocked_signals(void) {
    sigset_t mask;
    long count = 0;
    pthread_sigmask(SIG_SETMASK, NULL, &mask);
    for (int i = 1; i < 32; i++) count += sigismember(&mask, i) == 1;
    return count;
}

/* Sleeps once, as code does that does not expect EINTR. */
static bool sleep_undisturbed(long milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    return nanosleep(&time, NULL) == 0;
}

static int fork_and_exec(void) {
    pid_t child = fork();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", "exit 7", (char *)NULL);
        _exit(1);
    }
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* ---- Sending ------------------------------------------------------------- */

static int32_t send_batch(struct instance *instance, uint32_t id, const void *bytes,
                          size_t length) {
    pthread_mutex_lock(&mu);
    uint64_t batch = ++instance->batch;
    instance->result = -1;
    pthread_mutex_unlock(&mu);
    if (instance->send_v2 != NULL) return instance->send_v2(id, batch, bytes, length);
    instance->send(id, bytes, length);
    return 0;
}

static int await_result(struct instance *instance) {
    pthread_mutex_lock(&mu);
    while (instance->result < 0 && !instance->stop) pthread_cond_wait(&changed, &mu);
    int result = instance->result;
    pthread_mutex_unlock(&mu);
    return result;
}

static void send_many(struct instance *instance, long count) {
    char text[32];
    for (long i = 1; i <= count && !instance->stop; i++) {
        int length = snprintf(text, sizeof text, "batch %ld", i);
        int32_t code = send_batch(instance, instance->id, text, (size_t)length);
        memset(text, '#', sizeof text); /* the bytes are the plugin's again */
        if (instance->send_v2 != NULL && code == 0) say("result %d", await_result(instance));
    }
}

static void *send_hundred(void *instance) {
    for (int i = 0; i < 100; i++)
        send_batch(instance, ((struct instance *)instance)->id, "from a thread", 13);
    return NULL;
}

static void wait_for_stop(struct instance *instance) {
    pthread_mutex_lock(&mu);
    while (!instance->stop) pthread_cond_wait(&changed, &mu);
    pthread_mutex_unlock(&mu);
}

static pthread_mutex_t released_mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t released_changed = PTHREAD_COND_INITIALIZER;
static bool released;

/* Waits until another instance runs `release`. */
static void hang(void) {
    say("hanging");
    pthread_mutex_lock(&released_mu);
    while (!released) pthread_cond_wait(&released_changed, &released_mu);
    released = false;
    pthread_mutex_unlock(&released_mu);
}

static void hang_in(struct instance *instance, const char *function) {
    if (strcmp(function, "handle") == 0) instance->hang_in_handle = true;
    if (strcmp(function, "batch_result") == 0) instance->hang_in_batch_result = true;
    if (strcmp(function, "close") == 0) instance->hang_in_close = true;
}

static void *log_when_released(void *unused) {
    hang();
    say("later");
    return unused;
}

static void log_later(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, log_when_released, NULL);
    pthread_detach(thread);
}

static void release(void) {
    pthread_mutex_lock(&released_mu);
    released = true;
    pthread_cond_broadcast(&released_changed);
    pthread_mutex_unlock(&released_mu);
}

/* ---- Deaths --------------------------------------------------------------- */

static int overflow(int depth) {
    volatile char frame[4096];
    frame[0] = (char)depth;
    return depth < 0 ? 0 : overflow(depth + 1) + frame[0];
}

static int32_t allocate(void) {
    for (;;) {
        void *piece = malloc(1 << 20);
        if (piece == NULL) abort(); /* as Rust does */
        memset(piece, 1, 1 << 20);
    }
}

static void *touch_nothing(void *address) {
    *(volatile char *)address = 0;
    return NULL;
}

static void die(const char *how) {
    if (strcmp(how, "segv") == 0) touch_nothing((void *)8);
    if (strcmp(how, "segv_thread") == 0) on_threads(1, touch_nothing, (void *)8);
    if (strcmp(how, "abort") == 0) abort();
    if (strcmp(how, "exit") == 0) exit(7);
    if (strcmp(how, "_exit") == 0) _exit(9);
    if (strcmp(how, "overflow") == 0) overflow(0);
    if (strcmp(how, "allocate") == 0) allocate();
    if (strcmp(how, "spin") == 0)
        for (volatile int i = 0;; i++) {
        }
    if (strcmp(how, "close_channel") == 0) {
        shutdown(3, SHUT_RDWR);
        pause();
    }
}

/* ---- Running a script ---------------------------------------------------- */

static int32_t run(struct instance *instance, char **script) {
    for (char *w; (w = word(script)) != NULL;) {
        if (strcmp(w, "then") == 0) return 0;
        else if (strcmp(w, "return") == 0) return (int32_t)number(script);
        else if (strcmp(w, "log") == 0) log_words(script);
        else if (strcmp(w, "log_invalid") == 0) log_invalid();
        else if (strcmp(w, "log_endless") == 0)
            log_record(IGGY_LOG_INFO, NULL, 5, (const uint8_t *)"x", SIZE_MAX);
        else if (strcmp(w, "log_threads") == 0) {
            long n = number(script);
            on_threads(n, log_often, (void *)number(script));
        } else if (strcmp(w, "broken_socket") == 0) {
            write_broken_socket(NULL);
            on_threads(1, write_broken_socket, NULL);
        } else if (strcmp(w, "timer_slack") == 0) {
            say_timer_slack(NULL);
            on_threads(1, say_timer_slack, NULL);
        } else if (strcmp(w, "handler") == 0) install_handler((int)number(script));
        else if (strcmp(w, "handled") == 0) return handled;
        else if (strcmp(w, "block_signals") == 0) block_all_signals();
        else if (strcmp(w, "blocked") == 0) return (int32_t)blocked_signals();
        else if (strcmp(w, "sleep") == 0) {
            if (!sleep_undisturbed(number(script))) return 4;
        } else if (strcmp(w, "nap") == 0) usleep((useconds_t)number(script));
        else if (strcmp(w, "die") == 0) die(word(script));
        else if (strcmp(w, "exec") == 0) return fork_and_exec();
        else if (strcmp(w, "hang") == 0) hang();
        else if (strcmp(w, "hang_in") == 0) hang_in(instance, word(script));
        else if (strcmp(w, "log_later") == 0) log_later();
        else if (strcmp(w, "environment") == 0) {
            char *name = word(script);
            say("%s=%s", name, getenv(name));
        } else if (strcmp(w, "release") == 0) release();
        else if (strcmp(w, "send") == 0) send_many(instance, number(script));
        else if (strcmp(w, "send_as") == 0)
            say("send_as %d", send_batch(instance, (uint32_t)number(script), "stray", 5));
        else if (strcmp(w, "send_as_last") == 0)
            say("send_as_last %d", send_batch(instance, last_closed, "late", 4));
        else if (strcmp(w, "send_at_close") == 0) instance->send_at_close = true;
        else if (strcmp(w, "send_null") == 0)
            say("send_null %d", send_batch(instance, instance->id, NULL, 0));
        else if (strcmp(w, "send_endless") == 0)
            say("send_endless %d", send_batch(instance, instance->id, "x", SIZE_MAX));
        else if (strcmp(w, "send_threads") == 0) on_threads(number(script), send_hundred, instance);
        else if (strcmp(w, "wait_stop") == 0) wait_for_stop(instance);
        else if (*w != 0 && strcmp(w, "ok") != 0) return 99; /* a mistake of the test */
    }
    return 0;
}

/* Runs a script that is not NUL-terminated; what is left of it is returned in *rest. */
static int32_t run_bytes(struct instance *instance, const uint8_t *bytes, size_t length,
                         char **rest) {
    char *copy = strndup((const char *)bytes, length), *script = copy;
    int32_t code = run(instance, &script);
    if (rest != NULL) *rest = script == NULL ? NULL : strdup(script);
    free(copy);
    return code;
}

__attribute__((unused)) static int32_t end(uint32_t id) {
    struct instance *instance = take(id);
    if (instance == NULL) return IGGY_INVALID;
    pthread_mutex_lock(&mu);
    instance->stop = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
    say("closing %u", (unsigned)id);
    if (instance->started) pthread_join(instance->thread, NULL);
    if (instance->hang_in_close) hang();
    if (instance->send_at_close) say("at close %d", send_batch(instance, id, "last", 4));
    last_closed = id;
    free(instance->script);
    free(instance);
    return IGGY_OK;
}

/* ---- The interface ------------------------------------------------------- */

#ifndef NO_SINK
int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len, iggy_log_fn *log) {
    log_record = log;
    if (config == NULL) return IGGY_INVALID;
    return run_bytes(add(id), config, config_len, NULL);
}

int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,
                          const uint8_t *metadata, size_t metadata_len, const uint8_t *messages,
                          size_t messages_len) {
    struct instance *instance = find(id);
    if (instance == NULL || topic == NULL || metadata == NULL || messages == NULL)
        return IGGY_INVALID;
    if (topic_len > 0)
        say("topic %.*s metadata %.*s", (int)topic_len, topic, (int)metadata_len, metadata);
    return run_bytes(instance, messages, messages_len, NULL);
}

#ifndef NO_CLOSE
int32_t iggy_sink_close(uint32_t id) { return end(id); }
#endif
#ifndef NO_VERSION
const char *iggy_sink_version(void) { return "1.2.3"; }
#endif
#endif

#ifndef NO_SOURCE
static void *run_thread(void *argument) {
    struct instance *instance = argument;
    char *script = instance->script;
    run(instance, &script);
    return NULL;
}

__attribute__((unused)) static int32_t start(uint32_t id, iggy_send_fn *send,
                                             iggy_send_v2_fn *send_v2) {
    struct instance *instance = find(id);
    if (instance == NULL) return IGGY_INVALID;
    if (instance->hang_in_handle) hang();
    instance->send = send;
    instance->send_v2 = send_v2;
    instance->started = pthread_create(&instance->thread, NULL, run_thread, instance) == 0;
    return instance->started ? IGGY_OK : IGGY_FAILED;
}

int32_t iggy_source_open(uint32_t id, const uint8_t *config, size_t config_len,
                         const uint8_t *state, size_t state_len, iggy_log_fn *log) {
    log_record = log;
    if (config == NULL) return IGGY_INVALID;
    if (state == NULL) say("no state");
    else say("state of %zu bytes: %.*s", state_len, (int)state_len, state);
    struct instance *instance = add(id);
    return run_bytes(instance, config, config_len, &instance->script);
}

int32_t iggy_source_close(uint32_t id) { return end(id); }
#ifndef NO_VERSION
#ifndef SOURCE_VERSION
#define SOURCE_VERSION 1.2.3
#endif
#define TEXT(token) #token
#define TEXT_OF(macro) TEXT(macro)
const char *iggy_source_version(void) { return TEXT_OF(SOURCE_VERSION); }
#endif

#ifndef NO_GEN1
int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send) { return start(id, send, NULL); }
#endif
#ifndef NO_GEN2
int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send) { return start(id, NULL, send); }
#ifndef NO_BATCH_RESULT
int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result) {
    struct instance *instance = find(id);
    if (instance == NULL) return IGGY_INVALID;
    if (instance->hang_in_batch_result) hang();
    pthread_mutex_lock(&mu);
    bool pending = instance->batch == batch_id && instance->result < 0;
    if (pending) instance->result = result;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mu);
    return pending ? IGGY_OK : IGGY_INVALID;
}
#endif
#endif
#endif
