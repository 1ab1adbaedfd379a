// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/apache/iggy-connect-go/runtime/internal/api"
)

// offsetChange is what the flags of 'connectors offsets' want to be stored.
type offsetChange struct {
	set           []string
	rewind        bool
	stream, topic string

	wanted map[uint32]*uint64 // of --set, by partition; nil: the oldest message
}

// check reads the flags.
func (o *offsetChange) check() error {
	o.wanted = map[uint32]*uint64{}
	for _, text := range o.set {
		partition, offset, ok := parseOffset(text)
		if !ok {
			return usageError{fmt.Errorf("--set %q is not PARTITION=OFFSET or PARTITION=first", text)}
		}
		if _, twice := o.wanted[partition]; twice {
			return usageError{fmt.Errorf("--set names partition %d twice", partition)}
		}
		o.wanted[partition] = offset
	}
	switch {
	case o.rewind && len(o.set) > 0:
		return usageError{errors.New("give either --set or --rewind")}
	case !o.rewind && len(o.set) == 0 && o.stream+o.topic != "":
		return usageError{errors.New("--stream and --topic go with --set or --rewind")}
	}
	return nil
}

func parseOffset(text string) (partition uint32, offset *uint64, ok bool) {
	left, right, _ := strings.Cut(text, "=")
	number, err := strconv.ParseUint(left, 10, 32)
	if err != nil {
		return 0, nil, false
	}
	if right == "first" {
		return uint32(number), nil, true
	}
	value, err := strconv.ParseUint(right, 10, 64)
	return uint32(number), &value, err == nil
}

// apply stores what is wanted and returns the offsets then.
func (o *offsetChange) apply(ctx context.Context, client *apiClient, path string) ([]api.Offset, error) {
	offsets := []api.Offset{}
	err := client.call(ctx, http.MethodGet, path, nil, &offsets)
	if err != nil || !o.rewind && len(o.wanted) == 0 {
		return offsets, err
	}
	changes, err := o.changes(offsets)
	if err != nil {
		return nil, err
	}
	if err := client.call(ctx, http.MethodPut, path, map[string]any{"offsets": changes}, nil); err != nil {
		return nil, err
	}
	err = client.call(ctx, http.MethodGet, path, nil, &offsets)
	return offsets, err
}

// changes turns the flags into the offsets of partitions that exist.
func (o *offsetChange) changes(offsets []api.Offset) ([]api.NewOffset, error) {
	changes := []api.NewOffset{}
	found := map[uint32]int{}
	for _, have := range offsets {
		stored, wanted := o.wanted[have.Partition]
		if o.stream != "" && o.stream != have.Stream || o.topic != "" && o.topic != have.Topic || !wanted && !o.rewind {
			continue
		}
		found[have.Partition]++
		changes = append(changes, api.NewOffset{
			Stream: have.Stream, Topic: have.Topic, ConsumerGroup: have.ConsumerGroup, Partition: have.Partition, Stored: stored,
		})
	}
	for partition := range o.wanted {
		switch found[partition] {
		case 0:
			return nil, fmt.Errorf("not_found: the sink reads no partition %d there", partition)
		case 1:
		default:
			return nil, usageError{fmt.Errorf("the sink reads %d topics with a partition %d: say which by --stream and --topic", found[partition], partition)}
		}
	}
	return changes, nil
}
