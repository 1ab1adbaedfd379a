// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connector

import (
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/devbroker"
)

// trickle configures a source that produces 3 to 5 messages at a time, and a sink for them.
func (w *world) trickle(library, extra string) {
	w.source("in", library, "t", extra, `interval = "20ms"`+"\nmessages_range = [3, 5]\n")
	w.sink("out", "count_sink", `["t"]`, extra, "")
}

// scrape returns the value of one series.
func (w *world) scrape(series string) string {
	w.t.Helper()
	var text strings.Builder
	if _, err := w.metrics.WriteTo(&text); err != nil {
		w.t.Fatal(err)
	}
	for line := range strings.Lines(text.String()) {
		if value, ok := strings.CutPrefix(line, series+" "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func (w *world) count(kind, key, stage string) string {
	return w.scrape(fmt.Sprintf(`iggy_connector_stage_duration_seconds_count{connector_key=%q,connector_type=%q,stage=%q}`, key, kind, stage))
}

// Scenarios 14, 15 and 18.
func TestBenchmark_given_true_when_messages_move_should_log_an_event_a_batch(t *testing.T) {
	for _, library := range []string{"random_source", "random_source_gen1"} {
		t.Run(library, func(t *testing.T) {
			w := newWorld(t)
			w.trickle(library, "benchmark = true")
			w.start()
			w.eventually("events of both", func() bool { return len(w.events("sink")) >= 3 && len(w.events("source")) >= 3 })

			for _, kind := range []string{"sink", "source"} {
				key := map[string]string{"sink": "out", "source": "in"}[kind]
				if !strings.Contains(w.logs.String(), "Benchmark mode enabled for "+kind+" connector with ID: ") {
					t.Errorf("no start line of the %s", kind)
				}
				for _, event := range w.events(kind) {
					stages := event["decode_us"] + event["prepare_us"] + event["ffi_us"] + event["iggy_send_us"] + event["state_save_us"]
					done := event["processed_count"] + event["sent_count"]
					if event["total_us"] <= 0 || stages > event["total_us"]+100 || event["batch_size"] <= 0 || done != event["batch_size"] {
						t.Errorf("%s: %v", key, event)
					}
				}
			}
			sizes := []int{}
			for _, event := range w.events("source") {
				sizes = append(sizes, event["batch_size"])
			}
			if largest := slices.Max(sizes); library == "random_source" && (largest < 3 || largest > 5) {
				t.Errorf("largest batch of the source: %d", largest)
			}
			for _, stage := range []string{"decode", "prepare", "ffi", "total"} {
				if n := w.count("sink", "out", stage); n == "" || n == "0" {
					t.Errorf("sink stage %s was observed %q times", stage, n)
				}
			}
			for _, stage := range []string{"decode", "prepare", "iggy_send", "state_save", "total"} {
				if n := w.count("source", "in", stage); n == "" || n == "0" {
					t.Errorf("source stage %s was observed %q times", stage, n)
				}
			}
		})
	}
}

// Fields of an event, in order, as the text handler of these tests writes them.
var eventFields = map[string]string{
	"sink": "connector_type=sink connector_key=out stream=s topic=t partition_id=%d current_offset=%d " +
		"batch_size=%d processed_count=%d decode_us=%d prepare_us=%d ffi_us=%d total_us=%d",
	"source": "connector_type=source connector_key=in batch_size=%d sent_count=%d " +
		"decode_us=%d prepare_us=%d iggy_send_us=%d state_saved=true state_save_us=%d total_us=%d",
}

// events returns the numbers of the benchmark events so far. An event that does not have
// exactly the fields above fails the test.
func (w *world) events(kind string) (all []map[string]int) {
	w.t.Helper()
	names := []string{}
	for field := range strings.FieldsSeq(eventFields[kind]) {
		if name, ok := strings.CutSuffix(field, "=%d"); ok {
			names = append(names, name)
		}
	}
	for line := range strings.Lines(w.logs.String()) {
		_, fields, found := strings.Cut(line, "msg=benchmark target=iggy_connectors::benchmark ")
		if !found || !strings.HasPrefix(fields, "connector_type="+kind+" ") {
			continue
		}
		values := make([]int, len(names))
		into := make([]any, len(names))
		for i := range values {
			into[i] = &values[i]
		}
		if _, err := fmt.Sscanf(fields, eventFields[kind]+"\n", into...); err != nil {
			w.t.Fatalf("%v: %s", err, fields)
		}
		event := map[string]int{}
		for i, name := range names {
			event[name] = values[i]
		}
		all = append(all, event)
	}
	return all
}

// numberedEvent is an event of which a number is all there is to tell.
type numberedEvent int

func (numberedEvent) ended() time.Time { return time.Time{} }
func (n numberedEvent) appendTo(attrs []slog.Attr) []slog.Attr {
	return append(attrs, slog.Int("number", int(n)))
}

// newEventLog returns an event log that writes into a buffer.
func newEventLog(t *testing.T) (*eventLog, *logBuffer) {
	written := new(logBuffer)
	c := &connector{env: &Environment{Logger: slog.New(slog.NewTextHandler(written, nil))}, log: slog.New(slog.DiscardHandler)}
	return c.benchmarkLog(true, 1), written
}

func TestEventLog_given_more_events_than_may_wait_when_closed_should_have_written_all_in_order(t *testing.T) {
	events, written := newEventLog(t)
	const many = 3*maxEvents + 1
	for i := range many {
		events.add(numberedEvent(i))
	}
	events.close()
	lines := strings.Split(strings.TrimSpace(written.String()), "\n")
	if len(lines) != many {
		t.Fatalf("%d events were written, want %d", len(lines), many)
	}
	for i, line := range lines {
		if !strings.HasSuffix(line, fmt.Sprintf(" number=%d", i)) {
			t.Fatalf("event %d: %s", i, line)
		}
	}
}

func TestEventLog_given_a_single_event_when_nothing_follows_should_write_it(t *testing.T) {
	events, written := newEventLog(t)
	defer events.close()
	events.add(numberedEvent(7))
	for end := time.Now().Add(time.Minute); !strings.Contains(written.String(), "number=7"); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it was not written")
		}
	}
}

// Scenarios 16 and 19.
func TestBenchmark_given_false_when_messages_move_should_log_no_event_and_observe_all_the_same(t *testing.T) {
	w := newWorld(t)
	w.trickle("random_source", "benchmark = false")
	w.start()
	w.eventually("messages moved", func() bool { return w.metrics.Sink("out").Processed.Get() > 20 })
	if log := w.logs.String(); strings.Contains(log, "enchmark") || !strings.Contains(log, "Processing messages") {
		t.Errorf("log: %s", log)
	}
	if n := w.count("sink", "out", "total"); n == "" || n == "0" {
		t.Errorf("sink stage total was observed %q times", n)
	}
}

func TestTraces_given_traceparent_when_messages_move_should_link_the_batch_and_pass_it_on(t *testing.T) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	exporter := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter))
	w := newWorld(t)
	w.tracer = provider.Tracer("test")
	blob := []byte{byte(wire.SchemaJSON), 1, 0, 0, 0, 0, 1}
	blob = append(blob, wire.AppendHeaders(nil, []wire.Header{{
		Key:   wire.HeaderField{Kind: wire.KindString, Value: []byte("traceparent")},
		Value: wire.HeaderField{Kind: wire.KindString, Value: []byte(parent)},
	}})...)
	blob = append(blob, 2, '{', '}', 1, 1, 's') // and a state
	w.relay("in", "relay_source", blob, "")
	w.fileSink("out", `["t"]`)
	w.start()
	w.mustArrive("out", []string{"{}"})
	w.stop()

	if got := string(w.records("out")[0].Headers["traceparent"]); got != `{"string":"`+parent+`"}` {
		t.Errorf("passed on: %s", got)
	}
	spans := exporter.GetSpans()
	for name, parts := range map[string][]string{
		"forward":     {"prepare", "send", "save state", "plugin call"},
		"consume s/t": {"poll", "prepare", "plugin call", "commit"},
	} {
		i := slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == name })
		if i < 0 {
			t.Fatalf("no span %q among %d", name, len(spans))
		}
		batch := spans[i]
		if len(batch.Links) != 1 || batch.Links[0].SpanContext.TraceID().String() != parent[3:35] {
			t.Errorf("%s is linked to %v", name, batch.Links)
		}
		for _, part := range parts {
			if !slices.ContainsFunc(spans, func(s tracetest.SpanStub) bool {
				return s.Name == part && s.Parent.SpanID() == batch.SpanContext.SpanID() &&
					!s.StartTime.Before(batch.StartTime) && !s.EndTime.After(batch.EndTime)
			}) {
				t.Errorf("%s has no part %q", name, part)
			}
		}
	}
}

