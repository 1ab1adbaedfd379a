/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The C SDK: what lies between connector.h and the few lines that make a plugin.
 *
 * A plugin is a table of callbacks and one macro. The macro defines every function
 * that a host looks for; the SDK keeps the instances, decodes and encodes what
 * crosses the border, and runs the producing thread of a source:
 *
 *     static int32_t consume(void *instance, iggy_batch *batch) { ... }
 *     static const iggy_sink_plugin plugin = {"my_sink", "1.0.0", open_sink, consume, close_sink};
 *     IGGY_SINK_PLUGIN(plugin)
 *
 * C99 and C++17. In C++ the table is constexpr, and an exception that a callback
 * throws is caught, logged, and becomes IGGY_FAILED. All memory is freed by who
 * allocated it; views (iggy_bytes) are valid as long as the call that they came with.
 */
#ifndef IGGY_CONNECTOR_SDK_H
#define IGGY_CONNECTOR_SDK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "connector.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef __GNUC__
#define IGGY_PRINTF(text, first) __attribute__((format(printf, text, first)))
#else
#define IGGY_PRINTF(text, first)
#endif

/* Bytes that somebody else owns. They end with no NUL; `data` of none may be NULL. */
typedef struct iggy_bytes {
    const uint8_t *data;
    size_t len;
} iggy_bytes;

typedef struct iggy_u128 {
    uint64_t low;
    uint64_t high;
} iggy_u128;

/* ---- Log ------------------------------------------------------------------ */

/* Writes a record to the host's log, under the plugin's name. From any thread, once
 * an open has begun. What RUST_LOG in the environment excludes (below info, unless it
 * says otherwise) costs nothing but the call. Texts over 1 KiB are cut, and
 * bytes that are no UTF-8 become question marks. */
void iggy_log(enum iggy_log_level level, const char *format, ...) IGGY_PRINTF(2, 3);

/* ---- Headers of a message ------------------------------------------------- */

/* A header's key or value: its kind and its plain bytes, numbers little endian. */
typedef struct iggy_header_field {
    uint8_t kind; /* enum iggy_header_kind */
    uint16_t len;
    uint8_t data[IGGY_MAX_HEADER_BYTES];
} iggy_header_field;

typedef struct iggy_header {
    iggy_header_field key;
    iggy_header_field value;
} iggy_header;

/* A field that is empty or longer than IGGY_MAX_HEADER_BYTES is refused when it is
 * produced, so these cannot fail. */
iggy_header_field iggy_header_raw(const void *data, size_t len);
iggy_header_field iggy_header_string(const char *text);
iggy_header_field iggy_header_bool(bool value);
iggy_header_field iggy_header_int8(int8_t value);
iggy_header_field iggy_header_int16(int16_t value);
iggy_header_field iggy_header_int32(int32_t value);
iggy_header_field iggy_header_int64(int64_t value);
iggy_header_field iggy_header_int128(iggy_u128 twos_complement);
iggy_header_field iggy_header_uint8(uint8_t value);
iggy_header_field iggy_header_uint16(uint16_t value);
iggy_header_field iggy_header_uint32(uint32_t value);
iggy_header_field iggy_header_uint64(uint64_t value);
iggy_header_field iggy_header_uint128(iggy_u128 value);
iggy_header_field iggy_header_float32(float value);
iggy_header_field iggy_header_float64(double value);

/* The value of a field, false when it is of another kind, has not the size of its
 * kind, or does not fit. The integers take every INT and UINT kind. */
bool iggy_header_as_bool(const iggy_header_field *field, bool *value);
bool iggy_header_as_int(const iggy_header_field *field, int64_t *value);
bool iggy_header_as_uint(const iggy_header_field *field, uint64_t *value);
bool iggy_header_as_double(const iggy_header_field *field, double *value);

/* ---- Reading, for sinks --------------------------------------------------- */

/* Reads from front to back. After the first fault every read yields zeros and
 * `failed` stays: one check at the end is enough. Nothing is allocated. */
typedef struct iggy_reader {
    const uint8_t *at;
    const uint8_t *end;
    bool failed;
} iggy_reader;

typedef struct iggy_topic_metadata {
    iggy_bytes stream; /* UTF-8 */
    iggy_bytes topic;
} iggy_topic_metadata;

typedef struct iggy_messages_metadata {
    uint32_t partition;
    uint64_t current_offset; /* of the partition when the batch was polled */
    uint32_t schema;         /* enum iggy_schema, of the payloads */
} iggy_messages_metadata;

typedef struct iggy_message {
    iggy_u128 id;
    uint64_t offset;
    uint64_t checksum;
    uint64_t timestamp;        /* microseconds since 1970, by the server */
    uint64_t origin_timestamp; /* the same, by the producer */
    iggy_bytes headers;        /* encoded; see iggy_message_headers */
    iggy_bytes payload;
} iggy_message;

