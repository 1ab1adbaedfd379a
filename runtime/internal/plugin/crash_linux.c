// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

#define _GNU_SOURCE
#include "crash.h"

#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "child.h"

enum { FRAMES = 64, STACK_BYTES = 64 << 10, REPORT_SECONDS = 2 };

static const int deadly[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT, SIGSYS, SIGTRAP};

static int report_file;
static atomic_flag reporting = ATOMIC_FLAG_INIT;
static _Thread_local uint32_t current_slot = NO_SLOT;

void crash_enter(uint32_t slot) { current_slot = slot; }
void crash_leave(void) { current_slot = NO_SLOT; }

/* Writes what is certain first: to name the functions of the backtrace takes locks that the
 * thread may hold. */
static void report(int signal_number, const void *address) {
    struct crash_report head = {.written = 1,
                                .signal = (uint32_t)signal_number,
                                .slot = current_slot,
                                .address = (uintptr_t)address};
    if (pwrite(report_file, &head, sizeof head, REPORT_OFFSET) != sizeof head) return;
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);
    lseek(report_file, REPORT_OFFSET + sizeof head, SEEK_SET);
    backtrace_symbols_fd(frames, count, report_file);
}

/* Ends the process when the report cannot be finished. */
static void limit_report(void) {
    sigset_t alarm_only;
    sigemptyset(&alarm_only);
    sigaddset(&alarm_only, SIGALRM);
    signal(SIGALRM, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &alarm_only, NULL);
    alarm(REPORT_SECONDS);
}

static void on_deadly_signal(int number, siginfo_t *info, void *context) {
    (void)context;
    if (atomic_flag_test_and_set(&reporting)) {
        sleep(REPORT_SECONDS); /* another thread was first, and ends the process */
    } else {
        limit_report();
        report(number, info->si_addr);
    }
    signal(number, SIG_DFL);
    raise(number); /* takes effect when the handler has returned */
}

static void on_exit_call(void) {
    if (!atomic_flag_test_and_set(&reporting)) report(0, NULL);
}

void crash_guard_thread(void) {
    stack_t stack = {.ss_size = STACK_BYTES};
    stack.ss_sp =
        mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (stack.ss_sp != MAP_FAILED) sigaltstack(&stack, NULL);
}

void crash_watch(int file) {
    void *frame;
    backtrace(&frame, 1); /* the first loads a library, which a handler must not */
    report_file = file;
    struct sigaction action = {.sa_sigaction = on_deadly_signal,
                               .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigfillset(&action.sa_mask);
    for (size_t i = 0; i < sizeof deadly / sizeof *deadly; i++) sigaction(deadly[i], &action, NULL);
    atexit(on_exit_call);
}
