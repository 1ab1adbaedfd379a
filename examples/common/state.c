/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "state.h"

enum { FIXARRAY = 0x90, UINT8 = 0xcc, UINT64 = 0xcf };

size_t state_write(uint8_t *out, const uint64_t *values, size_t fields) {
    size_t len = 0;
    out[len++] = (uint8_t)(FIXARRAY | fields);
    for (size_t i = 0; i < fields; i++) {
        if (values[i] < 0x80) {
            out[len++] = (uint8_t)values[i];
            continue;
        }
        /* UINT8, UINT16, UINT32 and UINT64 follow each other: 1, 2, 4, 8 bytes. */
        unsigned width = (values[i] > 0xff) + (values[i] > 0xffff) + (values[i] > 0xffffffff);
        out[len++] = (uint8_t)(UINT8 + width);
        for (int shift = (8 << width) - 8; shift >= 0; shift -= 8) {
            out[len++] = (uint8_t)(values[i] >> shift);
        }
    }
    return len;
}

static bool decode(const uint8_t *bytes, size_t len, uint64_t *values, size_t fields) {
    const uint8_t *at = bytes, *end = bytes + len;
    if (*at++ != (FIXARRAY | fields)) return false;
    for (size_t i = 0; i < fields; i++) {
        if (at == end) return false;
        uint8_t tag = *at++;
        values[i] = tag;
        if (tag < 0x80) continue;
        if (tag < UINT8 || tag > UINT64) return false;
        int width = 1 << (tag - UINT8);
        if (end - at < width) return false;
        for (values[i] = 0; width > 0; width--) values[i] = values[i] << 8 | *at++;
    }
    return at == end;
}

bool state_read(const struct log *log, const uint8_t *bytes, size_t len, uint64_t *values,
                size_t fields) {
    if (!bytes) return true;
    if (len == 0) {
        log_printf(log, IGGY_LOG_WARN, "the saved state is empty, starting afresh");
        return true;
    }
    if (decode(bytes, len, values, fields)) return true;
    log_printf(log, IGGY_LOG_ERROR, "the saved state was not written by this plugin");
    return false;
}