/* The messages of a batch. Its end and its bytes were checked when it was read, so
 * that the iteration yields exactly `count` messages. */
typedef struct iggy_messages {
    uint32_t schema;
    uint64_t count;
    uint64_t left; /* this and what follows is the iteration's */
    iggy_reader all;
    iggy_reader rest;
} iggy_messages;

/* The headers of a message. They are decoded one by one: `reader.failed` tells
 * after the last one whether all were well formed. */
typedef struct iggy_headers {
    uint64_t left;
    iggy_reader reader;
} iggy_headers;

iggy_reader iggy_reader_over(const void *data, size_t len);
iggy_topic_metadata iggy_read_topic_metadata(iggy_reader *reader);
iggy_messages_metadata iggy_read_messages_metadata(iggy_reader *reader);
iggy_messages iggy_read_messages(iggy_reader *reader);

/* The next message; false behind the last one. */
bool iggy_next_message(iggy_messages *messages, iggy_message *message);
void iggy_rewind(iggy_messages *messages);

iggy_headers iggy_message_headers(const iggy_message *message);
bool iggy_next_header(iggy_headers *headers, iggy_header *header);

/* The value under a key of kind string. If the key comes twice the last one counts.
 * False: it is not there, or the headers are broken. */
bool iggy_find_header(const iggy_message *message, const char *key, iggy_header_field *value);

/* ---- Bytes as text -------------------------------------------------------- */

bool iggy_is_utf8(iggy_bytes bytes);

/* Base64 with padding. It ends with NUL and is the caller's to free; NULL: no memory. */
char *iggy_base64(iggy_bytes bytes);

/* ---- What both kinds of plugin are given ---------------------------------- */

typedef struct iggy_open_args {
    uint32_t id;       /* for records that tell instances apart */
    iggy_bytes config; /* JSON text in UTF-8, `null` when there is none */
    iggy_bytes state;  /* of a source; data is NULL: none, start from the beginning */
} iggy_open_args;

/* ---- Sinks ---------------------------------------------------------------- */

typedef struct iggy_batch {
    iggy_topic_metadata topic;
    iggy_messages_metadata metadata;
    iggy_messages messages;
} iggy_batch;

/* Codes are those of `enum iggy_status`, with the meaning that connector.h gives
 * them at the function of the same name. */
typedef struct iggy_sink_plugin {
    const char *name;    /* target of the log records */
    const char *version; /* of this plugin */

    /* Readies an instance and stores it. One that fails logs why and frees what it
     * made: no `close` follows. */
    int32_t (*open)(const iggy_open_args *args, void **instance);

    /* Stores one batch. Several calls for one instance may run at once. A batch
     * that cannot be decoded is refused before. */
    int32_t (*consume)(void *instance, iggy_batch *batch);

    /* Frees the instance, when its last `consume` has returned. */
    void (*close)(void *instance);
} iggy_sink_plugin;

/* ---- Sources -------------------------------------------------------------- */

/* The batch that a poll fills. Any fault (no memory, a message beyond the limits of
 * Iggy) is remembered and ends up in the log: no call need be checked. The batch is not
 * sent then and counts as Nacked; without on_batch_result the source ends instead, and
 * the host starts it again from its stored state. */
typedef struct iggy_producer iggy_producer;

typedef struct iggy_produced_message {
    const void *payload;
    size_t payload_len;
    const iggy_header *headers; /* NULL: none. Any order; of equal keys the last counts */
    size_t header_count;
    bool has_id; /* without one the host makes it */
    bool has_origin_timestamp;
    bool has_timestamp; /* this and the checksum are on the wire, the host ignores them */
    bool has_checksum;
    iggy_u128 id;
    uint64_t origin_timestamp; /* microseconds since 1970 */
    uint64_t timestamp;
    uint64_t checksum;
} iggy_produced_message;

/* Appends a message that has nothing but its payload. */
void iggy_produce(iggy_producer *producer, const void *payload, size_t len);
void iggy_produce_message(iggy_producer *producer, const iggy_produced_message *message);

/* How the payloads of this batch are to be read; JSON unless it is said. */
void iggy_produce_schema(iggy_producer *producer, enum iggy_schema schema);

/* The state that is stored with this batch and comes back at the next open. */
void iggy_produce_state(iggy_producer *producer, const void *state, size_t len);

/* Pauses the poll. False, at once, when the instance is being closed: return then,
 * with or without messages, they are not sent any more. */
bool iggy_produce_wait(iggy_producer *producer, unsigned ms);

