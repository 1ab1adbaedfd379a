/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * What file_source promises beyond the contract: every line once, in order, through
 * growth, rotation of all kinds, failed batches and restarts.
 *
 * Usage: file_source_test <library> <impatient library> <slow library> [seed]
 * The second has a short result time-out, the third pauses between its system calls.
 * With a seed only the random tests run.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "host.h"
#include "syscalls.h"

static iggy_source_api api;
static uint32_t last_id;

/* One source on one file, and the state that a host would have stored. */
struct fixture {
    uint32_t id;
    uint64_t batch_id;
    char *path;
    char config[256];
    uint8_t *state;
    size_t state_len;
};

static void open_fixture(struct fixture *f) {
    f->id = ++last_id;
    CHECK_EQUAL(api.open(f->id, (const uint8_t *)f->config, strlen(f->config), f->state,
                         f->state_len, host_log),
                IGGY_OK);
    CHECK_EQUAL(api.handle_v2(f->id, host_send_v2), IGGY_OK);
    f->batch_id = 0;
}

static struct fixture new_fixture(const char *options) {
    static int files;
    char name[32];
    struct fixture f = {0};
    snprintf(name, sizeof name, "%d.log", ++files);
    f.path = host_path(name);
    snprintf(f.config, sizeof f.config, "{\"path\":\"%s\",\"poll_interval_ms\":5%s}", f.path,
             options);
    return f;
}

static struct fixture started(const char *options) {
    struct fixture f = new_fixture(options);
    open_fixture(&f);
    return f;
}

static void close_source(struct fixture *f) {
    CHECK_EQUAL(api.close(f->id), IGGY_OK);
    for (struct host_batch *late; (late = host_next_batch_within(0));) host_free_batch(late);
}

static void restart(struct fixture *f) {
    close_source(f);
    open_fixture(f);
}

static void end(struct fixture *f) {
    close_source(f);
    free(f->path);
    free(f->state);
}

static void settle(struct fixture *f, struct host_batch *batch, bool ack) {
    CHECK_EQUAL(batch->batch_id, ++f->batch_id);
    CHECK_EQUAL(api.batch_result(f->id, batch->batch_id, ack ? IGGY_BATCH_ACK : IGGY_BATCH_NACK),
                IGGY_OK);
    if (!ack) return;
    free(f->state);
    f->state = batch->state;
    f->state_len = batch->state_len;
    batch->state = NULL;
}

/* Awaits exactly these lines, given with a line feed after each, in any batches. */
static void expect_lines(struct fixture *f, const char *lines) {
    while (*lines) {
        struct host_batch *batch = host_next_batch();
        if (!batch) fprintf(stderr, "awaited: %.200s\n", lines);
        CHECK(batch);
        for (size_t i = 0; i < batch->count; i++) {
            size_t len = strcspn(lines, "\n");
            char *want = strndup(lines, len);
            CHECK_TEXT(batch->payloads[i], want);
            free(want);
            lines += len + 1;
        }
        settle(f, batch, true);
        host_free_batch(batch);
    }
}

static void expect_nothing(void) { CHECK(!host_next_batch_within(80)); }

static char *beside(const struct fixture *f, const char *suffix) {
    size_t size = strlen(f->path) + strlen(suffix) + 1;
    char *path = malloc(size);
    CHECK(path);
    snprintf(path, size, "%s%s", f->path, suffix);
    return path;
}

static void rename_to(const struct fixture *f, const char *suffix) {
    char *to = beside(f, suffix);
    CHECK_EQUAL(rename(f->path, to), 0);
    free(to);
}

static void copy_to(const struct fixture *f, const char *suffix) {
    char *to = beside(f, suffix), *text = host_read_file(f->path);
    host_write_file(to, text);
    free(to);
    free(text);
}

/* ---- Lines -------------------------------------------------------------------- */

static void lines_arrive_in_order_as_the_file_grows(void) {
    struct fixture f = new_fixture("");
    host_write_file(f.path, "one\ntwo\n");
    open_fixture(&f);
    expect_lines(&f, "one\ntwo\n");
    host_append_file(f.path, "three\n");
    expect_lines(&f, "three\n");
    expect_nothing();
    end(&f);
}

