/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * throwing: a sink in C++ that throws and catches, on the caller's thread and on 50 of its
 * own, and logs what it caught.
 */
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "connector.h"

static void catch_one(iggy_log_fn *log, const std::string &text) {
    static const std::string target = "throwing";
    try {
        throw std::runtime_error(text);
    } catch (const std::exception &e) {
        const std::string message = std::string("caught ") + e.what();
        log(IGGY_LOG_INFO, reinterpret_cast<const uint8_t *>(target.data()), target.size(),
            reinterpret_cast<const uint8_t *>(message.data()), message.size());
    }
}

int32_t iggy_sink_open(uint32_t, const uint8_t *, size_t, iggy_log_fn *log) {
    catch_one(log, "on the thread of the caller");
    std::vector<std::thread> threads;
    for (int i = 0; i < 50; i++) threads.emplace_back(catch_one, log, "on a thread of the plugin");
    for (auto &thread : threads) thread.join();
    return IGGY_OK;
}

int32_t iggy_sink_consume(uint32_t, const uint8_t *, size_t, const uint8_t *, size_t,
                          const uint8_t *, size_t) {
    return IGGY_OK;
}

int32_t iggy_sink_close(uint32_t) { return IGGY_OK; }

const char *iggy_sink_version(void) { return "1.0.0"; }
