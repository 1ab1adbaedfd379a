/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * The bytes that the SDK and its mock host write and read are those of the reference.
 *
 * Usage: golden_test <folder>. GOLDEN_DIR in the environment names another folder; a file
 * that is missing there is skipped.
 */
#include <cjson/cJSON.h>
#include <errno.h>

#include "check.h"
#include "producer.h"
#include "wire.h"

/* ---- Values of the golden files ------------------------------------------- */

/* What one case needs, forgotten with the next. */
static union {
    uint8_t bytes[1 << 20];
    long double aligned;
} arena;
static size_t used;

static void *scratch(size_t size) {
    void *memory = arena.bytes + used;
    used += (size + 15) / 16 * 16;
    CHECK(used <= sizeof arena);
    return memset(memory, 0, size);
}

/* NULL when it is absent. */
static const cJSON *member(const cJSON *object, const char *name) {
    return cJSON_GetObjectItemCaseSensitive(object, name);
}

static bool is_null(const cJSON *value) { return !value || cJSON_IsNull(value); }

/* Texts of cJSON end at a NUL, so the files are read with another character in its place. */
static const char nul_escape[] = "\\u0000", stand_in_escape[] = "\\ue000";
static const char stand_in[] = "\xee\x80\x80";

/* Text may hold NULs; one more ends it. */
static iggy_bytes text_bytes(const cJSON *value) {
    const char *text = cJSON_GetStringValue(value);
    CHECK(text);
    uint8_t *out = scratch(strlen(text) + 1);
    size_t len = 0;
    while (*text) {
        bool nul = strncmp(text, stand_in, 3) == 0;
        out[len++] = nul ? 0 : (uint8_t)*text;
        text += nul ? 3 : 1;
    }
    return (iggy_bytes){out, len};
}

static const char *text_of(const cJSON *value) { return (const char *)text_bytes(value).data; }

static iggy_bytes unhex(const cJSON *value) {
    const char *text = text_of(value);
    size_t len = strlen(text) / 2;
    uint8_t *bytes = scratch(len + 1);
    for (size_t i = 0; i < len; i++) {
        char pair[3] = {text[2 * i], text[2 * i + 1], 0};
        bytes[i] = (uint8_t)strtoul(pair, NULL, 16);
    }
    return (iggy_bytes){bytes, len};
}

static uint64_t decimal(const cJSON *value) { return strtoull(text_of(value), NULL, 10); }

static iggy_u128 decimal128(const cJSON *value) {
    uint64_t limbs[4] = {0, 0, 0, 0}; /* of 32 bits, the lowest first */
    for (const char *digit = text_of(value); *digit; digit++) {
        uint64_t carry = (uint64_t)(*digit - '0');
        for (int i = 0; i < 4; i++) {
            carry += limbs[i] * 10;
            limbs[i] = carry & 0xffffffff;
            carry >>= 32;
        }
    }
    return (iggy_u128){limbs[1] << 32 | limbs[0], limbs[3] << 32 | limbs[2]};
}

static size_t index_of(const cJSON *value, const char *const *names, size_t count) {
    const char *name = text_of(value);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(names[i], name) == 0) return i;
    }
    fprintf(stderr, "unknown name %s\n", name);
    abort();
}

static uint32_t schema_of(const cJSON *value) {
    static const char *const names[] = {"json", "raw", "text", "proto", "flatbuffer", "avro"};
    return (uint32_t)index_of(value, names, 6);
}

static uint8_t kind_of(const cJSON *value) {
    static const char *const names[] = {"raw",    "string", "bool",    "int8",    "int16",
                                        "int32",  "int64",  "int128",  "uint8",   "uint16",
                                        "uint32", "uint64", "uint128", "float32", "float64"};
    return (uint8_t)index_of(value, names, 15);
}

static iggy_header_field field_of(uint8_t kind, iggy_bytes bytes) {
    iggy_header_field field = iggy_header_raw(bytes.data, bytes.len);
    field.kind = kind;
    return field;
}

static size_t length(const cJSON *array) { return (size_t)cJSON_GetArraySize(array); }

