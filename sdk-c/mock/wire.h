/*
 * Licensed to the Apache Software Foundation (ASF) under one or more contributor
 * license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
 * SPDX-License-Identifier: Apache-2.0
 */

/* The host's half of the wire format: what the SDK reads is written here, and the
 * other way round. */
#ifndef IGGY_MOCK_WIRE_H
#define IGGY_MOCK_WIRE_H

#include "iggy_connector_mock.h"
#include "postcard.h"

void iggy_mock_put_topic_metadata(struct iggy_buffer *out, iggy_topic_metadata metadata);
void iggy_mock_put_messages_metadata(struct iggy_buffer *out, iggy_messages_metadata metadata);
void iggy_mock_put_raw_message(struct iggy_buffer *out, const iggy_message *message);

/* Reads a header map; `headers` is allocated, and NULL after a fault. */
size_t iggy_mock_read_headers(iggy_reader *reader, iggy_header **headers);

/* The message's payload is a view, its headers are allocated. */
iggy_produced_message iggy_mock_read_produced(iggy_reader *reader);

/* A whole ProducedMessages, to be freed with iggy_mock_free_produced. */
iggy_mock_produced iggy_mock_read_batch(iggy_reader *reader);
void iggy_mock_free_produced(iggy_mock_produced *batch);

/* calloc that ends the program where it fails. */
void *iggy_mock_calloc(size_t count, size_t size);

#endif
