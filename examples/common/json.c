/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

#include "json.h"

#include <string.h>

enum { MAX_DEPTH = 1024 };

/* A scanner over text that may be anything; a step that does not fit returns false. */
struct scan {
    const char *at;
    const char *end;
};

static bool scan_value(struct scan *s, int depth);

static void skip_space(struct scan *s) {
    while (s->at < s->end &&
           (*s->at == ' ' || *s->at == '\t' || *s->at == '\n' || *s->at == '\r')) {
        s->at++;
    }
}

static bool take(struct scan *s, char c) {
    if (s->at == s->end || *s->at != c) return false;
    s->at++;
    return true;
}

static int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

static bool is_digit(struct scan *s) {
    return s->at < s->end && *s->at >= '0' && *s->at <= '9';
}

static bool scan_escape(struct scan *s) {
    if (s->at == s->end) return false;
    char c = *s->at++;
    if (c != 'u') return c != '\0' && strchr("\"\\/bfnrt", c);
    for (int i = 0; i < 4; i++) {
        if (s->at == s->end || hex_digit(*s->at++) < 0) return false;
    }
    return true;
}

static bool scan_string(struct scan *s) {
    if (!take(s, '"')) return false;
    while (s->at < s->end && *s->at != '"') {
        unsigned char c = (unsigned char)*s->at++;
        if (c < 0x20) return false;
        if (c == '\\' && !scan_escape(s)) return false;
    }
    return take(s, '"');
}

static bool scan_digits(struct scan *s) {
    if (!is_digit(s)) return false;
    while (is_digit(s)) s->at++;
    return true;
}

static bool scan_number(struct scan *s) {
    take(s, '-');
    if (!take(s, '0') && !scan_digits(s)) return false;
    if (take(s, '.') && !scan_digits(s)) return false;
    if (take(s, 'e') || take(s, 'E')) {
        if (!take(s, '+')) take(s, '-');
        return scan_digits(s);
    }
    return true;
}

static bool scan_word(struct scan *s, const char *word) {
    size_t len = strlen(word);
    if ((size_t)(s->end - s->at) < len || memcmp(s->at, word, len) != 0) return false;
    s->at += len;
    return true;
}

static bool scan_array(struct scan *s, int depth) {
    s->at++;
    skip_space(s);
    if (take(s, ']')) return true;
    do {
        if (!scan_value(s, depth)) return false;
    } while (take(s, ','));
    return take(s, ']');
}

static bool scan_object(struct scan *s, int depth) {
    s->at++;
    skip_space(s);
    if (take(s, '}')) return true;
    do {
        skip_space(s);
        if (!scan_string(s)) return false;
        skip_space(s);
        if (!take(s, ':')) return false;
        if (!scan_value(s, depth)) return false;
    } while (take(s, ','));
    return take(s, '}');
}

/* Scans one value with the white space around it. */
static bool scan_value(struct scan *s, int depth) {
    if (depth == MAX_DEPTH) return false;
    skip_space(s);
    if (s->at == s->end) return false;
    bool ok;
    switch (*s->at) {
    case '{': ok = scan_object(s, depth + 1); break;
    case '[': ok = scan_array(s, depth + 1); break;
    case '"': ok = scan_string(s); break;
    case 't': ok = scan_word(s, "true"); break;
    case 'f': ok = scan_word(s, "false"); break;
    case 'n': ok = scan_word(s, "null"); break;
    default: ok = scan_number(s); break;
    }
    if (ok) skip_space(s);
    return ok;
}

/* Takes the value at `s`, which is known to be sound, without its white space. */
static struct json next_value(struct scan *s) {
    skip_space(s);
    struct json value = {s->at, 0};
    scan_value(s, 0);
    value.len = (size_t)(s->at - value.text);
    while (value.len > 0 && strchr(" \t\n\r", value.text[value.len - 1])) value.len--;
    return value;
}

bool json_parse(const uint8_t *bytes, size_t len, struct json *value) {
    if (len == 0 || !utf8_valid(bytes, len)) return false;
    const char *text = (const char *)bytes;
    struct scan s = {text, text + len};
    if (!scan_value(&s, 0) || s.at != s.end) return false;
    s.at = text;
    *value = next_value(&s);
    return true;
}

bool json_is_object(struct json value) {
    return value.text[0] == '{';
}

bool json_is_null(struct json value) {
    return value.text[0] == 'n';
}

bool json_member(struct json object, const char *name, struct json *value) {
    if (!json_is_object(object)) return false;
    struct scan s = {object.text + 1, object.text + object.len};
    struct buffer key = {0};
    bool found = false;
    skip_space(&s);
    if (take(&s, '}')) return false;
    do {
        struct json member_name = next_value(&s);
        take(&s, ':');
        struct json member = next_value(&s);
        skip_space(&s);
        buffer_reset(&key);
        if (json_string(member_name, &key) && key.len == strlen(name) &&
            memcmp(key.bytes, name, key.len) == 0) {
            *value = member;
            found = true;
        }
    } while (take(&s, ','));
    buffer_free(&key);
    return found;
}

bool json_element(struct json array, size_t index, struct json *value) {
    if (array.text[0] != '[') return false;
    struct scan s = {array.text + 1, array.text + array.len};
    skip_space(&s);
    if (take(&s, ']')) return false;
    do {
        *value = next_value(&s);
        if (index-- == 0) return true;
        skip_space(&s);
    } while (take(&s, ','));
    return false;
}

