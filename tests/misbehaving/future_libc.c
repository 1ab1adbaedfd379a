/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Stands for a libc that does not exist yet, at link time alone: what is linked with it
 * asks the real libc.so.6 for a version that it lacks.
 */
int function_of_the_future(void);
int function_of_the_future(void) { return 0; }