static void file_may_appear_later(void) {
    struct fixture f = started("");
    CHECK(host_logged("waiting for"));
    expect_nothing();
    host_write_file(f.path, "here\n");
    expect_lines(&f, "here\n");
    end(&f);
}

static void line_is_sent_when_it_is_complete(void) {
    struct fixture f = started("");
    host_write_file(f.path, "whole\nha");
    expect_lines(&f, "whole\n");
    expect_nothing();
    host_append_file(f.path, "lf");
    expect_nothing();
    host_append_file(f.path, "\n");
    expect_lines(&f, "half\n");
    end(&f);
}

static void carriage_returns_and_empty_lines_are_dropped(void) {
    struct fixture f = started("");
    host_write_file(f.path, "\r\n\n\n");
    expect_nothing();
    host_append_file(f.path, "a\r\n\n\r\nb\rc\n\n");
    expect_lines(&f, "a\nb\rc\n");
    expect_nothing();
    end(&f);
}

static void batch_has_batch_length_lines_at_most(void) {
    struct fixture f = new_fixture(",\"batch_length\":2");
    host_write_file(f.path, "1\n2\n\n3\n4\n5\n");
    open_fixture(&f);
    static const size_t counts[] = {2, 2, 1};
    for (size_t i = 0; i < 3; i++) {
        struct host_batch *batch = host_next_batch();
        CHECK(batch);
        CHECK_EQUAL(batch->count, counts[i]);
        settle(&f, batch, true);
        host_free_batch(batch);
    }
    end(&f);
}

static void long_lines_are_whole(void) {
    enum { LENGTH = 3 * 1024 * 1024 + 17 };
    struct fixture f = started("");
    char *text = malloc(LENGTH + 8);
    CHECK(text);
    memset(text, 'x', LENGTH);
    strcpy(text + LENGTH, "\nend\n");
    host_write_file(f.path, text);
    expect_lines(&f, text);
    free(text);
    end(&f);
}

static void line_that_no_message_can_hold_is_skipped(void) {
    struct fixture f = new_fixture("");
    host_write_file(f.path, "before\n");
    int file = open(f.path, O_WRONLY | O_APPEND);
    CHECK(file >= 0);
    CHECK_EQUAL(ftruncate(file, 7 + 2 * (off_t)IGGY_MAX_PAYLOAD_BYTES), 0); /* a line of NULs */
    CHECK_EQUAL(close(file), 0);
    host_append_file(f.path, "tail\nafter\n");
    open_fixture(&f);
    expect_lines(&f, "before\nafter\n");
    CHECK(host_logged("longer than"));
    end(&f);
}

static void schema_is_the_configured_one(void) {
    static const struct {
        const char *option;
        uint32_t schema;
    } cases[] = {{"", IGGY_SCHEMA_TEXT},
                 {",\"schema\":\"text\"", IGGY_SCHEMA_TEXT},
                 {",\"schema\":\"json\"", IGGY_SCHEMA_JSON},
                 {",\"schema\":\"raw\"", IGGY_SCHEMA_RAW}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fixture f = new_fixture(cases[i].option);
        host_write_file(f.path, "{}\n");
        open_fixture(&f);
        struct host_batch *batch = host_next_batch();
        CHECK(batch);
        CHECK_EQUAL(batch->schema, cases[i].schema);
        host_free_batch(batch);
        end(&f);
    }
}

static void from_end_skips_what_is_there(void) {
    struct fixture f = new_fixture(",\"from\":\"end\"");
    host_write_file(f.path, "old\nolder\nhal");
    open_fixture(&f);
    expect_nothing();
    host_append_file(f.path, "f\nnew\n");
    expect_lines(&f, "half\nnew\n");
    restart(&f);
    host_append_file(f.path, "newer\n");
    expect_lines(&f, "newer\n");
    end(&f);
}