typedef struct iggy_source_plugin {
    const char *name;
    const char *version;

    /* As that of a sink. */
    int32_t (*open)(const iggy_open_args *args, void **instance);

    /* Fills the next batch. It runs on the instance's own thread. A close waits for
     * it, so it pauses with iggy_produce_wait and waits for nothing else for long.
     * Without a message or a state nothing is sent, and it is asked again after
     * 10 ms. A code other than IGGY_OK drops what it filled; it is asked again after
     * 100 ms, and each further failure in a row doubles that, up to 5 s. */
    int32_t (*poll)(void *instance, iggy_producer *producer);

    /* The fate of the batch polled last, never while a poll runs. After a Nack the
     * next poll has to yield the same records again. A failure ends the source.
     * In generation 1, which has no results, a batch handed over is an Ack.
     * NULL: the SDK keeps the batch and sends it again. */
    int32_t (*on_batch_result)(void *instance, enum iggy_batch_result result);

    /* Frees the instance. Nothing of it is running any more. */
    void (*close)(void *instance);
} iggy_source_plugin;

/* ---- The functions that a host looks for ---------------------------------- */

/* What the macros call; not for plugins. */
int32_t iggy_sdk_sink_open(const iggy_sink_plugin *plugin, uint32_t id, iggy_bytes config,
                           iggy_log_fn *log);
int32_t iggy_sdk_sink_consume(const iggy_sink_plugin *plugin, uint32_t id, iggy_bytes topic,
                              iggy_bytes metadata, iggy_bytes messages);
int32_t iggy_sdk_sink_close(const iggy_sink_plugin *plugin, uint32_t id);
int32_t iggy_sdk_source_open(const iggy_source_plugin *plugin, uint32_t id, iggy_bytes config,
                             iggy_bytes state, iggy_log_fn *log);
int32_t iggy_sdk_source_start(uint32_t id, iggy_send_fn *send, iggy_send_v2_fn *send_v2);
int32_t iggy_sdk_source_result(uint32_t id, uint64_t batch_id, uint8_t result);
int32_t iggy_sdk_source_close(uint32_t id);

#ifdef __cplusplus
}
#include "iggy_connector_guard.hpp"
#define IGGY_GUARDED(kind, table) (&iggy_guarded_##kind<table>::plugin)
#else
#define IGGY_GUARDED(kind, table) (&(table))
#endif

/* Makes the library a sink. `table` is an iggy_sink_plugin of static storage. */
#define IGGY_SINK_PLUGIN(table)                                                                  \
    int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len,                \
                           iggy_log_fn *log) {                                                   \
        iggy_bytes config_bytes = {config, config_len};                                          \
        return iggy_sdk_sink_open(IGGY_GUARDED(sink, table), id, config_bytes, log);             \
    }                                                                                            \
    int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,               \
                              const uint8_t *metadata, size_t metadata_len,                      \
                              const uint8_t *messages, size_t messages_len) {                    \
        iggy_bytes topic_bytes = {topic, topic_len};                                             \
        iggy_bytes metadata_bytes = {metadata, metadata_len};                                    \
        iggy_bytes messages_bytes = {messages, messages_len};                                    \
        return iggy_sdk_sink_consume(IGGY_GUARDED(sink, table), id, topic_bytes, metadata_bytes, \
                                     messages_bytes);                                            \
    }                                                                                            \
    int32_t iggy_sink_close(uint32_t id) {                                                       \
        return iggy_sdk_sink_close(IGGY_GUARDED(sink, table), id);                               \
    }                                                                                            \
    const char *iggy_sink_version(void) { return (table).version; }

/* Makes the library a source of both generations. `table` is an iggy_source_plugin of
 * static storage. */
#define IGGY_SOURCE_PLUGIN(table)                                                               \
    int32_t iggy_source_open(uint32_t id, const uint8_t *config, size_t config_len,             \
                             const uint8_t *state, size_t state_len, iggy_log_fn *log) {        \
        iggy_bytes config_bytes = {config, config_len}, state_bytes = {state, state_len};       \
        return iggy_sdk_source_open(IGGY_GUARDED(source, table), id, config_bytes, state_bytes, \
                                    log);                                                       \
    }                                                                                           \
    int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send) {                               \
        return iggy_sdk_source_start(id, send, NULL);                                           \
    }                                                                                           \
    int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send) {                         \
        return iggy_sdk_source_start(id, NULL, send);                                           \
    }                                                                                           \
    int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result) {          \
        return iggy_sdk_source_result(id, batch_id, result);                                    \
    }                                                                                           \
    int32_t iggy_source_close(uint32_t id) { return iggy_sdk_source_close(id); }                \
    const char *iggy_source_version(void) { return (table).version; }

#endif /* IGGY_CONNECTOR_SDK_H */