/* NULL for null: no headers. */
static iggy_header *headers_of(const cJSON *array, size_t *count) {
    if (is_null(array)) return NULL;
    *count = length(array);
    iggy_header *headers = scratch((*count + 1) * sizeof *headers);
    for (size_t i = 0; i < *count; i++) {
        const cJSON *entry = cJSON_GetArrayItem(array, (int)i);
        const cJSON *key = member(entry, "key"), *value = member(entry, "value");
        headers[i].key = field_of(kind_of(member(key, "kind")), unhex(member(key, "hex")));
        headers[i].value = field_of(kind_of(member(value, "kind")), unhex(member(value, "hex")));
    }
    return headers;
}

/* ---- Each type: from JSON to bytes, and from bytes to bytes ---------------- */

static void encode_uint(const cJSON *value, struct iggy_buffer *out) {
    iggy_sdk_put_uint(out, decimal(value));
}
static void again_u32(iggy_reader *in, struct iggy_buffer *out) {
    iggy_sdk_put_uint(out, iggy_sdk_read_uint(in, 32));
}
static void again_u64(iggy_reader *in, struct iggy_buffer *out) {
    iggy_sdk_put_uint(out, iggy_sdk_read_uint(in, 64));
}
static void encode_u128(const cJSON *value, struct iggy_buffer *out) {
    iggy_sdk_put_u128(out, decimal128(value));
}
static void again_u128(iggy_reader *in, struct iggy_buffer *out) {
    iggy_sdk_put_u128(out, iggy_sdk_read_u128(in));
}

static void put_bytes(struct iggy_buffer *out, iggy_bytes bytes) {
    iggy_sdk_put_bytes(out, bytes.data, bytes.len);
}
static void encode_text(const cJSON *value, struct iggy_buffer *out) {
    put_bytes(out, text_bytes(value));
}
static void again_text(iggy_reader *in, struct iggy_buffer *out) {
    put_bytes(out, iggy_sdk_read_text(in));
}
static void encode_bytes(const cJSON *value, struct iggy_buffer *out) {
    put_bytes(out, unhex(value));
}
static void again_bytes(iggy_reader *in, struct iggy_buffer *out) {
    put_bytes(out, iggy_sdk_read_bytes(in));
}

static void encode_schema(const cJSON *value, struct iggy_buffer *out) {
    iggy_sdk_put_uint(out, schema_of(value));
}
static void again_schema(iggy_reader *in, struct iggy_buffer *out) {
    iggy_sdk_put_uint(out, iggy_sdk_read_schema(in));
}
static void encode_kind(const cJSON *value, struct iggy_buffer *out) {
    iggy_sdk_put_uint(out, kind_of(value));
}
static void again_kind(iggy_reader *in, struct iggy_buffer *out) {
    iggy_sdk_put_uint(out, iggy_sdk_read_header_kind(in));
}

static void put_headers(struct iggy_buffer *out, const iggy_header *headers, size_t count) {
    struct iggy_buffer order = {0};
    iggy_sdk_put_headers(out, &order, headers, count);
    iggy_sdk_buffer_free(&order);
}
static void encode_headers(const cJSON *value, struct iggy_buffer *out) {
    size_t count = 0;
    const iggy_header *headers = headers_of(value, &count);
    put_headers(out, headers, count);
}
static void again_headers(iggy_reader *in, struct iggy_buffer *out) {
    iggy_header *headers;
    size_t count = iggy_mock_read_headers(in, &headers);
    put_headers(out, headers, count);
    free(headers);
}

static void encode_topic(const cJSON *value, struct iggy_buffer *out) {
    iggy_mock_put_topic_metadata(out, (iggy_topic_metadata){text_bytes(member(value, "stream")),
                                                            text_bytes(member(value, "topic"))});
}
static void again_topic(iggy_reader *in, struct iggy_buffer *out) {
    iggy_mock_put_topic_metadata(out, iggy_read_topic_metadata(in));
}
static void encode_metadata(const cJSON *value, struct iggy_buffer *out) {
    iggy_mock_put_messages_metadata(
        out, (iggy_messages_metadata){(uint32_t)decimal(member(value, "partition_id")),
                                      decimal(member(value, "current_offset")),
                                      schema_of(member(value, "schema"))});
}
static void again_metadata(iggy_reader *in, struct iggy_buffer *out) {
    iggy_mock_put_messages_metadata(out, iggy_read_messages_metadata(in));
}

