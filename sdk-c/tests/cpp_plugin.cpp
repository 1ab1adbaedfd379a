// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// A plugin of both kinds in C++ that throws where its configuration says.
#include <stdexcept>
#include <string>

#include "iggy_connector_sdk.h"

namespace {

struct instance {
    std::string mode;
    bool went_on = false;
};

int32_t open_instance(const iggy_open_args *args, void **result) {
    std::string mode(reinterpret_cast<const char *>(args->config.data), args->config.len);
    if (mode == "open") throw std::runtime_error("no connection");
    *result = new instance{mode};
    return IGGY_OK;
}

void close_instance(void *self) {
    bool throws = static_cast<instance *>(self)->mode == "close";
    delete static_cast<instance *>(self);
    if (throws) throw 7;
}

int32_t consume(void *self, iggy_batch *batch) {
    std::string text;
    iggy_message message;
    while (iggy_next_message(&batch->messages, &message)) {
        text.append(reinterpret_cast<const char *>(message.payload.data), message.payload.len);
    }
    if (static_cast<instance *>(self)->mode == "consume")
        throw std::runtime_error("cannot store " + text);
    return IGGY_OK;
}

int32_t poll(void *self, iggy_producer *producer) {
    auto *source = static_cast<instance *>(self);
    if (source->mode == "poll" && !source->went_on) {
        source->went_on = true;
        throw std::runtime_error("lost connection");
    }
    iggy_header header = {iggy_header_string("key"), iggy_header_float64(1.5)};
    iggy_produced_message message = {};
    message.payload = "{}";
    message.payload_len = 2;
    message.headers = &header;
    message.header_count = 1;
    iggy_produce_message(producer, &message);
    return IGGY_OK;
}

int32_t on_batch_result(void *, iggy_batch_result) { throw "no std::exception"; }

constexpr iggy_sink_plugin sink = {"cpp_sink", "1.0.0", open_instance, consume, close_instance};
constexpr iggy_source_plugin source = {"cpp_source", "1.0.1",         open_instance,
                                       poll,         on_batch_result, close_instance};

} // namespace

IGGY_SINK_PLUGIN(sink)
IGGY_SOURCE_PLUGIN(source)