static void bad_options_are_named(void) {
    static const struct {
        const char *config, *named;
    } cases[] = {
        {"null", "path is missing"},
        {"{\"path\":\"\"}", "path"},
        {"{\"path\":[\"x\"]}", "path is [\"x\"]"},
        {"{\"path\":\"/tmp/x\",\"batch_length\":0}", "batch_length is 0"},
        {"{\"path\":\"/tmp/x\",\"poll_interval_ms\":\"5ms\"}", "poll_interval_ms"},
        {"{\"path\":\"/tmp/x\",\"schema\":\"xml\"}", "schema is \"xml\""},
        {"{\"path\":\"/tmp/x\",\"from\":1}", "from is 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint32_t id = ++last_id;
        CHECK_EQUAL(host_open_source(&api, id, cases[i].config), IGGY_INVALID);
        CHECK(host_logged(cases[i].named));
        CHECK_EQUAL(api.close(id), IGGY_INVALID);
    }
}

static void path_that_is_no_file_fails_to_open(void) {
    char config[128];
    snprintf(config, sizeof config, "{\"path\":\"%s\"}", host_directory());
    uint32_t id = ++last_id;
    CHECK_EQUAL(host_open_source(&api, id, config), IGGY_FAILED);
    CHECK(host_logged("not a regular file"));
    CHECK_EQUAL(api.close(id), IGGY_OK);
}

/* ---- Delivery ------------------------------------------------------------------ */

static void nacked_lines_come_again(void) {
    struct fixture f = new_fixture(",\"batch_length\":2");
    host_write_file(f.path, "1\n2\n3\n");
    open_fixture(&f);
    for (int round = 0; round < 2; round++) {
        struct host_batch *batch = host_next_batch();
        CHECK(batch);
        CHECK_EQUAL(batch->count, 2);
        CHECK_TEXT(batch->payloads[0], "1");
        CHECK_TEXT(batch->payloads[1], "2");
        settle(&f, batch, false);
        host_free_batch(batch);
    }
    expect_lines(&f, "1\n2\n3\n");
    end(&f);
}

static void missing_result_makes_them_come_again(const char *impatient) {
    iggy_source_api patient = api;
    api = host_load_source(impatient);
    struct fixture f = new_fixture("");
    host_write_file(f.path, "1\n2\n");
    open_fixture(&f);
    struct host_batch *first = host_next_batch();
    CHECK(first);
    f.batch_id = first->batch_id;
    struct host_batch *again = host_next_batch();
    CHECK(again && again->batch_id == 2);
    CHECK(host_logged("no result in time"));
    CHECK_TEXT(again->payloads[0], "1");
    CHECK_EQUAL(api.batch_result(f.id, 1, IGGY_BATCH_ACK), IGGY_INVALID); /* too late */
    settle(&f, again, true);
    host_free_batch(first);
    host_free_batch(again);
    end(&f);
    api = patient;
}

static void restart_repeats_only_what_was_not_acknowledged(void) {
    struct fixture f = new_fixture(",\"batch_length\":1");
    host_write_file(f.path, "1\n2\n3\n");
    open_fixture(&f);
    expect_lines(&f, "1\n");
    struct host_batch *batch = host_next_batch(); /* never acknowledged */
    CHECK(batch);
    CHECK_TEXT(batch->payloads[0], "2");
    host_free_batch(batch);
    restart(&f);
    expect_lines(&f, "2\n3\n");
    restart(&f);
    expect_nothing();
    end(&f);
}

/* ---- Rotation ------------------------------------------------------------------ */

static void rename_and_create_is_followed(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\n");
    expect_lines(&f, "a\n");
    host_append_file(f.path, "b\nlast without a line feed");
    rename_to(&f, ".1");
    host_write_file(f.path, "c\n");
    expect_lines(&f, "b\nlast without a line feed\nc\n");
    expect_nothing();
    end(&f);
}

static void writer_may_finish_with_the_moved_file(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\n");
    expect_lines(&f, "a\n");
    rename_to(&f, ".1");
    host_write_file(f.path, ""); /* created, but the writer still has the old one */
    char *moved = beside(&f, ".1");
    host_append_file(moved, "b\n");
    expect_lines(&f, "b\n");
    host_append_file(moved, "c\n");
    expect_lines(&f, "c\n");
    host_append_file(f.path, "d\n");
    expect_lines(&f, "d\n");
    free(moved);
    end(&f);
}

static void several_rotations_while_closed_are_read_in_order(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\n");
    expect_lines(&f, "a\n");
    close_source(&f);
    host_append_file(f.path, "b\n");
    rename_to(&f, ".1");
    host_write_file(f.path, "c\nd\n");
    char *one = beside(&f, ".1"), *two = beside(&f, ".2");
    CHECK_EQUAL(rename(one, two), 0);
    rename_to(&f, ".1");
    host_write_file(f.path, "e\n");
    open_fixture(&f);
    expect_lines(&f, "b\nc\nd\ne\n");
    expect_nothing();
    free(one);
    free(two);
    end(&f);
}

static void foreign_files_beside_it_are_left_alone(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\n");
    expect_lines(&f, "a\n");
    char *backup = beside(&f, ".bak"), *other = beside(&f, "ger");
    host_append_file(f.path, "b\n");
    rename_to(&f, ".1");
    host_write_file(backup, "no\n");
    host_write_file(other, "no\n");
    host_write_file(f.path, "c\n");
    expect_lines(&f, "b\nc\n");
    expect_nothing();
    free(backup);
    free(other);
    end(&f);
}

static void copy_and_truncate_is_followed(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\nb\n");
    expect_lines(&f, "a\nb\n");
    close_source(&f); /* so that it cannot read c before the copy is made */
    host_append_file(f.path, "c\n");
    copy_to(&f, ".1");
    CHECK_EQUAL(truncate(f.path, 0), 0);
    host_append_file(f.path, "d\n");
    open_fixture(&f);
    expect_lines(&f, "c\nd\n");
    copy_to(&f, "-20260131");
    CHECK_EQUAL(truncate(f.path, 0), 0);
    expect_nothing();
    host_append_file(f.path, "e\nf\ng\nh\n"); /* longer than before */
    expect_lines(&f, "e\nf\ng\nh\n");
    expect_nothing();
    end(&f);
}

static void truncated_file_is_read_from_its_start(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\nb\nc\n");
    expect_lines(&f, "a\nb\nc\n");
    host_write_file(f.path, "d\n");
    expect_lines(&f, "d\n");
    CHECK(host_logged("is gone"));
    host_write_file(f.path, "longer than all that was there before\n");
    expect_lines(&f, "longer than all that was there before\n");
    end(&f);
}

static void replaced_file_is_read_from_its_start(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\nb\n");
    expect_lines(&f, "a\nb\n");
    CHECK_EQUAL(unlink(f.path), 0);
    host_write_file(f.path, "c\n");
    expect_lines(&f, "c\n");
    close_source(&f);
    CHECK_EQUAL(unlink(f.path), 0);
    host_write_file(f.path, "d\ne\nf\n");
    open_fixture(&f);
    expect_lines(&f, "d\ne\nf\n");
    end(&f);
}

static void nack_reaches_back_over_a_rotation(void) {
    struct fixture f = started(",\"batch_length\":1");
    host_write_file(f.path, "a\n");
    struct host_batch *batch = host_next_batch();
    CHECK(batch);
    CHECK_TEXT(batch->payloads[0], "a");
    rename_to(&f, ".1");
    host_write_file(f.path, "b\n");
    settle(&f, batch, false);
    host_free_batch(batch);
    expect_lines(&f, "a\n");
    batch = host_next_batch(); /* b, the first of the new file */
    CHECK(batch);
    CHECK_TEXT(batch->payloads[0], "b");
    settle(&f, batch, false);
    host_free_batch(batch);
    expect_lines(&f, "b\n");
    expect_nothing();
    end(&f);
}

static void nack_reaches_back_into_a_copy(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\n");
    struct host_batch *batch = host_next_batch(); /* the first: there is no state yet */
    CHECK(batch);
    copy_to(&f, ".1");
    CHECK_EQUAL(truncate(f.path, 0), 0);
    host_append_file(f.path, "b\n");
    settle(&f, batch, false);
    host_free_batch(batch);
    expect_lines(&f, "a\nb\n");
    expect_nothing();
    end(&f);
}

static void copy_without_truncation_is_not_read_twice(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\n");
    expect_lines(&f, "a\n");
    close_source(&f);
    rename_to(&f, ".2");
    host_write_file(f.path, "b\n");
    copy_to(&f, ".1");
    open_fixture(&f);
    expect_lines(&f, "b\n"); /* of the copy, as it is older */
    expect_nothing();
    CHECK_EQUAL(truncate(f.path, 0), 0);
    host_append_file(f.path, "c\n");
    expect_lines(&f, "c\n");
    expect_nothing();
    end(&f);
}

static void time_of_the_last_write_may_be_set_back(void) {
    struct fixture f = started("");
    host_write_file(f.path, "a\n");
    expect_lines(&f, "a\n");
    close_source(&f);
    host_append_file(f.path, "b\n");
    const struct timespec times[2] = {{1000000000, 0}, {1000000000, 0}};
    CHECK_EQUAL(utimensat(AT_FDCWD, f.path, times, 0), 0);
    open_fixture(&f);
    expect_lines(&f, "b\n");
    end(&f);
}

/* No descriptor is left: that the file cannot be opened must not be taken for its loss. */
static void unreadable_file_is_waited_for(void) {
    struct fixture f = started("");
    struct rlimit limit, none;
    host_write_file(f.path, "a\n");
    expect_lines(&f, "a\n");
    close_source(&f);
    host_append_file(f.path, "b\n");
    CHECK_EQUAL(getrlimit(RLIMIT_NOFILE, &limit), 0);
    none = limit;
    none.rlim_cur = 3;
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &none), 0);
    open_fixture(&f);
    CHECK(host_logged("trying again"));
    expect_nothing();
    CHECK_EQUAL(setrlimit(RLIMIT_NOFILE, &limit), 0);
    expect_lines(&f, "b\n");
    expect_nothing();
    end(&f);
}

