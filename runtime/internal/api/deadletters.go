// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/deadletter"
)

// How many letters one answer lists.
const (
	defaultLetters = 100
	maxLetters     = 10_000
)

func (s *Server) deadLetters(c echo.Context, id config.ID) error {
	query, err := letterQuery(c, "limit")
	if err != nil {
		return err
	}
	limit := defaultLetters
	if query.Has("limit") {
		if limit, err = strconv.Atoi(query.Get("limit")); err != nil || limit < 1 || limit > maxLetters {
			return invalidQuery(fmt.Sprintf("limit: expected a number from 1 to %d", maxLetters))
		}
	}
	filter, err := letterFilter(id, query)
	if err != nil {
		return err
	}
	found, err := s.connectors.DeadLetters(c.Request().Context(), id, filter, limit)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, found)
}

func (s *Server) deadLetter(c echo.Context, id config.ID) error {
	text, err := pathParam(c, "letter")
	if err != nil {
		return err
	}
	place, err := deadletter.ParsePlace(text)
	if err != nil {
		return invalidPath(err.Error())
	}
	found, err := s.connectors.DeadLetter(c.Request().Context(), id, place)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, found)
}

func (s *Server) replayDeadLetters(c echo.Context, id config.ID) error {
	query, err := letterQuery(c, "target")
	if err != nil {
		return err
	}
	target := query.Get("target")
	if target != "topic" && target != "connector" {
		return invalidQuery("target: expected `topic` or `connector`")
	}
	filter, err := letterFilter(id, query)
	if err != nil {
		return err
	}
	settled, err := s.connectors.ReplayDeadLetters(s.life, id, filter, target == "connector")
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, settled)
}

func (s *Server) purgeDeadLetters(c echo.Context, id config.ID) error {
	query, err := letterQuery(c)
	if err != nil {
		return err
	}
	filter, err := letterFilter(id, query)
	if err != nil {
		return err
	}
	settled, err := s.connectors.PurgeDeadLetters(s.life, id, filter)
	if err != nil {
		return err
	}
	return writeJSON(c, http.StatusOK, settled)
}

var letterParameters = []string{"connector", "stage", "reason", "since", "until", "letter"}

// letterQuery reads the query strictly: a filter that is misspelt must not purge everything.
func letterQuery(c echo.Context, more ...string) (url.Values, error) {
	query, err := url.ParseQuery(c.Request().URL.RawQuery)
	if err != nil {
		return nil, invalidQuery(err.Error())
	}
	for name, values := range query {
		if !slices.Contains(letterParameters, name) && !slices.Contains(more, name) {
			return nil, invalidQuery(fmt.Sprintf("unknown parameter `%s`, expected one of `%s`", name, strings.Join(append(letterParameters, more...), "`, `")))
		}
		if len(values) > 1 && name != "letter" {
			return nil, invalidQuery(name + ": given more than once")
		}
		if slices.Contains(values, "") {
			return nil, invalidQuery(name + ": is empty")
		}
	}
	return query, nil
}

func letterFilter(id config.ID, query url.Values) (filter deadletter.Filter, err error) {
	filter = deadletter.Filter{Connector: id, Stage: query.Get("stage"), Reason: query.Get("reason")}
	if query.Has("connector") {
		kind, key, _ := strings.Cut(query.Get("connector"), "/")
		filter.Connector = config.ID{Kind: config.Kind(kind), Key: key}
		if !slices.Contains(kinds, filter.Connector.Kind) || key == "" {
			return filter, invalidQuery("connector: expected sink/KEY or source/KEY")
		}
	}
	if filter.Since, err = queryTime(query, "since"); err != nil {
		return filter, err
	}
	if filter.Until, err = queryTime(query, "until"); err != nil {
		return filter, err
	}
	for _, text := range query["letter"] {
		place, err := deadletter.ParsePlace(text)
		if err != nil {
			return filter, invalidQuery("letter: " + err.Error())
		}
		filter.Places = append(filter.Places, place)
	}
	return filter, nil
}

func queryTime(query url.Values, name string) (time.Time, error) {
	if !query.Has(name) {
		return time.Time{}, nil
	}
	at, err := time.Parse(time.RFC3339, query.Get(name))
	if err != nil {
		return at, invalidQuery(name + ": expected a time such as 2026-01-31T12:00:00Z")
	}
	return at, nil
}
