// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

func (s *Server) offsets(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	offsets, err := s.connectors.Offsets(c.Request().Context(), key)
	if err != nil {
		return err
	}
	if offsets == nil {
		offsets = []Offset{}
	}
	return writeJSON(c, http.StatusOK, offsets)
}

func (s *Server) setOffsets(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	body, err := readBody(c)
	if err != nil {
		return err
	}
	offsets, err := newOffsets(body)
	if err != nil {
		return err
	}
	if err := s.connectors.SetOffsets(s.life, key, offsets); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// offsetProperties are those of an entry of the request. stored_offset may be null but not absent:
// a forgotten value must not rewind a partition to its beginning.
var offsetProperties = []property{
	{"stream", nil, true, "a string", isString},
	{"topic", nil, true, "a string", isString},
	{"consumer_group", nil, false, "a string or null", orNull(isString)},
	{"partition", nil, true, "an unsigned 32-bit number", isUint32},
	{"stored_offset", nil, true, "an unsigned 64-bit number or null", orNull(func(v config.Value) bool { _, ok := unsigned(v, 64); return ok })},
}

func newOffsets(body *config.Table) ([]NewOffset, error) {
	entries, ok := member(body, "offsets").Data.([]config.Value)
	if !ok {
		return nil, invalidBody("offsets: expected an array")
	}
	offsets := make([]NewOffset, len(entries))
	for i, entry := range entries {
		path := fmt.Sprintf("offsets[%d]", i)
		table, ok := entry.Data.(*config.Table)
		if !ok {
			return nil, invalidBody(path + ": expected an object")
		}
		if err := checkTypes(table, offsetProperties, path+"."); err != nil {
			return nil, err
		}
		partition, _ := unsigned(member(table, "partition"), 32)
		offsets[i] = NewOffset{
			Stream: text(table, "stream"), Topic: text(table, "topic"), ConsumerGroup: text(table, "consumer_group"),
			Partition: uint32(partition),
		}
		if stored, ok := unsigned(member(table, "stored_offset"), 64); ok {
			offsets[i].Stored = &stored
		}
	}
	return offsets, nil
}

func text(table *config.Table, name string) string {
	text, _ := member(table, name).Data.(string)
	return text
}
