/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 *
 * connector.h: the contract between a connectors host and a plugin.
 *
 * A plugin is a shared library that exports the functions declared below. A
 * *source* produces messages, the host sends them to Iggy. A *sink* consumes
 * messages that the host polled from Iggy. One library may export both kinds,
 * and one loaded library serves many *instances*: every function but `version`
 * names its instance by an id that the host chose.
 *
 * Nothing but scalars, pointer and length pairs and function pointers crosses
 * the border. The layout of the bytes behind the pointers is in wire.md.
 *
 * The header stands alone, as C99 and as C++17. It only grows: what is declared
 * here keeps its name, its type and its place. A block that a later release adds
 * is labelled with that release.
 *
 *
 * RULES FOR THE WHOLE BORDER
 *
 * Memory. Each side frees only what it allocated; nothing is ever handed over.
 *     A pointer is valid during the call that carries it, not longer: copy what
 *     you keep. (`version` is the one exception.) Byte strings have a length and
 *     no terminating NUL, and no alignment is promised. A length of 0 comes with
 *     a pointer that must not be read; it is not NULL unless the function says
 *     that NULL is allowed.
 *
 * Ids. The host never uses an id twice in one process, for sources and sinks
 *     together. An id stays occupied from `open` to `close`, whatever `open`
 *     returned, and `close` is called exactly once for each `open`.
 *
 * Threads. The host may call from any thread, and a later call for the same
 *     instance need not come from the same one: keep nothing in thread-local
 *     storage. Calls for different ids run side by side. What may overlap for
 *     one id is said at each function; what is not said does not happen.
 *
 * Blocking. A call may block where this header says so. The host then waits: it
 *     makes no further call for that instance, does not close it, and reports an
 *     instance whose call does not return. A plugin's own time limits are the
 *     only ones there are.
 *
 * Re-entrancy. A callback is called *by* the plugin; inside it, on that thread,
 *     the host calls no function of the same library. `iggy_log_fn` may be called
 *     from inside every function below, `iggy_send_fn` and `iggy_send_v2_fn` only
 *     from a thread of the plugin. A send callback can wait for long: hold no
 *     lock over it that one of the functions below takes.
 *
 * Failures. No exception and no panic may leave a function or pass through a
 *     callback: catch it and return a code. A crash ends the host's process.
 *
 * Signals. The host may be interrupting its own threads with signals all the
 *     time (a Go host does so to schedule its work). A system call made on a
 *     host thread, that is inside any function below, can therefore return
 *     EINTR, also on a machine where "nothing sends signals", and also those
 *     calls that SA_RESTART does not restart: nanosleep, poll, select,
 *     epoll_wait, and socket calls with a time limit. Repeat such a call, with
 *     the time that is left. Block all signals in threads that the plugin
 *     starts; do not install signal handlers (one without SA_ONSTACK kills a Go
 *     host). SIGPIPE is ignored in the whole process: a write to a broken pipe
 *     fails with EPIPE.
 *
 * Process. The library is loaded with RTLD_NOW | RTLD_LOCAL, once, and never
 *     unloaded, so its threads may outlive its instances. It must not change
 *     the environment, the working directory, the locale or the umask, must not
 *     call exit(), and must not embed a Go runtime (unless the host runs it in
 *     a process of its own). Its constructors should do nothing. It exports the
 *     names below and nothing else, and needs no newer C library than the host.
 */
#ifndef IGGY_CONNECTOR_H
#define IGGY_CONNECTOR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Marks a function that the host looks up by name. Build everything else with
 * -fvisibility=hidden. */
#if defined(_WIN32)
#define IGGY_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define IGGY_EXPORT __attribute__((visibility("default")))
#else
#define IGGY_EXPORT
#endif

/* ===========================================================================
 * Release 0.1.0. Everything from here on; also what Apache Iggy's own connectors
 * runtime speaks: generation 1 from its release 0.3.1 on (0.4.0, which belongs
 * to server 0.8.0, included), generation 2 after its 0.5.0-edge.4.
 * ======================================================================== */

/* ---- Codes ------------------------------------------------------------- */

/* What a function of the plugin returns. The host takes every value but
 * IGGY_OK as a failure; at each function stands what the two others mean. */
