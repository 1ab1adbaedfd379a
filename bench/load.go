// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/avro"
)

// wholePayload is from how many bytes on a payload has all fields.
const wholePayload = 128

// payload is a JSON object of so many bytes, as bench/plugins/blast_source.c makes it.
func payload(seq, size int) []byte {
	head := fmt.Sprintf(`{"seq":%d`, seq)
	if size >= wholePayload {
		head += fmt.Sprintf(`,"name":"sensor-%d","ok":true,"value":%d.5`, seq%17, seq*3)
	}
	head += `,"text":"`
	return []byte(head + strings.Repeat("x", max(0, size-len(head)-2)) + `"}`)
}

// avroSchema has the fields that a message has when it is encoded: a source takes no
// defaults for missing ones, and the second transform deletes one.
func (s scenario) avroSchema() string {
	fields := `{"name":"text","type":"string"}`
	if s.Kind == sink || s.Transforms < 2 {
		fields += `,{"name":"seq","type":"long"}`
	}
	if s.Size >= wholePayload {
		fields += `,{"name":"name","type":"string"},{"name":"ok","type":"boolean"},{"name":"value","type":"double"}`
	}
	return `{"type":"record","name":"measurement","fields":[` + fields + `]}`
}

// payloads are the messages of one send.
func (s scenario) payloads(count int) ([][]byte, error) {
	all := make([][]byte, count)
	for i := range all {
		all[i] = payload(i, s.Size)
	}
	if s.Schema != "avro" {
		return all, nil
	}
	schema, err := avro.Parse(s.avroSchema())
	if err != nil {
		return nil, err
	}
	for i := range all {
		record := make(map[string]any)
		if err := json.Unmarshal(all[i], &record); err != nil {
			return nil, err
		}
		record["seq"] = int64(i)
		if all[i], err = schema.Encode(record); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// fill sends the messages that each sink of a scenario is to read.
func (s *server) fill(topic string, what scenario) error {
	w, err := dialWire(s.address, "")
	if err != nil {
		return err
	}
	defer w.conn.Close()
	const sendBytes, sendMessages = 4 << 20, 10_000
	all := what.each()
	perSend := max(1, min(all/what.Partitions, sendMessages, sendBytes/what.Size))
	payloads, err := what.payloads(perSend)
	if err != nil {
		return err
	}
	full := newSend(s.stream, topic, payloads, what.Headers)
	for left, partition := all, 0; left > 0; partition = (partition + 1) % what.Partitions {
		if what.OnePartition {
			partition = what.Partitions - 1
		}
		f := full
		if left < perSend {
			f = newSend(s.stream, topic, payloads[:left], what.Headers)
		}
		if _, err := w.call(f.to(partition)); err != nil {
			return err
		}
		left -= min(left, perSend)
	}
	return nil
}

// produce sends at the scenario's rate. A late answer delays the next send, which then
// goes at once, until the schedule is met again.
func (s *server) produce(j job) error {
	w, err := dialWire(s.address, "")
	if err != nil {
		return err
	}
	defer w.conn.Close()
	payloads, err := j.payloads(j.Send)
	if err != nil {
		return err
	}
	f := newSend(s.stream, j.Topic, payloads, j.Headers)
	time.Sleep(500 * time.Millisecond) // until the consumers have settled
	interval := time.Second * time.Duration(j.Send) / time.Duration(j.Rate)
	for due, sent := time.Now(), 0; sent < j.Messages; sent += j.Send {
		time.Sleep(time.Until(due))
		due = due.Add(interval)
		if _, err := w.call(f.to(sent / j.Send % j.Partitions)); err != nil {
			return err
		}
	}
	return nil
}