/* ---- Anything at random: what was written is what is acknowledged ----------------- */

static uint64_t seed = 20260131;

static unsigned below(unsigned limit) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % limit;
}

/* The lines are numbered from 1. */
struct model {
    struct fixture source;
    unsigned written;
    unsigned taken;
    unsigned rotations; /* since all that was written had been taken */
};

static void write_some(struct model *m) {
    char text[2048];
    size_t len = 0;
    for (unsigned lines = 1 + below(20); lines > 0; lines--) {
        len += (size_t)snprintf(text + len, sizeof text - len, "line %u%s\n", ++m->written,
                                below(4) == 0 ? " with a good deal more text in it" : "");
    }
    host_append_file(m->source.path, text);
}

/* Takes a batch, and now and then refuses it. */
static void take_batch(struct model *m) {
    struct host_batch *batch = host_next_batch();
    CHECK(batch);
    bool ack = below(40) != 0;
    for (size_t i = 0; i < batch->count; i++) {
        CHECK_EQUAL(strtoul(batch->payloads[i] + strlen("line "), NULL, 10), m->taken + i + 1);
    }
    if (ack) m->taken += (unsigned)batch->count;
    settle(&m->source, batch, ack);
    host_free_batch(batch);
}

static void catch_up(struct model *m) {
    while (m->taken < m->written) take_batch(m);
    m->rotations = 0;
}