enum iggy_status {
    IGGY_OK = 0,
    IGGY_FAILED = 1,   /* the call was right, the work behind it failed */
    IGGY_INVALID = -1  /* the call itself was wrong: id, bytes, or order */
};

/* Severity of a log record. The host takes every higher value as IGGY_LOG_ERROR. */
enum iggy_log_level {
    IGGY_LOG_TRACE = 0,
    IGGY_LOG_DEBUG = 1,
    IGGY_LOG_INFO = 2,
    IGGY_LOG_WARN = 3,
    IGGY_LOG_ERROR = 4
};

/* Fate of a generation 2 batch. */
enum iggy_batch_result {
    IGGY_BATCH_ACK = 0, /* every message has its outcome and the state is on disk */
    IGGY_BATCH_NACK = 1 /* the batch failed; produce the same records again */
};

/* How the bytes of a payload are to be read. A host or plugin that does not know
 * a value must refuse the batch, not guess. */
enum iggy_schema {
    IGGY_SCHEMA_JSON = 0,
    IGGY_SCHEMA_RAW = 1,
    IGGY_SCHEMA_TEXT = 2,
    IGGY_SCHEMA_PROTO = 3,
    IGGY_SCHEMA_FLAT_BUFFER = 4,
    IGGY_SCHEMA_AVRO = 5 /* unknown to upstream's runtime 0.4.0 and older */
};

/* Type of a header's key or value. These are the values of this border; Iggy's
 * own wire code of a kind is one higher. Numbers are little endian. */
enum iggy_header_kind {
    IGGY_HEADER_RAW = 0,      /* 1 to 255 bytes */
    IGGY_HEADER_STRING = 1,   /* 1 to 255 bytes of UTF-8 */
    IGGY_HEADER_BOOL = 2,     /* 1 byte, 0 or 1 */
    IGGY_HEADER_INT8 = 3,     /* 1 byte, two's complement as all INT kinds */
    IGGY_HEADER_INT16 = 4,    /* 2 bytes */
    IGGY_HEADER_INT32 = 5,    /* 4 bytes */
    IGGY_HEADER_INT64 = 6,    /* 8 bytes */
    IGGY_HEADER_INT128 = 7,   /* 16 bytes */
    IGGY_HEADER_UINT8 = 8,    /* 1 byte */
    IGGY_HEADER_UINT16 = 9,   /* 2 bytes */
    IGGY_HEADER_UINT32 = 10,  /* 4 bytes */
    IGGY_HEADER_UINT64 = 11,  /* 8 bytes */
    IGGY_HEADER_UINT128 = 12, /* 16 bytes */
    IGGY_HEADER_FLOAT32 = 13, /* 4 bytes, IEEE 754 */
    IGGY_HEADER_FLOAT64 = 14  /* 8 bytes, IEEE 754 */
};

/* ---- Limits and times -------------------------------------------------- */

/* Generation 2, kept by the plugin: how long it waits for the result of a batch,
 * counted from the moment its send callback returned IGGY_OK. */
#define IGGY_BATCH_RESULT_TIMEOUT_MS 30000

/* Generation 2, kept by the plugin: this many Nacks in a row end the source. */
#define IGGY_MAX_CONSECUTIVE_NACKS 5

/* Generation 2, kept by the plugin: pause after the first Nack in a row. Each
 * further one doubles it, up to the maximum: 100, 200, 400, 800 ms. */
#define IGGY_NACK_BACKOFF_MS 100
#define IGGY_NACK_BACKOFF_MAX_MS 5000

/* Limits of an Iggy message. The host refuses a message beyond them, so a source
 * should not produce one. An empty payload is refused as well. */
#define IGGY_MAX_PAYLOAD_BYTES 64000000
#define IGGY_MAX_HEADERS_BYTES 100000 /* all headers of one message together */
#define IGGY_MAX_HEADER_BYTES 255     /* one key, or one value */

/* ---- Callbacks of the host --------------------------------------------- */