static void encode_raw_message(const cJSON *value, struct iggy_buffer *out) {
    size_t count = 0;
    struct iggy_buffer headers = {0};
    const iggy_header *list = headers_of(member(value, "headers"), &count);
    if (list) put_headers(&headers, list, count);
    iggy_message message = {
        .id = decimal128(member(value, "id")),
        .offset = decimal(member(value, "offset")),
        .checksum = decimal(member(value, "checksum")),
        .timestamp = decimal(member(value, "timestamp")),
        .origin_timestamp = decimal(member(value, "origin_timestamp")),
        .headers = {headers.data, headers.len},
        .payload = unhex(member(value, "payload")),
    };
    iggy_mock_put_raw_message(out, &message);
    iggy_sdk_buffer_free(&headers);
}
static void again_raw_message(iggy_reader *in, struct iggy_buffer *out) {
    iggy_message message = iggy_sdk_read_message(in);
    iggy_mock_put_raw_message(out, &message);
}
static void encode_raw_messages(const cJSON *value, struct iggy_buffer *out) {
    const cJSON *messages = member(value, "messages"), *message;
    iggy_sdk_put_uint(out, schema_of(member(value, "schema")));
    iggy_sdk_put_uint(out, length(messages));
    cJSON_ArrayForEach(message, messages) encode_raw_message(message, out);
}
static void again_raw_messages(iggy_reader *in, struct iggy_buffer *out) {
    iggy_messages messages = iggy_read_messages(in);
    iggy_message message;
    iggy_sdk_put_uint(out, messages.schema);
    iggy_sdk_put_uint(out, messages.count);
    while (iggy_next_message(&messages, &message)) iggy_mock_put_raw_message(out, &message);
    CHECK(in->failed || (!messages.rest.failed && messages.rest.at == in->at));
}

static bool option64_of(const cJSON *value, uint64_t *number) {
    if (is_null(value)) return false;
    *number = decimal(value);
    return true;
}
static iggy_produced_message produced_of(const cJSON *value) {
    iggy_produced_message message = {0};
    iggy_bytes payload = unhex(member(value, "payload"));
    message.has_id = !is_null(member(value, "id"));
    if (message.has_id) message.id = decimal128(member(value, "id"));
    message.has_checksum = option64_of(member(value, "checksum"), &message.checksum);
    message.has_timestamp = option64_of(member(value, "timestamp"), &message.timestamp);
    message.has_origin_timestamp =
        option64_of(member(value, "origin_timestamp"), &message.origin_timestamp);
    message.headers = headers_of(member(value, "headers"), &message.header_count);
    message.payload = payload.data;
    message.payload_len = payload.len;
    return message;
}
static void put_produced(struct iggy_buffer *out, const iggy_produced_message *message) {
    struct iggy_buffer order = {0};
    iggy_sdk_put_produced(out, &order, message);
    iggy_sdk_buffer_free(&order);
}
static void encode_produced(const cJSON *value, struct iggy_buffer *out) {
    iggy_produced_message message = produced_of(value);
    put_produced(out, &message);
}
static void again_produced(iggy_reader *in, struct iggy_buffer *out) {
    iggy_produced_message message = iggy_mock_read_produced(in);
    put_produced(out, &message);
    free((void *)message.headers);
}

static void finish(iggy_producer *producer, struct iggy_buffer *out) {
    iggy_bytes bytes = iggy_sdk_producer_finish(producer);
    if (producer->fault) fprintf(stderr, "%s\n", producer->fault);
    CHECK(!producer->fault);
    iggy_sdk_buffer_append(out, bytes.data, bytes.len);
    iggy_sdk_producer_free(producer);
}
static void encode_batch(const cJSON *value, struct iggy_buffer *out) {
    const cJSON *messages = member(value, "messages"), *message;
    iggy_producer producer = {0};
    iggy_sdk_producer_reset(&producer);
    iggy_produce_schema(&producer, (enum iggy_schema)schema_of(member(value, "schema")));
    cJSON_ArrayForEach(message, messages) {
        iggy_produced_message produced = produced_of(message);
        iggy_sdk_producer_append(&producer, &produced); /* empty payloads are among them */
    }
    if (!is_null(member(value, "state"))) {
        iggy_bytes state = unhex(member(value, "state"));
        iggy_produce_state(&producer, state.data, state.len);
    }
    finish(&producer, out);
}
static void again_batch(iggy_reader *in, struct iggy_buffer *out) {
    iggy_mock_produced batch = iggy_mock_read_batch(in);
    iggy_producer producer = {0};
    iggy_sdk_producer_reset(&producer);
    if (!in->failed) {
        iggy_produce_schema(&producer, (enum iggy_schema)batch.schema);
        for (size_t i = 0; i < batch.count; i++)
            iggy_sdk_producer_append(&producer, &batch.messages[i]);
        if (batch.has_state) iggy_produce_state(&producer, batch.state.data, batch.state.len);
    }
    finish(&producer, out);
    iggy_mock_free_produced(&batch);
}

