// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package deadletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
	"github.com/apache/iggy-connect-go/runtime/internal/iggy"
)

func TestList_given_letters_of_all_kinds_when_filtered_should_show_those_and_count_the_rest(t *testing.T) {
	d := newDesk(t)
	d.mustList(Filter{}) // there is no topic yet
	d.store.CreateTopic("dead", "letters", 2)
	d.mustList(Filter{})
	d.write(0, letter(0), letter(1, func(l *Letter) { l.Stage = "decode" }))
	d.write(1, letter(2, func(l *Letter) { l.Connector = other }), letter(3))
	d.store.Append("dead", "letters", 1, devbroker.Message{Payload: []byte("of somebody else")})

	d.mustList(Filter{Connector: sink}, "0-0", "0-1", "1-1")
	d.mustList(Filter{Connector: sink, Stage: "decode"}, "0-1")
	d.mustList(Filter{Connector: sink, Since: began.Add(time.Minute), Until: began.Add(3 * time.Minute)}, "0-1")
	d.mustList(Filter{Connector: other}, "1-0")
	if _, counts := d.list(Filter{Connector: sink, Stage: "decode"}); counts != (Counts{Chosen: 1, Others: 1, Foreign: 1}) {
		t.Errorf("counted %+v", counts)
	}
}

func TestReplay_given_letters_when_sent_back_should_be_as_they_were_and_done(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 2)
	d.store.CreateTopic("dead", "letters", 1)
	headers := own("trace", "1")
	d.write(0, letter(0, func(l *Letter) { l.Headers = headers }), letter(1, func(l *Letter) { l.Stage = "decode" }), letter(2))

	d.mustReplay(Filter{Connector: sink, Stage: "consume"}, 2, 0)
	d.mustArrive(1, `{"id":0}`, `{"id":2}`)
	if m := d.store.Messages("s", "t", 1)[0]; m.ID != (letter(0).ID) || !bytes.Equal(m.Headers, headers) || m.OriginTimestamp != 0 {
		t.Errorf("%+v arrived", m)
	}
	d.mustList(Filter{Connector: sink}, "0-1")
	d.mustReplay(Filter{Connector: sink, Stage: "consume"}, 0, 0)
	d.mustReplay(Filter{Connector: sink}, 1, 0)
	d.mustArrive(1, `{"id":0}`, `{"id":2}`, `{"id":1}`)
	d.mustList(Filter{})
	if _, counts := d.list(Filter{}); counts.Foreign != 0 {
		t.Error("receipts are counted as foreign")
	}
}

func TestReplay_given_letters_of_a_source_or_of_a_partition_that_is_gone_when_sent_back_should_arrive_somewhere(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 1)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0), letter(1, func(l *Letter) { l.Partition, l.Offset = nil, nil }))
	d.mustReplay(Filter{}, 2, 0)
	d.mustArrive(0, `{"id":0}`, `{"id":1}`)
}

func TestReplay_given_a_topic_that_is_gone_when_sent_back_should_keep_the_letter_and_make_no_topic(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 2)
	d.store.CreateTopic("dead", "letters", 1)
	gone := func(stream, topic string) func(*Letter) {
		return func(l *Letter) { l.Stream, l.Topic = stream, topic }
	}
	d.write(0, letter(0, gone("s", "gone")), letter(1), letter(2, gone("gone", "t")))
	outcome := d.mustReplay(Filter{}, 1, 2)
	if want := errNoTopic.Error() + `: stream "s", topic "gone"`; outcome.Reason != want {
		t.Errorf("the reason is %q, want %q", outcome.Reason, want)
	}
	d.mustList(Filter{}, "0-0", "0-2")
	if topics := d.store.Topics(); len(topics) != 2 {
		t.Errorf("there are %+v", topics)
	}
}

func TestReplay_given_letters_that_iggy_refuses_for_good_when_sent_back_should_stay_and_let_the_rest_go(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 2)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0), letter(1), letter(2))
	d.broker.Inject(devbroker.Fault{
		Command: devbroker.SendMessages,
		When:    func(_ int, r devbroker.Request) bool { return bytes.Contains(r.Payload, []byte(`{"id":1}`)) },
		Action:  devbroker.Answer(devbroker.StatusPayloadTooBig),
	})
	d.mustReplay(Filter{}, 2, 1)
	d.mustArrive(1, `{"id":0}`, `{"id":2}`)
	d.mustList(Filter{}, "0-1")
}

