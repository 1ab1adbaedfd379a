// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* By how much the kernel may prolong a sleep of the calling thread, and of threads that it
 * starts. Without Linux these do nothing. */
#ifndef HOST_TIMERSLACK_H
#define HOST_TIMERSLACK_H

void host_timer_slack_of_plugins(void);
void host_timer_slack_of_host(void);

#endif
