/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* System calls on a thread of the host, where signals interrupt them (connector.h). */
#ifndef EXAMPLES_COMMON_IO_H
#define EXAMPLES_COMMON_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes all bytes, or returns false with errno set; some may be written then. */
bool write_all(int file, const uint8_t *bytes, size_t len);

/* Waits until what was written is on disk, where there is a disk behind the file. */
bool sync_file(int file);

/* Sleeps, also when signals interrupt it. */
void sleep_us(uint64_t us);

#endif