// The receipt is the last step of each chunk: whatever happens before it, the letters stay.
func TestReplay_given_an_interruption_at_any_point_when_repeated_should_lose_no_letter(t *testing.T) {
	lost := func(strike devbroker.When) devbroker.Fault {
		return devbroker.Fault{Command: devbroker.SendMessages, When: strike, Action: devbroker.NoAnswer()}
	}
	receipts := func(_ int, r devbroker.Request) bool { return bytes.Contains(r.Payload, []byte(HeaderReceipt)) }
	for name, c := range map[string]struct {
		fault  devbroker.Fault
		during string
	}{
		"before the letters arrive":     {lost(devbroker.First(1 << 30)), ""},
		"before the receipt arrives":    {lost(receipts), `[{"id":0} {"id":1} {"id":2}]`},
		"after the receipt has arrived": {devbroker.Fault{Command: devbroker.SendMessages, When: receipts, Action: devbroker.SwallowAnswerAndHang()}, `[{"id":0} {"id":1} {"id":2}]`},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.store.CreateTopic("s", "t", 2)
			d.store.CreateTopic("dead", "letters", 1)
			d.write(0, letter(0), letter(1), letter(2))
			fault := d.broker.Inject(c.fault)
			// The process dies: the replay, and all it could still do, is over.
			ended := make(chan error)
			go func() {
				_, err := d.replay(Filter{})
				ended <- err
			}()
			<-fault.Struck()
			if got := fmt.Sprint(d.arrived(1)); c.during != "" && got != c.during {
				t.Errorf("%s arrived, want %s", got, c.during)
			}
			fault.Remove()
			d.broker.DropConnections()
			if err := <-ended; err != nil {
				t.Fatal(err) // it repeats what was not confirmed by itself
			}
			d.mustReplay(Filter{}, 0, 0)
			d.mustList(Filter{})
			d.mustArrive(1, `{"id":0}`, `{"id":1}`, `{"id":2}`)
		})
	}
}

func TestReplay_given_a_failure_between_arrival_and_receipt_when_repeated_should_repeat_the_same_ids(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 2)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0), letter(1))
	origin := NewOrigin(d.client, d.config)
	defer origin.Close(d.ctx)
	ctx, cancel := context.WithCancel(d.ctx)
	_, err := d.topic.Settle(ctx, &Filter{}, Replayed, func(ctx context.Context, letters []Letter) ([]error, error) {
		if _, err := origin.Deliver(ctx, letters); err != nil {
			t.Error(err)
		}
		cancel()
		return nil, errTest // what arrived is not known, as after kill -9
	})
	if !errors.Is(err, errTest) {
		t.Fatalf("error %v", err)
	}
	d.mustList(Filter{}, "0-0", "0-1")
	d.mustReplay(Filter{}, 2, 0)
	all := d.store.Messages("s", "t", 1)
	if len(all) != 4 || all[0].ID != all[2].ID || all[1].ID != all[3].ID {
		t.Errorf("%+v arrived", all)
	}
}

func TestReplay_given_an_end_of_the_request_when_letters_have_arrived_should_mark_them_all_the_same(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0), letter(1), letter(2))
	ctx, cancel := context.WithCancel(d.ctx)
	outcome, err := d.topic.Settle(ctx, &Filter{}, Replayed, func(_ context.Context, letters []Letter) ([]error, error) {
		cancel()
		return []error{nil, errTest, nil}, errTest
	})
	if !errors.Is(err, errTest) || outcome != (Outcome{Done: 2, Refused: 1, Reason: errTest.Error()}) {
		t.Errorf("got %+v, error %v", outcome, err)
	}
	d.mustList(Filter{}, "0-1")
}

