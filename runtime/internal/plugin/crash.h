// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* The report of a process that dies: what child.h calls crash_report. */
#ifndef HOST_CRASH_H
#define HOST_CRASH_H

#include <stdint.h>

/* From now on a deadly signal and a call of exit leave a report in the file. */
void crash_watch(int file);

/* Gives the calling thread a stack for the handler, which an overflow of its own needs. */
void crash_guard_thread(void);

/* Say which call the calling thread is in. */
void crash_enter(uint32_t slot);
void crash_leave(void);

#endif