/*
 * Writes one log record.
 *
 * Thread    Any, several at once: the caller's thread inside any function below,
 *           a thread of the plugin, before `open` returned, after `close` returned.
 * Blocks    Never for long.
 * Pointers  `target` (the module the record comes from, by habit the name of
 *           the plugin) and `message` belong to the plugin and are UTF-8; the
 *           host has copied them on return.
 * Lifetime  The pointer stays callable until the process ends. All instances are
 *           given the same one, so a library may keep the first it gets.
 * Filter    The plugin filters. The process environment holds the host's wish in
 *           RUST_LOG (unset: info); reading it is a courtesy, not a duty.
 */
typedef void iggy_log_fn(uint8_t level, const uint8_t *target, size_t target_len,
                         const uint8_t *message, size_t message_len);

/*
 * Generation 1: hands a batch to the host. There is no answer.
 *
 * Thread    One of the plugin's, one call at a time for one id.
 * Blocks    Yes, while the host has no room: this is the back-pressure of
 *           generation 1. A `close` of the instance lets it return.
 * Pointers  `messages` is one encoded ProducedMessages (wire.md). It belongs to
 *           the plugin and may be reused as soon as the call returned.
 * Lifetime  Callable from `iggy_source_handle` until `close` returns.
 */
typedef void iggy_send_fn(uint32_t id, const uint8_t *messages, size_t messages_len);

/*
 * Generation 2: hands a batch to the host, which will report its fate by
 * `iggy_source_batch_result`.
 *
 * Thread    One of the plugin's, one call at a time for one id.
 * Blocks    Yes, while Iggy cannot be reached. A `close` lets it return.
 * Pointers  As iggy_send_fn.
 * Batch id  1 for the first call of the instance, then one more for each call.
 * Order     Record the batch as pending *before* the call: the result may arrive
 *           on another thread before this function has returned.
 * Lifetime  Callable from `iggy_source_handle_v2` until `close` returns.
 *
 * Returns IGGY_OK: accepted, exactly one result will be reported (unless the
 *           instance is closed first). Anything else: refused, no result
 *           follows, the plugin treats the batch as Nacked.
 */
typedef int32_t iggy_send_v2_fn(uint32_t id, uint64_t batch_id, const uint8_t *messages,
                                size_t messages_len);

/* ---- Functions of a sink ----------------------------------------------- */

/*
 * Creates the sink instance `id` and readies it: connections are made here.
 *
 * Thread    Any of the host's, side by side with calls for other ids.
 * Blocks    Until the instance is ready or has failed.
 * Pointers  `config` is the connector's `plugin_config` as JSON text, UTF-8; a
 *           connector without one gets the four bytes `null`. It belongs to the
 *           host. `log` is never NULL and may be called at once.
 *
 * Returns IGGY_OK       ready for `consume`.
 *         IGGY_FAILED   the configuration was understood, readying failed.
 *                       Only `close` follows; it returns IGGY_OK.
 *         IGGY_INVALID  the configuration is not UTF-8, not JSON or not what
 *                       this plugin takes. Only `close` follows; it returns
 *                       IGGY_INVALID. Or: `id` is in use, then the instance
 *                       that has it is left alone.
 *         The reason of a failure goes to `log` before the call returns.
 */
typedef int32_t iggy_sink_open_fn(uint32_t id, const uint8_t *config, size_t config_len,
                                  iggy_log_fn *log);

/*
 * Consumes one batch: messages of one partition, in the order of their offsets.
 *
 * Thread    Any of the host's. Several calls for one id may run at once, one for
 *           each stream and topic that the connector reads (and for each member
 *           of its consumer group).
 * Blocks    Until the batch is stored or has failed: the host may commit the
 *           offset as soon as it has IGGY_OK, so nothing may be left in a buffer.
 * Pointers  `topic` is one TopicMetadata, `metadata` one MessagesMetadata,
 *           `messages` one RawMessages (wire.md). They belong to the host. The
 *           payloads are in the schema that `metadata` names. Bytes after
 *           a complete value are ignored.
 * Repeats   With `offset_commit = "after_consuming"` a batch that failed comes
 *           again, whole. After a crash of the host a batch that succeeded may
 *           come again too. Stream, topic, partition and offset identify a
 *           message; the message id does unless a producer reuses ids.
 *
 * Returns IGGY_OK       consumed. A message that can never be stored may be
 *                       skipped with a log record.
 *         IGGY_FAILED   not consumed; what was stored of it may stay.
 *         IGGY_INVALID  unknown id, an instance that is not open, or bytes that
 *                       cannot be decoded.
 */