bool json_bool(struct json value, bool *out) {
    if (value.text[0] != 't' && value.text[0] != 'f') return false;
    *out = value.text[0] == 't';
    return true;
}

bool json_uint(struct json value, uint64_t *out) {
    uint64_t sum = 0;
    for (size_t i = 0; i < value.len; i++) {
        if (value.text[i] < '0' || value.text[i] > '9') return false;
        uint64_t digit = (uint64_t)(value.text[i] - '0');
        if (sum > (UINT64_MAX - digit) / 10) return false;
        sum = sum * 10 + digit;
    }
    *out = sum;
    return true;
}

static uint32_t hex4(const char *digits) {
    uint32_t value = 0;
    for (int i = 0; i < 4; i++) value = value << 4 | (uint32_t)hex_digit(digits[i]);
    return value;
}

static void put_utf8(struct buffer *out, uint32_t c) {
    if (c < 0x80) {
        buffer_byte(out, (uint8_t)c);
        return;
    }
    int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
    static const uint8_t lead[] = {0, 0xc0, 0xe0, 0xf0};
    buffer_byte(out, (uint8_t)(lead[more] | c >> (6 * more)));
    while (more-- > 0) buffer_byte(out, (uint8_t)(0x80 | (c >> (6 * more) & 0x3f)));
}

/* Appends the character behind \u and returns where the text goes on. */
static const char *unescape_unicode(const char *at, const char *end, struct buffer *out) {
    uint32_t c = hex4(at);
    at += 4;
    if (c >= 0xd800 && c < 0xdc00 && end - at >= 6 && at[0] == '\\' && at[1] == 'u') {
        uint32_t low = hex4(at + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
            at += 6;
        }
    }
    put_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : c); /* half a pair: replaced */
    return at;
}

bool json_string(struct json value, struct buffer *out) {
    if (value.text[0] != '"') return false;
    const char *at = value.text + 1, *end = value.text + value.len - 1;
    while (at < end) {
        char c = *at++;
        if (c != '\\') {
            buffer_byte(out, (uint8_t)c);
            continue;
        }
        c = *at++;
        switch (c) {
        case 'b': buffer_byte(out, '\b'); break;
        case 'f': buffer_byte(out, '\f'); break;
        case 'n': buffer_byte(out, '\n'); break;
        case 'r': buffer_byte(out, '\r'); break;
        case 't': buffer_byte(out, '\t'); break;
        case 'u': at = unescape_unicode(at, end, out); break;
        default: buffer_byte(out, (uint8_t)c); break;
        }
    }
    return !out->failed;
}

bool utf8_valid(const uint8_t *bytes, size_t len) {
    for (size_t i = 0; i < len;) {
        uint8_t c = bytes[i++];
        if (c < 0x80) continue;
        int more = c >= 0xf0 ? 3 : c >= 0xe0 ? 2 : 1;
        if (c < 0xc2 || c > 0xf4 || len - i < (size_t)more) return false;
        /* The byte after these leads is limited: no over-long form, no half of
         * a surrogate pair, nothing above U+10FFFF. */
        uint8_t low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
        uint8_t high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
        if (bytes[i] < low || bytes[i] > high) return false;
        for (int k = 1; k < more; k++) {
            if ((bytes[i + (size_t)k] & 0xc0) != 0x80) return false;
        }
        i += (size_t)more;
    }
    return true;
}

void json_put_string(struct buffer *out, const uint8_t *text, size_t len) {
    buffer_byte(out, '"');
    size_t plain = 0; /* start of the run that needs no escape */
    for (size_t i = 0; i < len; i++) {
        uint8_t c = text[i];
        if (c >= 0x20 && c != '"' && c != '\\') continue;
        buffer_append(out, text + plain, i - plain);
        plain = i + 1;
        switch (c) {
        case '"': buffer_text(out, "\\\""); break;
        case '\\': buffer_text(out, "\\\\"); break;
        case '\n': buffer_text(out, "\\n"); break;
        case '\r': buffer_text(out, "\\r"); break;
        case '\t': buffer_text(out, "\\t"); break;
        default: buffer_printf(out, "\\u%04x", c); break;
        }
    }
    buffer_append(out, text + plain, len - plain);
    buffer_byte(out, '"');
}

void json_put_base64(struct buffer *out, const uint8_t *bytes, size_t len) {
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    buffer_byte(out, '"');
    for (size_t i = 0; i < len; i += 3) {
        size_t rest = len - i;
        uint32_t bits = (uint32_t)bytes[i] << 16 | (rest > 1 ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (rest > 2 ? bytes[i + 2] : 0);
        char four[4] = {digits[bits >> 18], digits[bits >> 12 & 63],
                        rest > 1 ? digits[bits >> 6 & 63] : '=',
                        rest > 2 ? digits[bits & 63] : '='};
        buffer_append(out, four, sizeof four);
    }
    buffer_byte(out, '"');
}

void json_put_compact(struct buffer *out, struct json value) {
    struct scan s = {value.text, value.text + value.len};
    while (s.at < s.end) {
        const char *from = s.at;
        if (*s.at == '"') scan_string(&s);
        else while (s.at < s.end && !strchr("\" \t\n\r", *s.at)) s.at++;
        buffer_append(out, from, (size_t)(s.at - from));
        skip_space(&s);
    }
}
