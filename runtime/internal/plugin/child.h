// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

/* What the host and the process of an isolated plugin share: descriptors, frames, memory.
 *
 * Frames are packets of a SOCK_SEQPACKET pair. Bytes that a call or a batch carries lie in
 * shared memory: in a file for each direction, where slot i owns the SLOT_BYTES from
 * i * SLOT_BYTES on. The files are sparse and sealed against shrinking by the host, so that
 * no access faults; each side maps as much of a slot as it needs. A call owns its slot of
 * the calls file until it has returned, a batch its slot of the batches file until it is
 * answered: the slot is the name of either.
 *
 * The host reads only the batches file, and whatever it finds there may change under its
 * eyes. */
#ifndef HOST_CHILD_H
#define HOST_CHILD_H

#include <stdint.h>

/* In the environment, it makes a new process of this executable a child. Its value is how
 * many descriptors the child keeps: three of the standard, three of below, and more that
 * are only to be held. */
#define CHILD_MARKER "IGGY_CONNECT_PLUGIN_CHILD"

enum child_descriptor { CHANNEL_FD = 3, CALLS_FD = 4, BATCHES_FD = 5 };

enum {
    SLOTS = 1024,              /* calls, and batches, that may be under way at once */
    SLOT_KEEP_BYTES = 2 << 20, /* that a slot keeps in memory between two uses */
    PACKET_BYTES = 64 << 10,   /* of the largest packet: a frame and its text */
    MAX_BATCH_BYTES = 1 << 30,
    REPORT_TEXT_BYTES = 16 << 10,
};
#define SLOT_BYTES (UINT64_C(1) << 31)
#define REPORT_OFFSET (SLOTS * SLOT_BYTES) /* in the batches file: a crash_report */
#define MEMORY_BYTES (REPORT_OFFSET + (1 << 20))
#define NO_SLOT UINT32_MAX
#define IMPOSSIBLE_LENGTH UINT32_MAX /* of a batch that the child could not copy */

enum frame_kind {
    /* Calls from the host. Their arguments lie in the slot, one behind the other, each
     * of its length. */
    FRAME_LOAD = 1, /* a path with its NUL; value: the functions to look up, bit i for symbols[i] */
    FRAME_SINK_VERSION, /* its text is that of the return */
    FRAME_SOURCE_VERSION,
    FRAME_SINK_OPEN,    /* config */
    FRAME_SINK_CONSUME, /* topic, metadata, messages */
    FRAME_SINK_CLOSE,
    FRAME_SOURCE_OPEN, /* config, state; value: 1 when there is no state */
    FRAME_SOURCE_HANDLE,
    FRAME_SOURCE_HANDLE_V2,
    FRAME_SOURCE_BATCH_RESULT, /* batch; value: the result */
    FRAME_SOURCE_CLOSE,
    FRAME_SIGNALS, /* batch of the return: what host_unguarded_signal_handlers says */

    FRAME_ANSWER, /* of the host to FRAME_BATCH; value: what the callback returns */

    /* From the child. */
    FRAME_RETURN, /* of the call in the slot; value: its code; text of length[0] */
    FRAME_BATCH,  /* length[0] bytes in the slot; value: generation of the callback; length[1] and
                   * [2]: low and high half of the length that the plugin gave */
    FRAME_LOG,    /* value: level; text: target of length[0], message of length[1] */

    /* From the host, before the first call; they have no answer. A process limits itself,
     * which takes no privilege whoever it runs as. */
    FRAME_LIMIT, /* value: a resource of setrlimit; batch: its soft limit; length[0]: the hard one
                    is that much higher */
    FRAME_NICE,  /* value: what to add */
};

/* The head of each packet. Behind it stands text, where the kind has it. */
struct frame {
    uint32_t kind;
    uint32_t slot;
    uint32_t instance;
    uint32_t value;
    uint64_t batch;
    uint32_t length[3];
    uint32_t unused;
};
_Static_assert(sizeof(struct frame) == 40, "no padding");

/* What a dying child leaves, followed by the backtrace, a text that ends with a NUL. */
struct crash_report {
    uint32_t written; /* 1; 0 when it had no chance to write */
    uint32_t signal;  /* 0: it called exit */
    uint32_t slot;    /* of the call on the thread that died, or NO_SLOT */
    uint32_t unused;
    uint64_t address; /* that could not be accessed */
};
_Static_assert(sizeof(struct crash_report) == 24, "no padding");

#endif
