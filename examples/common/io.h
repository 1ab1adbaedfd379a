/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* Writing to a descriptor on a thread of the host. */
#ifndef EXAMPLES_COMMON_IO_H
#define EXAMPLES_COMMON_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes all bytes, or returns false with errno set; some may be written then. */
bool write_all(int file, const uint8_t *bytes, size_t len);

/* Sleeps, also when signals interrupt it. */
void sleep_us(uint64_t us);

#endif
