/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include <iggy_connector_state.h>

int main(void) {
    static const uint8_t bytes[] = {0x91, 0x05};
    iggy_state state = iggy_state_read((iggy_bytes){bytes, sizeof bytes});
    uint64_t number = iggy_state_take_uint(&state);
    return iggy_state_end(&state) && number == 5 ? 0 : 1;
}
