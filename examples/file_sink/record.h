/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/*
 * Turns a message into one line of JSON:
 *
 *     {"stream":"orders","topic":"eu","partition":1,"offset":7,
 *      "headers":{"trace":{"string":"ab12"},"attempt":{"uint32":2}},
 *      "payload":{"total":3}}
 *
 * headers    the key as text (a number in decimal, raw bytes in base64), the value
 *            under the name of its kind; raw bytes are base64, 128-bit numbers are
 *            strings of decimal digits, a float that JSON cannot write is a string
 * payload    JSON as it is, on one line; text as a string; anything else a string of
 *            base64, and then there is a last member "encoding":"base64"
 */
#ifndef FILE_SINK_RECORD_H
#define FILE_SINK_RECORD_H

#include "buffer.h"
#include "postcard.h"

/* Appends the line; false when the message's headers cannot be decoded. */
bool put_record(struct buffer *out, const struct topic_metadata *topic,
                const struct messages_metadata *metadata, const struct message *message);

#endif
