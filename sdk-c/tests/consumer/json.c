/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include <iggy_connector_json.h>

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    cJSON *object = cJSON_CreateObject();
    iggy_json_add_uint(object, "n", UINT64_MAX);
    char *text = cJSON_PrintUnformatted(object);
    int code = text && strcmp(text, "{\"n\":18446744073709551615}") == 0 ? 0 : 1;
    free(text);
    cJSON_Delete(object);
    return code;
}