// A batch that is held for another try, dropped or becomes dead letters has failed as well.
func TestTraces_given_plugin_refuses_when_the_loop_goes_on_should_show_the_batch_as_failed(t *testing.T) {
	for name, extra := range map[string]string{
		"held":    "offset_commit = \"after_consuming\"\n",
		"dropped": "on_failure = \"drop\"\n",
	} {
		t.Run(name, func(t *testing.T) {
			exporter := tracetest.NewInMemoryExporter()
			w := newWorld(t)
			w.tracer = sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test")
			w.store.CreateTopic("s", "t", 1)
			w.append("t", "{}")
			w.sink("out", "moody_sink", `["t"]`, extra, "consume_code = 7")
			w.start()
			w.eventually("the span says so", func() bool {
				return slices.ContainsFunc(exporter.GetSpans(), func(s tracetest.SpanStub) bool {
					return s.Name == "consume s/t" && s.Status.Code == codes.Error && s.Status.Description == "consume returned 7"
				})
			})
		})
	}
}

func TestBytes_given_messages_when_they_move_should_count_payloads_alone(t *testing.T) {
	w := newWorld(t)
	w.fileSource("in", "file_source", "t")
	w.fileSink("out", `["t"]`)
	w.start()
	w.write("in.ndjson", `{"id":1}`, `{"id":22}`)
	w.mustArrive("out", []string{`{"id":1}`, `{"id":22}`})
	for _, series := range []string{
		`iggy_connector_input_bytes_total{connector_key="in",connector_type="source"}`,
		`iggy_connector_output_bytes_total{connector_key="in",connector_type="source"}`,
		`iggy_connector_input_bytes_total{connector_key="out",connector_type="sink"}`,
		`iggy_connector_output_bytes_total{connector_key="out",connector_type="sink"}`,
	} {
		w.eventually(series, func() bool { return w.scrape(series) == "17" })
	}
}