func TestReplay_given_more_letters_than_one_answer_holds_when_sent_back_should_send_all(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 2)
	d.store.CreateTopic("dead", "letters", 1)
	var want []string
	for i := range 2*chunk + 7 {
		d.write(0, letter(i))
		want = append(want, fmt.Sprintf(`{"id":%d}`, i))
	}
	d.mustReplay(Filter{}, len(want), 0)
	d.mustArrive(1, want...)
	if receipts := len(d.store.Messages("dead", "letters", 0)) - len(want); receipts != 3 {
		t.Errorf("%d receipts, want one for each of 3 chunks", receipts)
	}
}

func TestReplay_given_large_letters_behind_small_ones_when_read_should_ask_for_few_at_once(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 2)
	d.store.CreateTopic("dead", "letters", 1)
	large := bytes.Repeat([]byte("x"), 9<<20)
	for i := range 2000 {
		d.write(0, letter(i))
	}
	for i := range 8 {
		d.write(0, letter(i, func(l *Letter) { l.Stage, l.Payload = "large", large }))
	}
	d.mustReplay(Filter{Stage: "large"}, 8, 0)
	if arrived := d.arrived(1); len(arrived) != 8 || len(arrived[7]) != len(large) {
		t.Errorf("%d arrived", len(arrived))
	}
}

func TestPurge_given_letters_when_purged_should_be_done_and_arrive_nowhere(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("s", "t", 2)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0), letter(1, func(l *Letter) { l.Stage = "decode" }), letter(2))
	if outcome, err := d.topic.Settle(d.ctx, &Filter{Stage: "consume"}, Purged, Purge); err != nil || outcome.Done != 2 {
		t.Fatalf("purged %+v, error %v", outcome, err)
	}
	d.mustList(Filter{}, "0-1")
	d.mustArrive(1)
}

// Offsets begin anew after a purge of the topic; receipts are gone with what they marked.
func TestReceipts_given_a_purge_of_the_topic_when_letters_come_should_not_mark_those(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0), letter(1))
	if _, err := d.topic.Settle(d.ctx, &Filter{}, Purged, Purge); err != nil {
		t.Fatal(err)
	}
	d.mustList(Filter{})
	d.store.PurgeTopic("dead", "letters")
	d.write(0, letter(2), letter(3))
	d.mustList(Filter{}, "0-0", "0-1")
}

func TestReceipts_given_receipts_in_odd_forms_when_read_should_mark_only_what_lies_before_them(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0), letter(1), letter(2))
	for _, payload := range []string{`{`, `{"offsets":[[2,1]]}`, `{"offsets":[[-1,2]]}`, `{"offsets":"all"}`, `{}`} {
		d.store.Append("dead", "letters", 0, devbroker.Message{Payload: []byte(payload), Headers: own(HeaderReceipt, Purged)})
	}
	d.mustList(Filter{}, "0-0", "0-1", "0-2")
	d.store.Append("dead", "letters", 0, devbroker.Message{Payload: []byte(`{"offsets":[[2,18446744073709551615],[0,0],[0,0]]}`), Headers: own(HeaderReceipt, Purged)})
	d.write(0, letter(3))
	d.mustList(Filter{}, "0-1", "0-9")
}

func TestReceipts_given_many_runs_of_offsets_when_joined_should_hold_exactly_those(t *testing.T) {
	var d done
	for _, offsets := range [][]uint64{{5, 6, 7}, {1}, {8, 9, 12}, {6, 7}} {
		m := newReceipt(Replayed, offsets)
		d.add(&iggy.PolledMessage{Offset: 100, Payload: m.Payload})
	}
	d.settle()
	if got, want := fmt.Sprint(d.spans), "[[1 1] [5 9] [12 12]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for offset := range uint64(20) {
		want := offset == 1 || offset >= 5 && offset <= 9 || offset == 12
		if d.has(offset) != want {
			t.Errorf("offset %d: %t", offset, !want)
		}
	}
}

func TestList_given_iggy_fails_when_read_should_say_so(t *testing.T) {
	d := newDesk(t)
	d.store.CreateTopic("dead", "letters", 1)
	d.write(0, letter(0))
	d.broker.Inject(devbroker.Fault{Command: devbroker.PollMessages, Action: devbroker.Answer(devbroker.StatusPartitionNotFound)})
	if counts, err := d.topic.List(d.ctx, &Filter{}, func(*Letter) {}); err == nil {
		t.Errorf("listed %+v", counts)
	}
}
