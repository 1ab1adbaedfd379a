// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

// A file of CSV records that never ends in half of one.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <sys/types.h>

namespace csv {

enum class Sync { batch, rotation, never };

// Appends a field as RFC 4180 has it: in quotes where it needs them, or where an empty text
// is to be told from nothing.
void append_field(std::string &record, std::string_view text, char delimiter);

class File {
public:
    // `head` is the first record of each new file, maybe empty; `max_bytes` of 0: the file
    // is never rotated. Throws std::system_error, as append does.
    File(std::string path, std::string head, off_t max_bytes, Sync sync);
    ~File();
    File(const File &) = delete;
    File &operator=(const File &) = delete;

    // Appends whole records, all of them or none. It may be called from several threads.
    void append(std::string_view records);

private:
    void open();
    void repair();
    void write(std::string_view records);
    void rotate();
    void close() noexcept;

    const std::string path_;
    const std::string head_;
    const off_t max_bytes_;
    const Sync sync_;
    std::mutex mutex_;
    int file_ = -1;
};

} // namespace csv
