// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

#include "csv_file.hpp"

#include <cerrno>
#include <cstdio>
#include <fcntl.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "iggy_connector_sdk.h"
#include "syscalls.h"

namespace csv {

namespace {

[[noreturn]] void fail(const std::string &what) {
    throw std::system_error(errno, std::generic_category(), what);
}

// Finds where records end: at a line feed that is not in quotes.
class Scanner {
public:
    void take(std::string_view bytes) {
        for (char byte : bytes) {
            seen_++;
            if (byte == '"') quoted_ = !quoted_;
            if (byte == '\n' && !quoted_) end_ = seen_;
        }
    }
    off_t seen() const { return seen_; }
    off_t end() const { return end_; } // of the last whole record

private:
    off_t seen_ = 0, end_ = 0;
    bool quoted_ = false;
};

void sync_directory(const std::string &path) {
    auto slash = path.rfind('/');
    std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    int file = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool ok = file >= 0 && sync_file(file);
    int error = errno;
    if (file >= 0) ::close(file);
    errno = error;
    if (!ok) fail("cannot sync " + folder);
}

// The first of path.1, path.2, … that is not there.
std::string rotated_name(const std::string &path) {
    for (unsigned number = 1;; number++) {
        std::string name = path + "." + std::to_string(number);
        if (::access(name.c_str(), F_OK) != 0) return name;
    }
}

} // namespace

void append_field(std::string &record, std::string_view text, char delimiter) {
    const char special[] = {delimiter, '"', '\r', '\n'};
    if (!text.empty() && text.find_first_of({special, sizeof special}) == std::string_view::npos) {
        record += text;
        return;
    }
    record += '"';
    for (char c : text) {
        if (c == '"') record += '"';
        record += c;
    }
    record += '"';
}

File::File(std::string path, std::string head, off_t max_bytes, Sync sync)
    : path_(std::move(path)), head_(std::move(head)), max_bytes_(max_bytes), sync_(sync) {
    try {
        open();
    } catch (...) {
        close();
        throw;
    }
}

File::~File() {
    if (file_ >= 0 && sync_ != Sync::never && !sync_file(file_)) {
        iggy_log(IGGY_LOG_ERROR, "the end of %s may not be on disk", path_.c_str());
    }
    close();
}

void File::append(std::string_view records) {
    std::lock_guard<std::mutex> lock(mutex_);
    if (file_ < 0) open(); // a rotation failed half-way
    write(records);
    if (max_bytes_ > 0 && ::lseek(file_, 0, SEEK_END) >= max_bytes_) rotate();
}

void File::open() {
    file_ = ::open(path_.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
    if (file_ < 0) fail("cannot open " + path_);
    repair();
    if (::lseek(file_, 0, SEEK_END) == 0 && !head_.empty()) write(head_);
    if (sync_ != Sync::never) sync_directory(path_);
}

// Cuts off what a crash left behind of a record. A pipe or a device has no end to repair.
void File::repair() {
    char bytes[65536];
    Scanner scanner;
    struct stat info;
    if (::fstat(file_, &info) != 0) fail("cannot look at " + path_);
    if (!S_ISREG(info.st_mode)) return;
    ssize_t got;
    while ((got = ::pread(file_, bytes, sizeof bytes, scanner.seen())) > 0) {
        scanner.take({bytes, static_cast<std::size_t>(got)});
    }
    if (got < 0) fail("cannot read " + path_);
    if (scanner.end() == scanner.seen()) return;
    iggy_log(IGGY_LOG_WARN, "%s ended in half a record, which is cut off", path_.c_str());
    if (::ftruncate(file_, scanner.end()) != 0) fail("cannot repair " + path_);
}

void File::write(std::string_view records) {
    off_t before = ::lseek(file_, 0, SEEK_END);
    if (write_all(file_, records.data(), records.size()) &&
        (sync_ != Sync::batch || sync_file(file_))) {
        return;
    }
    int error = errno;
    if (::ftruncate(file_, before) != 0) {
        iggy_log(IGGY_LOG_ERROR, "%s may end in half a record", path_.c_str());
    }
    errno = error;
    fail("cannot append to " + path_);
}

// The records are written by now: that this fails is a pity, and no reason to write them again.
void File::rotate() {
    try {
        if (sync_ != Sync::never && !sync_file(file_)) fail("cannot sync " + path_);
        close();
        if (std::rename(path_.c_str(), rotated_name(path_).c_str()) != 0) {
            fail("cannot rename " + path_);
        }
        open();
    } catch (const std::system_error &error) {
        iggy_log(IGGY_LOG_ERROR, "%s", error.what());
    }
}

void File::close() noexcept {
    if (file_ >= 0) ::close(file_);
    file_ = -1;
}

} // namespace csv