/* Moves .1 to .2 and so on; the fifth falls off, so it must have been read. */
static void rotate_names(struct model *m) {
    if (++m->rotations > 4) catch_up(m);
    for (int i = 4; i > 0; i--) {
        char older[8], newer[8];
        snprintf(older, sizeof older, ".%d", i + 1);
        snprintf(newer, sizeof newer, ".%d", i);
        char *from = beside(&m->source, newer), *to = beside(&m->source, older);
        CHECK(rename(from, to) == 0 || errno == ENOENT);
        free(from);
        free(to);
    }
}

static void rotate_by_renaming(struct model *m) {
    rotate_names(m);
    rename_to(&m->source, ".1");
    host_write_file(m->source.path, "");
    write_some(m);
}

static void rotate_by_copying(struct model *m) {
    rotate_names(m);
    copy_to(&m->source, ".1");
    CHECK_EQUAL(truncate(m->source.path, 0), 0);
    write_some(m);
}

static void every_line_is_acknowledged_once_whatever_happens(void) {
    struct model m = {.source = new_fixture(",\"batch_length\":7")};
    write_some(&m);
    open_fixture(&m.source);
    catch_up(&m); /* without a state nothing says where a rotated file belongs */
    for (int step = 0; step < 150; step++) {
        switch (below(8)) {
        case 0:
            restart(&m.source);
            break;
        case 1:
            rotate_by_renaming(&m);
            break;
        case 2:
            rotate_by_copying(&m);
            break;
        case 3:
            write_some(&m);
            break;
        case 4:
            catch_up(&m);
            break;
        default:
            if (m.taken < m.written) take_batch(&m);
        }
    }
    catch_up(&m);
    CHECK(m.written > 300);
    expect_nothing();
    end(&m.source);
}

