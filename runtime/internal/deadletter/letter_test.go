// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/config"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

// parsed is a letter after its way through Iggy.
func parsed(l *Letter) (Letter, error) {
	return Parse(3, &iggy.PolledMessage{
		ID: l.ID, Offset: 17, OriginTimestamp: l.OriginTimestamp, Payload: l.Payload, Headers: l.AppendHeaders(bytes.Clone(l.Headers)),
	})
}

func own(name, value string) []byte { return appendText(nil, name, value) }

func TestLetter_given_what_connectors_write_when_parsed_should_be_the_same(t *testing.T) {
	for name, change := range map[string]func(*Letter){
		"of a sink":            func(*Letter) {},
		"with headers":         func(l *Letter) { l.Headers = own("trace", "1") },
		"of a source":          func(l *Letter) { l.Connector.Kind, l.Partition, l.Offset = config.KindSource, nil, nil },
		"with dropped headers": func(l *Letter) { l.Unreadable = true },
		"a letter once more":   func(l *Letter) { l.Headers = letter(9).AppendHeaders(own("trace", "1")) },
	} {
		t.Run(name, func(t *testing.T) {
			want := letter(5, change)
			got, err := parsed(want)
			want.Place = Place{3, 17}
			got.Time = got.Time.UTC()
			if err != nil || !reflect.DeepEqual(got, *want) {
				t.Errorf("got %+v, error %v\nwant %+v", got, err, *want)
			}
		})
	}
}

func TestLetter_given_a_reason_that_was_cut_inside_a_character_when_parsed_should_be_text(t *testing.T) {
	got, err := parsed(letter(1, func(l *Letter) { l.Reason = strings.Repeat("ü", 200) }))
	if err != nil || got.Reason != strings.Repeat("ü", 127)+"\uFFFD" {
		t.Errorf("got %q, error %v", got.Reason, err)
	}
}

func TestLetter_given_a_message_of_somebody_else_when_parsed_should_be_foreign(t *testing.T) {
	for name, headers := range map[string][]byte{
		"no headers":         nil,
		"other headers":      own("trace", "1"),
		"unreadable headers": {1, 2, 3},
		"no origin":          own(HeaderConnector, "out"),
		"an unknown kind":    letter(1, func(l *Letter) { l.Connector.Kind = "pipe" }).AppendHeaders(nil),
	} {
		if l, err := Parse(0, &iggy.PolledMessage{Headers: headers, Payload: []byte("x")}); err != ErrForeign {
			t.Errorf("%s: got %+v, error %v", name, l, err)
		}
	}
}

func TestLetter_given_numbers_of_the_wrong_kind_when_parsed_should_be_left_out(t *testing.T) {
	headers := letter(1, func(l *Letter) { l.Partition, l.Offset = nil, nil }).AppendHeaders(nil)
	headers = append(append(headers, own(HeaderPartition, "1")...), own(HeaderOffset, "one")...)
	if l, err := Parse(0, &iggy.PolledMessage{Headers: headers}); err != nil || l.Partition != nil || l.Offset != nil {
		t.Errorf("got %+v, error %v", l, err)
	}
}

func TestPlace_given_text_when_parsed_should_be_what_was_written_or_refused(t *testing.T) {
	for _, text := range []string{"0-17", "4294967295-18446744073709551615"} {
		if place, err := ParsePlace(text); err != nil || place.String() != text {
			t.Errorf("%s: got %s, error %v", text, place, err)
		}
	}
	for _, text := range []string{"", "-", "0", "0-", "-1", "0-1-2", "4294967296-0", "0-18446744073709551616", "a-b", " 0-1"} {
		if place, err := ParsePlace(text); err == nil {
			t.Errorf("%q became %s", text, place)
		}
	}
}

func TestFilter_given_each_criterion_when_matched_should_choose_by_it(t *testing.T) {
	l := *letter(5)
	l.Place = Place{0, 17}
	for name, c := range map[string]struct {
		filter Filter
		want   bool
	}{
		"nothing":             {Filter{}, true},
		"connector":           {Filter{Connector: sink}, true},
		"another connector":   {Filter{Connector: other}, false},
		"source of this key":  {Filter{Connector: config.ID{Kind: config.KindSource, Key: "out"}}, false},
		"stage":               {Filter{Stage: "consume"}, true},
		"another stage":       {Filter{Stage: "decode"}, false},
		"part of the reason":  {Filter{Reason: "returned"}, true},
		"another reason":      {Filter{Reason: "refused"}, false},
		"since its time":      {Filter{Since: l.Time}, true},
		"since after it":      {Filter{Since: l.Time.Add(time.Microsecond)}, false},
		"until after it":      {Filter{Until: l.Time.Add(time.Microsecond)}, true},
		"until its time":      {Filter{Until: l.Time}, false},
		"its place":           {Filter{Places: []Place{{1, 17}, {0, 17}}}, true},
		"another place":       {Filter{Places: []Place{{1, 17}}}, false},
		"all but one of them": {Filter{Connector: sink, Stage: "consume", Reason: "nothing"}, false},
	} {
		if got := c.filter.Match(&l); got != c.want {
			t.Errorf("%s: %t, want %t", name, got, c.want)
		}
	}
}

// Whatever lies in a topic of dead letters: it is foreign, or a letter that says where it
// comes from.
func FuzzParse(f *testing.F) {
	f.Add(letter(1).AppendHeaders(nil), []byte("x"))
	f.Add(letter(1).AppendHeaders(own("a", "b")), []byte("x"))
	receipt := newReceipt(Purged, []uint64{1, 2, 5})
	f.Add(receipt.Headers, receipt.Payload)
	f.Fuzz(func(t *testing.T, headers, payload []byte) {
		m := iggy.PolledMessage{Offset: 1 << 40, Headers: headers, Payload: payload}
		if isReceipt(&m) {
			var d done
			d.add(&m)
			d.settle()
			if d.has(m.Offset) {
				t.Error("a receipt marks what lies behind it")
			}
		}
		l, err := Parse(0, &m)
		if err == nil && (l.Stream == "" || l.Topic == "" || l.Connector.Key == "") {
			t.Errorf("parsed %+v", l)
		}
		if err == nil && len(l.Headers) > len(headers) {
			t.Errorf("%d bytes of headers became %d", len(headers), len(l.Headers))
		}
	})
}
