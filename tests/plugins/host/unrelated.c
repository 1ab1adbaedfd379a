/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * unrelated: a library that is no plugin; with -DLEGACY one that exports what plugins
 * did before their names had a prefix.
 */
#define PUBLIC __attribute__((visibility("default")))

PUBLIC int unrelated(void) { return 0; }

#ifdef LEGACY
PUBLIC int open(void) { return 0; }
PUBLIC int consume(void) { return 0; }
PUBLIC int close(void) { return 0; }
#endif