/* As above, but the files are rotated while they are read, and none falls off. */
static void *write_and_rotate(void *argument) {
    struct model *m = argument;
    for (int rotation = 0; rotation < 30; rotation++) {
        for (unsigned writes = below(3); writes > 0; writes--) write_some(m);
        sleep_us(below(3000));
        for (int i = rotation; i > 0; i--) {
            char older[16], newer[16];
            snprintf(older, sizeof older, ".%d", i + 1);
            snprintf(newer, sizeof newer, ".%d", i);
            char *from = beside(&m->source, newer), *to = beside(&m->source, older);
            CHECK_EQUAL(rename(from, to), 0);
            free(from);
            free(to);
        }
        if (below(2) == 0) {
            rename_to(&m->source, ".1");
            host_write_file(m->source.path, "");
        } else {
            copy_to(&m->source, ".1");
            CHECK_EQUAL(truncate(m->source.path, 0), 0);
        }
        write_some(m);
    }
    return NULL;
}

static void rotation_may_happen_at_any_moment(void) {
    struct model reader = {.source = new_fixture("")};
    write_some(&reader);
    open_fixture(&reader.source);
    catch_up(&reader);
    struct model writer = reader;
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, write_and_rotate, &writer), 0);
    /* The writer numbers its lines, so what has come tells how far it must be. */
    for (struct host_batch *batch; (batch = host_next_batch_within(500));) {
        for (size_t i = 0; i < batch->count; i++) {
            CHECK_EQUAL(strtoul(batch->payloads[i] + strlen("line "), NULL, 10), ++reader.taken);
        }
        settle(&reader.source, batch, true);
        host_free_batch(batch);
    }
    CHECK_EQUAL(pthread_join(thread, NULL), 0);
    reader.written = writer.written;
    catch_up(&reader);
    expect_nothing();
    end(&reader.source);
}

int main(int argc, char **argv) {
    CHECK(argc == 4 || argc == 5);
    api = host_load_source(argv[1]);
    if (argc == 5) {
        seed = strtoull(argv[4], NULL, 10);
        api = host_load_source(argv[3]);
        RUN(rotation_may_happen_at_any_moment);
        RUN(every_line_is_acknowledged_once_whatever_happens);
        return 0;
    }
    RUN(lines_arrive_in_order_as_the_file_grows);
    RUN(file_may_appear_later);
    RUN(line_is_sent_when_it_is_complete);
    RUN(carriage_returns_and_empty_lines_are_dropped);
    RUN(batch_has_batch_length_lines_at_most);
    RUN(long_lines_are_whole);
    RUN(line_that_no_message_can_hold_is_skipped);
    RUN(schema_is_the_configured_one);
    RUN(from_end_skips_what_is_there);
    RUN(bad_options_are_named);
    RUN(path_that_is_no_file_fails_to_open);
    RUN(nacked_lines_come_again);
    printf("missing_result_makes_them_come_again\n");
    missing_result_makes_them_come_again(argv[2]);
    RUN(restart_repeats_only_what_was_not_acknowledged);
    RUN(rename_and_create_is_followed);
    RUN(writer_may_finish_with_the_moved_file);
    RUN(several_rotations_while_closed_are_read_in_order);
    RUN(foreign_files_beside_it_are_left_alone);
    RUN(copy_and_truncate_is_followed);
    RUN(truncated_file_is_read_from_its_start);
    RUN(replaced_file_is_read_from_its_start);
    RUN(nack_reaches_back_over_a_rotation);
    RUN(nack_reaches_back_into_a_copy);
    RUN(copy_without_truncation_is_not_read_twice);
    RUN(time_of_the_last_write_may_be_set_back);
    RUN(unreadable_file_is_waited_for);
    api = host_load_source(argv[3]);
    RUN(rotation_may_happen_at_any_moment);
    RUN(every_line_is_acknowledged_once_whatever_happens);
    return 0;
}
