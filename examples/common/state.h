/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * State bytes of a source. The host does not look into them; these are what the
 * SDKs write too: MessagePack, a structure as the array of its fields. All fields
 * of the examples are unsigned numbers.
 */
#ifndef EXAMPLES_COMMON_STATE_H
#define EXAMPLES_COMMON_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "log.h"

/* Room that `fields` fields need at most. */
#define STATE_BYTES(fields) (1 + 9 * (fields))

/* Writes up to 15 fields and returns the number of bytes. */
size_t state_write(uint8_t *out, const uint64_t *values, size_t fields);

/* Reads what open was given. Without a state the values stay as they are. False: the
 * bytes are not exactly an array of so many numbers, which the log then says. */
bool state_read(const struct log *log, const uint8_t *bytes, size_t len, uint64_t *values,
                size_t fields);

#endif