typedef int32_t iggy_sink_consume_fn(uint32_t id, const uint8_t *topic, size_t topic_len,
                                     const uint8_t *metadata, size_t metadata_len,
                                     const uint8_t *messages, size_t messages_len);

/*
 * Ends the sink instance `id` and frees everything it holds.
 *
 * Thread    Any of the host's. A `consume` of the same id that is still running
 *           is waited for; the host does not start a new one.
 * Blocks    Until the instance is gone. Then `id` is free in this library.
 *
 * Returns IGGY_OK       ended; also when the clean-up had troubles, which go to
 *                       the log.
 *         IGGY_INVALID  unknown id, or `open` had returned IGGY_INVALID for it
 *                       (then its place is freed all the same).
 */
typedef int32_t iggy_sink_close_fn(uint32_t id);

/*
 * The version of the plugin's own package, for people to read ("1.4.2"). It says
 * nothing about the ABI; the exported names do.
 *
 * Thread    Any, at any time, also before the first `open`.
 * Blocks    Never.
 * Pointers  The result is a static UTF-8 string of the library with a final NUL,
 *           never NULL, valid until the process ends.
 */
typedef const char *iggy_sink_version_fn(void);

/* ---- Functions of a source, both generations --------------------------- */

/*
 * Creates the source instance `id` and readies it, from where `state` says.
 *
 * As iggy_sink_open_fn, and:
 *
 * Pointers  `state` holds the bytes that the last acknowledged batch of this
 *           connector carried, unchanged. They belong to the host and are opaque
 *           to it. NULL: there is none, start from the beginning. Not NULL with a
 *           length of 0: present but empty, to be taken as a fresh start with
 *           a warning.
 * State     Bytes that cannot be read should not be taken for none, or everything
 *           is produced again: return IGGY_FAILED.
 */
typedef int32_t iggy_source_open_fn(uint32_t id, const uint8_t *config, size_t config_len,
                                    const uint8_t *state, size_t state_len, iggy_log_fn *log);

/*
 * Generation 1: starts producing.
 *
 * The instance produces batches on a thread of its own and hands each one to
 * `send`. When `send` returns, nothing is known about the batch's fate: it is
 * to be taken as sent, there is no way to say otherwise. The host stores the
 * state of a batch only when the batch and all before it have reached Iggy.
 *
 * Thread    Any of the host's. Called at most once for an instance.
 * Blocks    No: starts the thread and returns. `send` may be called before this
 *           function has returned.
 *
 * Returns IGGY_OK       started.
 *         IGGY_FAILED   the thread could not be started.
 *         IGGY_INVALID  unknown id, an instance that is not open, or one that
 *                       was started already.
 */
typedef int32_t iggy_source_handle_fn(uint32_t id, iggy_send_fn *send);

/*
 * Ends the source instance `id` and frees everything it holds.
 *
 * Thread    Any of the host's that is not inside a callback. A batch result of
 *           the same id may arrive meanwhile; it returns IGGY_INVALID.
 * Blocks    Until the producing thread has ended, which must be soon: a poll in
 *           progress is broken off. A batch that waits for its result is treated
 *           as Nacked first. A `send` in progress is waited for, and the host
 *           lets it return.
 * After     No send callback for this id is called once close has returned.
 *
 * Returns as iggy_sink_close_fn.
 */
typedef int32_t iggy_source_close_fn(uint32_t id);

/* As iggy_sink_version_fn. */
typedef const char *iggy_source_version_fn(void);

/* ---- Functions of a source, generation 2 ------------------------------- */