func TestRestarts_given_disabled_connector_when_enabled_and_restarted_should_not_count_its_first_start(t *testing.T) {
	w := newWorld(t)
	w.store.CreateTopic("s", "t", 1)
	id := w.fileSink("out", `["t"]`)
	w.configs[id].Common().Enabled = false
	w.start()
	w.fileSink("out", `["t"]`)
	for restarts := range uint64(2) {
		if err := w.manager.Restart(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		w.waitStatus(id, StatusRunning)
		if got := w.metrics.Sink("out").Restarts.Get(); got != restarts {
			t.Errorf("%d restarts, want %d", got, restarts)
		}
	}
}

// A busy loop must not make a span for each of its thousands of batches.
func TestTraces_given_many_batches_when_nothing_is_wrong_should_show_examples_only(t *testing.T) {
	exporter := tracetest.NewInMemoryExporter()
	s := &spans{example: new(time.Time), tracer: sdktrace.NewTracerProvider(sdktrace.WithSyncer(exporter)).Tracer("test"), name: "batch"}
	const batches = 1000 // one a millisecond
	work := func(failure error) (shown int) {
		exporter.Reset()
		for i := range batches {
			end := time.UnixMilli(int64(i))
			s.begin()
			if s.wants(failure, end) {
				s.batch(end, end, failure)
			}
		}
		return len(exporter.GetSpans())
	}
	if n, examples := work(nil), 10; n != examples {
		t.Errorf("%d spans of %d batches, want %d as examples", n, batches, examples)
	}
	if n := work(errUndelivered); n != batches {
		t.Errorf("%d spans of %d failed batches", n, batches)
	}
}

// What is dropped for the message's own sake is counted in TestSink_given_bad_messages and
// TestSource_given_bad_message_in_a_batch, states in TestSource_given_state_directory_vanishes,
// what a plugin hands over in TestSource_given_garbage.
func TestErrors_given_iggy_fails_when_asked_should_count_and_log_it(t *testing.T) {
	first := func(c devbroker.Command, action devbroker.Action) *devbroker.Fault {
		return &devbroker.Fault{Command: c, When: devbroker.Nth(1), Action: action}
	}
	for line, c := range map[string]struct {
		kind, topic string
		fault       *devbroker.Fault
	}{
		"Poll failed":                         {"sink", "t", first(devbroker.PollMessages, devbroker.Answer(devbroker.StatusOK, 7))},
		"Sink cannot consume, it tries again": {"sink", "missing", nil},
		"Batch was not delivered":             {"source", "t", first(devbroker.SendMessages, devbroker.Answer(devbroker.StatusPayloadTooBig))},
	} {
		t.Run(line, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			if c.fault != nil {
				w.broker.Inject(*c.fault)
			}
			if c.kind == "source" {
				w.relay("c", "relay_source", jsonBlob("x", "{}"), "")
			} else {
				w.sink("c", "count_sink", fmt.Sprintf("[%q]", c.topic), "", "")
			}
			w.start()
			counter := fmt.Sprintf(`iggy_connector_errors_total{connector_key="c",connector_type=%q}`, c.kind)
			w.eventually("it is counted and logged", func() bool { return w.scrape(counter) != "0" && strings.Contains(w.logs.String(), line) })
		})
	}
}

