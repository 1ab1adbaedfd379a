// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// The edge between C++ callbacks and the SDK, which is C: no exception may pass through
// it. iggy_connector_sdk.h includes this and wraps the table of a plugin in it.
#ifndef IGGY_CONNECTOR_GUARD_HPP
#define IGGY_CONNECTOR_GUARD_HPP

#include <exception>

template <typename Call> int32_t iggy_guarded_call(const char *name, Call call) noexcept {
#ifdef __cpp_exceptions
    try {
        return call();
    } catch (const std::exception &error) {
        iggy_log(IGGY_LOG_ERROR, "%s threw: %s", name, error.what());
    } catch (...) {
        iggy_log(IGGY_LOG_ERROR, "%s threw something that is no std::exception", name);
    }
    return IGGY_FAILED;
#else
    static_cast<void>(name);
    return call();
#endif
}

template <typename Plugin, const Plugin &Table> struct iggy_guarded_lifetime {
    static int32_t open(const iggy_open_args *args, void **instance) noexcept {
        return iggy_guarded_call("open", [&] { return Table.open(args, instance); });
    }
    static void close(void *instance) noexcept {
        iggy_guarded_call("close", [&] {
            Table.close(instance);
            return IGGY_OK;
        });
    }
};

template <const iggy_sink_plugin &Table> struct iggy_guarded_sink {
    static int32_t consume(void *instance, iggy_batch *batch) noexcept {
        return iggy_guarded_call("consume", [&] { return Table.consume(instance, batch); });
    }
    using lifetime = iggy_guarded_lifetime<iggy_sink_plugin, Table>;
    static constexpr iggy_sink_plugin plugin = {Table.name, Table.version, lifetime::open, consume,
                                                lifetime::close};
};

template <const iggy_source_plugin &Table> struct iggy_guarded_source {
    static int32_t poll(void *instance, iggy_producer *producer) noexcept {
        return iggy_guarded_call("poll", [&] { return Table.poll(instance, producer); });
    }
    static int32_t on_batch_result(void *instance, iggy_batch_result result) noexcept {
        return iggy_guarded_call("on_batch_result",
                                 [&] { return Table.on_batch_result(instance, result); });
    }
    using lifetime = iggy_guarded_lifetime<iggy_source_plugin, Table>;
    static constexpr iggy_source_plugin plugin = {Table.name,
                                                  Table.version,
                                                  lifetime::open,
                                                  poll,
                                                  Table.on_batch_result ? on_batch_result : nullptr,
                                                  lifetime::close};
};

#endif