static const struct type {
    const char *name;
    void (*encode)(const cJSON *value, struct iggy_buffer *out);
    void (*again)(iggy_reader *in, struct iggy_buffer *out); /* decodes, and encodes what it got */
} types[] = {
    {"u32", encode_uint, again_u32},
    {"u64", encode_uint, again_u64},
    {"u128", encode_u128, again_u128},
    {"String", encode_text, again_text},
    {"bytes", encode_bytes, again_bytes},
    {"ConnectorState", encode_bytes, again_bytes},
    {"Schema", encode_schema, again_schema},
    {"HeaderKind", encode_kind, again_kind},
    {"Headers", encode_headers, again_headers},
    {"TopicMetadata", encode_topic, again_topic},
    {"MessagesMetadata", encode_metadata, again_metadata},
    {"RawMessage", encode_raw_message, again_raw_message},
    {"RawMessages", encode_raw_messages, again_raw_messages},
    {"ProducedMessage", encode_produced, again_produced},
    {"ProducedMessages", encode_batch, again_batch},
};

/* Finds a type; "Option<u64>" is the type u64, and optional. */
static const struct type *type_named(const char *name, bool *optional) {
    *optional = strncmp(name, "Option<", 7) == 0;
    if (*optional) name += 7;
    size_t len = strcspn(name, ">");
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (strlen(types[i].name) == len && strncmp(types[i].name, name, len) == 0)
            return &types[i];
    }
    fprintf(stderr, "no such type: %s\n", name);
    abort();
}

static void encode(const char *type_name, const cJSON *value, struct iggy_buffer *out) {
    bool optional, present = !is_null(value);
    const struct type *type = type_named(type_name, &optional);
    if (optional) iggy_sdk_buffer_byte(out, present);
    if (!optional || present) type->encode(value, out);
}

static void again(const char *type_name, iggy_reader *in, struct iggy_buffer *out) {
    bool optional;
    const struct type *type = type_named(type_name, &optional);
    bool present = optional && iggy_sdk_read_option(in);
    if (optional) iggy_sdk_buffer_byte(out, present);
    if (!optional || present) type->again(in, out);
}

/* ---- Cases ---------------------------------------------------------------- */

static void expect_bytes(const struct iggy_buffer *got, iggy_bytes want) {
    CHECK(!got->failed);
    CHECK_EQUAL(got->len, want.len);
    CHECK(want.len == 0 || memcmp(got->data, want.data, want.len) == 0);
}

/* Over an allocation of exactly that size, so that a sanitizer sees a step beyond it. */
static iggy_reader exact_reader(iggy_bytes bytes, uint8_t **copy) {
    *copy = malloc(bytes.len ? bytes.len : 1);
    CHECK(*copy);
    memcpy(*copy, bytes.data, bytes.len);
    return iggy_reader_over(*copy, bytes.len);
}

static void encodes_as_the_reference(const cJSON *value, const char *type, iggy_bytes want) {
    struct iggy_buffer out = {0}, round = {0};
    uint8_t *copy;
    encode(type, value, &out);
    expect_bytes(&out, want);

    iggy_reader reader = exact_reader(want, &copy);
    again(type, &reader, &round);
    CHECK(!reader.failed && reader.at == reader.end);
    expect_bytes(&round, want);
    iggy_sdk_buffer_free(&out);
    iggy_sdk_buffer_free(&round);
    free(copy);
}

static void decodes_as_the_reference(const cJSON *expected, const char *type, iggy_bytes bytes) {
    struct iggy_buffer out = {0}, want = {0};
    uint8_t *copy;
    bool ok = strcmp(text_of(member(expected, "status")), "ok") == 0;
    iggy_reader reader = exact_reader(bytes, &copy);
    again(type, &reader, &out);
    CHECK(reader.failed == !ok);
    if (ok) {
        const cJSON *trailing = member(expected, "trailing_bytes");
        CHECK(cJSON_IsNumber(trailing));
        CHECK_EQUAL(reader.end - reader.at, trailing->valuedouble);
        encode(type, member(expected, "value"), &want);
        expect_bytes(&out, (iggy_bytes){want.data, want.len});
    }
    iggy_sdk_buffer_free(&out);
    iggy_sdk_buffer_free(&want);
    free(copy);
}

