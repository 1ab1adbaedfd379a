/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include <iggy_connector_config.h>

int main(void) {
    static const char json[] = "{\"n\":5}";
    iggy_config config = iggy_config_parse((iggy_bytes){(const uint8_t *)json, sizeof json - 1});
    int64_t number = iggy_config_int(&config, "n", 0, 9, 0);
    iggy_config_free(&config);
    return number == 5 ? 0 : 1;
}