// Nothing else tells what a source or a dead letter waits for.
func TestRetries_given_iggy_refuses_sends_for_now_should_count_and_log_each(t *testing.T) {
	for kind, configure := range map[string]func(*world){
		"source": func(w *world) { w.relay("c", "relay_source", jsonBlob("x", "{}"), "") },
		"sink": func(w *world) {
			w.append("t", "no json")
			w.sink("c", "count_sink", `["t"]`, "on_message_error = \"dead_letter\"\n"+deadLetterTopic, "")
		},
	} {
		t.Run(kind, func(t *testing.T) {
			w := newWorld(t)
			w.store.CreateTopic("s", "t", 1)
			configure(w)
			w.broker.Inject(devbroker.Fault{Command: devbroker.SendMessages, When: devbroker.First(2), Action: devbroker.Answer(devbroker.StatusError)})
			w.start()
			counter := fmt.Sprintf(`iggy_connector_retries_total{connector_key="c",connector_type=%q}`, kind)
			w.eventually("both are counted", func() bool { return w.scrape(counter) == "2" })
			if n := strings.Count(w.logs.String(), "Send failed, it is repeated"); n != 2 {
				t.Errorf("%d lines in the log, want 2", n)
			}
		})
	}
}

func TestPluginLog_given_a_call_when_the_plugin_logs_should_name_connector_and_instance(t *testing.T) {
	w := newWorld(t)
	w.sink("out", "file_sink", `["t"]`, "", fmt.Sprintf("path = %q", w.path("missing/out")))
	w.start()
	line := regexp.MustCompile(`level=ERROR msg="cannot open .*missing/out.*" connector_key=out connector_type=sink ` +
		`target=connector plugin_id=[1-9]\d* connector_target=file_sink`)
	w.eventually("the plugin's reason is logged", func() bool { return line.MatchString(w.logs.String()) })
}
