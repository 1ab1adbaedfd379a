// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// csv_sink: appends each message to a file, as a record of CSV. README.md lists its
// configuration. An exception that leaves a callback is caught by the SDK, which logs it.
#include <cjson/cJSON.h>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "csv_file.hpp"
#include "iggy_connector_config.h"
#include "iggy_connector_json.h"

namespace {

using Json = std::unique_ptr<cJSON, decltype(&cJSON_Delete)>;
using Text = std::unique_ptr<char, decltype(&std::free)>; // cJSON's memory is malloc's

std::string_view view(iggy_bytes bytes) {
    return {reinterpret_cast<const char *>(bytes.data), bytes.len};
}

// ---- Columns ------------------------------------------------------------------

// What the columns of one record are taken from. The payload is parsed when the first
// column asks for a member of it.
class Record {
public:
    Record(const iggy_batch &batch, const iggy_message &message)
        : batch_(batch), message_(message), json_(nullptr, cJSON_Delete) {}

    // Appends the field; nothing at all when there is no such value.
    void append(std::string &out, const std::string &column, char delimiter) {
        if (column == "iggy_stream") {
            csv::append_field(out, view(batch_.topic.stream), delimiter);
        } else if (column == "iggy_topic") {
            csv::append_field(out, view(batch_.topic.topic), delimiter);
        } else if (column == "iggy_partition_id") {
            out += std::to_string(batch_.metadata.partition);
        } else if (column == "iggy_offset") {
            out += std::to_string(message_.offset);
        } else if (column == "iggy_timestamp") {
            out += std::to_string(message_.timestamp);
        } else if (column == "payload") {
            append_payload(out, delimiter);
        } else {
            append_member(out, column, delimiter);
        }
    }

private:
    void append_payload(std::string &out, char delimiter) {
        if (iggy_is_utf8(message_.payload)) {
            csv::append_field(out, view(message_.payload), delimiter);
            return;
        }
        Text base64(iggy_base64(message_.payload), std::free);
        if (!base64) throw std::bad_alloc();
        out += base64.get();
    }

    // `a.b` is the member b of the member a.
    void append_member(std::string &out, const std::string &path, char delimiter) {
        const cJSON *value = parsed();
        for (std::size_t at = 0; value && at <= path.size();) {
            std::size_t dot = std::min(path.find('.', at), path.size());
            value = cJSON_GetObjectItemCaseSensitive(value, path.substr(at, dot - at).c_str());
            at = dot + 1;
        }
        if (!value || cJSON_IsNull(value)) return;
        if (const char *text = cJSON_GetStringValue(value)) {
            csv::append_field(out, text, delimiter);
            return;
        }
        Text printed(cJSON_PrintUnformatted(value), std::free);
        if (!printed) throw std::bad_alloc();
        csv::append_field(out, printed.get(), delimiter);
    }

    const cJSON *parsed() {
        if (!parsed_) {
            auto text = view(message_.payload);
            json_.reset(cJSON_ParseWithLength(text.data(), text.size()));
            parsed_ = true;
        }
        return json_.get();
    }

    const iggy_batch &batch_;
    const iggy_message &message_;
    Json json_;
    bool parsed_ = false;
};

// ---- The sink -----------------------------------------------------------------

struct Options {
    std::string path;
    std::vector<std::string> columns;
    char delimiter = ',';
    bool header = true;
    off_t max_bytes = 0;
    csv::Sync sync = csv::Sync::batch;

    std::string head() const {
        std::string record;
        for (const auto &column : columns) {
            if (!record.empty()) record += delimiter;
            csv::append_field(record, column, delimiter);
        }
        return header ? record + "\r\n" : "";
    }
};

class CsvSink {
public:
    explicit CsvSink(Options options)
        : options_(std::move(options)),
          file_(options_.path, options_.head(), options_.max_bytes, options_.sync) {}

    void consume(iggy_batch &batch) {
        std::string records;
        iggy_message message;
        while (iggy_next_message(&batch.messages, &message)) append(records, batch, message);
        if (!records.empty()) file_.append(records);
    }

private:
    void append(std::string &records, const iggy_batch &batch, const iggy_message &message) const {
        Record record(batch, message);
        for (std::size_t i = 0; i < options_.columns.size(); i++) {
            if (i > 0) records += options_.delimiter;
            record.append(records, options_.columns[i], options_.delimiter);
        }
        records += "\r\n";
    }

    const Options options_;
    csv::File file_;
};

// ---- Configuration ------------------------------------------------------------

std::vector<std::string> read_columns(iggy_config &config) {
    std::vector<std::string> columns;
    auto root = static_cast<const cJSON *>(config.root);
    const cJSON *names = cJSON_GetObjectItemCaseSensitive(root, "columns"), *name;
    cJSON_ArrayForEach(name, names) {
        const char *text = cJSON_GetStringValue(name);
        columns.push_back(text ? text : "");
    }
    bool ok = cJSON_IsArray(names) && !columns.empty();
    for (const auto &column : columns) ok = ok && !column.empty();
    if (!ok) iggy_config_fault(&config, "columns", "an array of names");
    return columns;
}

csv::Sync read_sync(iggy_config &config) {
    std::string_view name = iggy_config_string(&config, "fsync", "batch");
    if (name == "rotation") return csv::Sync::rotation;
    if (name == "never") return csv::Sync::never;
    if (name != "batch") iggy_config_fault(&config, "fsync", "batch, rotation or never");
    return csv::Sync::batch;
}

char read_delimiter(iggy_config &config) {
    std::string_view text = iggy_config_string(&config, "delimiter", ",");
    if (text.size() == 1 && text.find_first_of("\"\r\n") == std::string_view::npos) return text[0];
    iggy_config_fault(&config, "delimiter", "one character, such as \",\" or \";\"");
    return ',';
}

Options read_options(iggy_config &config) {
    Options options;
    options.path = iggy_config_required_string(&config, "path");
    options.columns = read_columns(config);
    options.delimiter = read_delimiter(config);
    options.header = iggy_config_bool(&config, "header", true);
    options.max_bytes = static_cast<off_t>(iggy_config_int(&config, "max_bytes", 0, INT64_MAX, 0));
    options.sync = read_sync(config);
    return options;
}

// ---- The callbacks, described in iggy_connector_sdk.h ---------------------------

int32_t open_sink(const iggy_open_args *args, void **instance) {
    iggy_config config = iggy_config_parse(args->config);
    Options options = read_options(config);
    iggy_config_free(&config);
    if (config.failed) return IGGY_INVALID;
    *instance = new CsvSink(std::move(options));
    return IGGY_OK;
}

int32_t consume(void *instance, iggy_batch *batch) {
    static_cast<CsvSink *>(instance)->consume(*batch);
    return IGGY_OK;
}

void close_sink(void *instance) { delete static_cast<CsvSink *>(instance); }

constexpr iggy_sink_plugin plugin = {"csv_sink", PLUGIN_VERSION, open_sink, consume, close_sink};

} // namespace

IGGY_SINK_PLUGIN(plugin)