static void postcard_case(const cJSON *test) {
    const char *type = text_of(member(test, "type"));
    iggy_bytes bytes = unhex(member(test, "hex"));
    if (strcmp(text_of(member(test, "op")), "pc_encode") == 0) {
        encodes_as_the_reference(member(test, "value"), type, bytes);
    } else {
        decodes_as_the_reference(member(test, "expected"), type, bytes);
    }
}

static void generation_case(const cJSON *test) {
    static const char *const current[] = {"hex_iggy_common_0_9_0", "hex_iggy_common_0_10_0",
                                          "hex_iggy_common_0_11_0_edge_4"};
    iggy_bytes value = unhex(member(test, "value_hex"));
    iggy_header header = {iggy_header_string(text_of(member(test, "key"))),
                          field_of(kind_of(member(test, "value_kind")), value)};
    for (int i = 0; i < 3; i++) {
        iggy_bytes want = unhex(member(test, current[i]));
        iggy_message message = {.headers = want};
        iggy_header_field found;
        struct iggy_buffer out = {0};
        put_headers(&out, &header, 1);
        expect_bytes(&out, want);
        iggy_sdk_buffer_free(&out);
        CHECK(iggy_find_header(&message, text_of(member(test, "key")), &found));
        CHECK_EQUAL(found.kind, header.value.kind);
        CHECK_EQUAL(found.len, value.len);
        CHECK(memcmp(found.data, value.data, value.len) == 0);
    }
    const cJSON *accepts = member(test, "newer_decoder_accepts_0_8_0_bytes");
    CHECK(cJSON_IsBool(accepts));
    bool accepted = cJSON_IsTrue(accepts);
    iggy_bytes old = unhex(member(test, "hex_iggy_common_0_8_0"));
    iggy_reader reader = iggy_reader_over(old.data, old.len);
    iggy_header *headers;
    (void)iggy_mock_read_headers(&reader, &headers);
    CHECK(reader.failed == !accepted);
    free(headers);
}

/* ---- Files ---------------------------------------------------------------- */

/* NULL: there is none. */
static cJSON *load(const char *folder, const char *name) {
    struct iggy_buffer text = {0};
    char path[4096], piece[65536];
    CHECK(snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path);
    FILE *file = fopen(path, "rb");
    if (!file && errno == ENOENT) return NULL;
    CHECK(file);
    for (size_t len; (len = fread(piece, 1, sizeof piece, file)) > 0;) {
        iggy_sdk_buffer_append(&text, piece, len);
    }
    CHECK(!ferror(file));
    fclose(file);
    iggy_sdk_buffer_byte(&text, 0);
    CHECK(!text.failed);
    for (char *at = (char *)text.data; (at = strstr(at, nul_escape));) {
        memcpy(at, stand_in_escape, strlen(stand_in_escape));
    }
    cJSON *cases = cJSON_Parse((char *)text.data);
    CHECK(cases);
    iggy_sdk_buffer_free(&text);
    return cases;
}

static size_t run(const char *folder, const char *name, void (*run_case)(const cJSON *)) {
    cJSON *cases = load(folder, name), *test;
    size_t count = 0;
    if (!cases) return 0;
    cJSON_ArrayForEach(test, cases) {
        used = 0;
        fprintf(stderr, "%s\n", text_of(member(test, "name"))); /* shown after a failure */
        run_case(test);
        count++;
    }
    printf("%s: %zu cases\n", name, count);
    CHECK(count > 0);
    cJSON_Delete(cases);
    return count;
}

int main(int argc, char **argv) {
    const char *other = getenv("GOLDEN_DIR");
    bool elsewhere = other && *other;
    CHECK_EQUAL(argc, 2);
    const char *folder = elsewhere ? other : argv[1];
    size_t postcard = run(folder, "postcard.json", postcard_case);
    size_t headers = run(folder, "headers_by_generation.json", generation_case);
    CHECK(elsewhere || (postcard > 0 && headers > 0));
    if (postcard + headers > 0) return 0;
    fprintf(stderr, "no golden file in %s\n", folder);
    return 1;
}
