// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package api

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/ugorji/go/codec"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
)

// stateAnswer is the body of GET /sources/{key}/state.
type stateAnswer struct {
	Size      int          `json:"size"`     // bytes
	SavedAt   int64        `json:"saved_at"` // µs since the epoch
	AgeMicros int64        `json:"age"`
	Content   config.Value `json:"content"`           // null when it is not MessagePack
	Problem   string       `json:"problem,omitempty"` // why content is null
}

// state shows the saved state of a source. Plugins made with an SDK write MessagePack; any other
// bytes are available as they are.
func (s *Server) state(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	raw := false
	if query := c.QueryParams(); query.Has("format") {
		if raw = query.Get("format") == "raw"; !raw && query.Get("format") != "json" {
			return invalidQuery("format: expected `json` or `raw`")
		}
	}
	if raw && !proved(c) {
		return &requestError{http.StatusForbidden, "api_key_required",
			"The state may hold secrets that cannot be masked in its raw form: set http.api_key and send it"}
	}
	state, err := s.connectors.State(c.Request().Context(), key)
	if err != nil {
		return err
	}
	if raw {
		return c.Blob(http.StatusOK, echo.MIMEOctetStream, state.Data)
	}
	answer := stateAnswer{Size: len(state.Data), SavedAt: state.SavedAt.UnixMicro(), AgeMicros: time.Since(state.SavedAt).Microseconds()}
	content, err := DecodeMessagePack(state.Data)
	if err != nil {
		answer.Problem = err.Error()
	}
	answer.Content = s.shown(c, content)
	return writeJSON(c, http.StatusOK, answer)
}

func (s *Server) deleteState(c echo.Context) error {
	key, err := pathParam(c, "key")
	if err != nil {
		return err
	}
	if err := s.connectors.DeleteState(s.life, key); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// DecodeMessagePack reads the state of a plugin made with an SDK into the form of JSON.
func DecodeMessagePack(data []byte) (config.Value, error) {
	handle := &codec.MsgpackHandle{WriteExt: true} // tells text from binary
	var decoded any
	decoder := codec.NewDecoderBytes(data, handle)
	if err := decoder.Decode(&decoded); err != nil {
		return config.Value{}, fmt.Errorf("not MessagePack: %w", err)
	}
	if decoder.NumBytesRead() != len(data) {
		return config.Value{}, fmt.Errorf("not MessagePack: %d bytes follow the first value", len(data)-decoder.NumBytesRead())
	}
	return jsonValue(reflect.ValueOf(decoded)), nil
}

// jsonValue maps MessagePack to JSON: binary becomes base64, map keys become text, numbers that
// JSON has no form for become text.
func jsonValue(v reflect.Value) config.Value {
	switch v.Kind() {
	case reflect.Interface:
		return jsonValue(v.Elem())
	case reflect.Map:
		return config.Value{Data: jsonTable(v)}
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return config.Value{Data: base64.StdEncoding.EncodeToString(v.Bytes())}
		}
		items := make([]config.Value, v.Len())
		for i := range items {
			items[i] = jsonValue(v.Index(i))
		}
		return config.Value{Data: items}
	case reflect.Invalid:
		return config.Value{}
	case reflect.Bool:
		return config.Value{Data: v.Bool()}
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		return config.Value{Data: json.Number(strconv.FormatInt(v.Int(), 10))}
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return config.Value{Data: json.Number(strconv.FormatUint(v.Uint(), 10))}
	case reflect.Float32, reflect.Float64:
		return jsonFloat(v.Float(), v.Type().Bits())
	default: // text, time, extension
		return config.Value{Data: fmt.Sprint(v.Interface())}
	}
}

func jsonFloat(f float64, bits int) config.Value {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return config.Value{Data: strconv.FormatFloat(f, 'g', -1, bits)}
	}
	return config.Value{Data: json.Number(strconv.FormatFloat(f, 'g', -1, bits))}
}

func jsonTable(v reflect.Value) *config.Table {
	values := make(map[string]config.Value, v.Len())
	var names []string
	for _, key := range v.MapKeys() {
		name := keyText(jsonValue(key))
		names = append(names, name)
		values[name] = jsonValue(v.MapIndex(key))
	}
	slices.Sort(names)
	table := config.NewTable()
	for _, name := range names {
		table.Set(name, values[name])
	}
	return table
}

func keyText(key config.Value) string {
	if text, ok := key.Data.(string); ok {
		return text
	}
	return string(key.SortedJSON())
}