/*
 * Generation 2: starts producing, with one batch in flight at most.
 *
 * The instance produces a batch on a thread of its own, hands it to `send` and
 * does not produce another before it has the result:
 *
 *     Ack       Every message has its outcome and the state that the batch carried
 *               is stored. Go on behind it; the count of Nacks is 0 again.
 *     Nack      Go back: the records of the batch are to be produced again. Pause
 *               as IGGY_NACK_BACKOFF_MS says, then go on. The fifth Nack in
 *               a row ends the producing thread; the instance stays, silent,
 *               until it is closed, and the host learns of it by IGGY_INVALID
 *               from iggy_source_batch_result.
 *
 * A Nack is also: a `send` that did not return IGGY_OK, no result within
 * IGGY_BATCH_RESULT_TIMEOUT_MS, a close while the result is awaited. After
 * a time-out the host may still be sending the batch, so a record can arrive
 * twice: delivery is at least once.
 *
 * A poll that finds nothing need not call `send`. A batch without messages is
 * allowed (to have a new state stored) and has a result like any other.
 *
 * Thread, blocking and result are those of iggy_source_handle_fn. A library that
 * exports both generations is started with this one by every host that knows it.
 */
typedef int32_t iggy_source_handle_v2_fn(uint32_t id, iggy_send_v2_fn *send);

/*
 * Generation 2: reports the fate of a batch, an `enum iggy_batch_result`.
 *
 * Thread    Any of the host's that is not inside a callback; also while `send` of
 *           the same batch is still running, and during `close` of the same id.
 * Blocks    Until the plugin has applied the result. May be called once for one
 *           batch only.
 *
 * Returns IGGY_OK       applied, the source goes on.
 *         IGGY_INVALID  nothing changed: unknown id, no batch pending, or
 *                       another one (a result that came too late). Or the result
 *                       was neither Ack nor Nack, and has been taken as a Nack. Or
 *                       the source has ended: by its fifth Nack in a row, or
 *                       because applying the result failed.
 */
typedef int32_t iggy_source_batch_result_fn(uint32_t id, uint64_t batch_id, uint8_t result);

/* ---- Tables of a host -------------------------------------------------- */

/* What a host knows of a library after it looked the names up. An absent
 * function is NULL. A field is named as its symbol, less `iggy_sink_` or
 * `iggy_source_`. A release that adds a function adds it at the end. */

typedef struct iggy_sink_api {
    iggy_sink_open_fn *open;
    iggy_sink_consume_fn *consume;
    iggy_sink_close_fn *close;
    iggy_sink_version_fn *version; /* a host can do without it */
} iggy_sink_api;

/* A source is of generation 2 when `handle_v2` and `batch_result` are both
 * there, else of generation 1 when `handle` is, else none. */
typedef struct iggy_source_api {
    iggy_source_open_fn *open;
    iggy_source_handle_fn *handle; /* generation 1 */
    iggy_source_close_fn *close;
    iggy_source_version_fn *version; /* a host can do without it */
    iggy_source_handle_v2_fn *handle_v2;       /* generation 2 */
    iggy_source_batch_result_fn *batch_result; /* generation 2 */
} iggy_source_api;

/* ---- What a plugin implements ------------------------------------------ */

/* The prototypes repeat the types above, so that a compiler finds a definition
 * that differs. A sink defines the first four. A source defines open, close and
 * version, and handle, or handle_v2 with batch_result, or all three to run in
 * hosts of either generation. */

IGGY_EXPORT int32_t iggy_sink_open(uint32_t id, const uint8_t *config, size_t config_len,
                                   iggy_log_fn *log);
IGGY_EXPORT int32_t iggy_sink_consume(uint32_t id, const uint8_t *topic, size_t topic_len,
                                      const uint8_t *metadata, size_t metadata_len,
                                      const uint8_t *messages, size_t messages_len);
IGGY_EXPORT int32_t iggy_sink_close(uint32_t id);
IGGY_EXPORT const char *iggy_sink_version(void);

IGGY_EXPORT int32_t iggy_source_open(uint32_t id, const uint8_t *config, size_t config_len,
                                     const uint8_t *state, size_t state_len, iggy_log_fn *log);
IGGY_EXPORT int32_t iggy_source_handle(uint32_t id, iggy_send_fn *send);
IGGY_EXPORT int32_t iggy_source_close(uint32_t id);
IGGY_EXPORT const char *iggy_source_version(void);
IGGY_EXPORT int32_t iggy_source_handle_v2(uint32_t id, iggy_send_v2_fn *send);
IGGY_EXPORT int32_t iggy_source_batch_result(uint32_t id, uint64_t batch_id, uint8_t result);

#ifdef __cplusplus
}
#endif

#endif /* IGGY_CONNECTOR_H */
