// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// letterSink adds a sink that sends what its plugin refuses to the topic "dead". The
// plugin refuses everything while the file "mood" says so, and writes to the file "out".
func (r *runtime) letterSink(key, topic string) {
	r.WriteFile("connectors/"+key+"_sink.toml", fmt.Sprintf(`
enabled = true
name = %q
path = %q
offset_commit = "after_consuming"
on_failure = "dead_letter"
retry.enabled = false
dead_letter = { stream = %[3]q, topic = "dead" }
streams = [{ stream = %[3]q, topics = [%q], schema = "json" }]
[plugin_config]
mood = %q
inner = %q
path = %q
`, key, harness.Library(r.T, "moody_sink"), r.Server.Stream, topic, r.Path("mood"), harness.Library(r.T, "file_sink"), r.Path("out")))
}

// letters are those of a connector, by 'dlq list'.
type letters struct {
	Letters                []struct{ Letter, Connector, Stage string }
	Total, Others, Foreign int
}

func (r *runtime) deadLetters(key string, args ...string) (found letters) {
	r.T.Helper()
	out := mustCLI(r.T, append([]string{"dlq", "list", key, "--url", r.URL, "--json"}, args...)...)
	if err := json.Unmarshal([]byte(out), &found); err != nil {
		r.T.Fatal(err)
	}
	return found
}

func (r *runtime) waitLetters(key string, total int) {
	r.T.Helper()
	harness.Eventually(r.T, fmt.Sprintf("%s has %d dead letters", key, total), func() bool { return r.deadLetters(key, "-n", "1").Total == total })
}

// killedReplays begins replays and kills the runtime in the middle of each, restarts it,
// and lets the last one come to its end.
func (r *runtime) killedReplays(target string, kills int) {
	r.T.Helper()
	for range kills {
		replay := exec.Command(harness.Built(r.T, "iggy-connect-go"), "dlq", "replay", "out", "--to", target, "--url", r.URL)
		if err := replay.Start(); err != nil {
			r.T.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(150)) * time.Millisecond)
		r.Kill()
		_ = replay.Wait() // it was interrupted, or has just made it
		r.Start()
		r.WaitStatus("sink", "out", "running")
	}
	mustCLI(r.T, "dlq", "replay", "out", "--to", target, "--url", r.URL)
}

// A letter is marked as done behind its confirmed arrival: whatever moment the process
// dies at, the letters of at most one chunk come once more.
func TestDeadLetters_given_kill_9_in_the_middle_of_replays_when_repeated_should_lose_none_and_repeat_a_chunk_at_most(t *testing.T) {
	t.Parallel()
	const messages, kills, chunk = 5000, 4, 1000
	for _, target := range []string{"topic", "connector"} {
		t.Run(target, func(t *testing.T) {
			t.Parallel()
			s := harness.NewServer(t)
			s.CreateTopic(t, "t", 1)
			r := newRuntime(t, s)
			r.letterSink("out", "t")
			r.WriteFile("mood", "refuse")
			s.Produce(t, "t", harness.Numbered(0, messages))
			r.Start()
			r.waitLetters("out", messages)
			r.WriteFile("mood", "")

			r.killedReplays(target, kills)
			r.waitLetters("out", 0)
			harness.Eventually(t, "all messages arrive", func() bool { return len(harness.Records(t, r.Path("out"))) >= messages })
			arrived := map[string]int{}
			for _, record := range harness.Records(t, r.Path("out")) {
				arrived[string(record.Payload)]++
			}
			repeated := 0
			for _, line := range harness.Numbered(0, messages) {
				if arrived[line] == 0 {
					t.Fatalf("%s is lost", line)
				}
				repeated += arrived[line] - 1
			}
			t.Logf("%d letters, %d kills: %d repeated", messages, kills, repeated)
			// A message that is replayed to its topic passes the sink, which a kill may make repeat a batch of its own.
			if repeated > kills*2*chunk {
				t.Errorf("%d messages were repeated by %d kills", repeated, kills)
			}
		})
	}
}

func TestDeadLetters_given_letters_when_looked_at_and_settled_should_show_and_do_what_was_asked(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	s.CreateTopic(t, "u", 1)
	s.CreateTopic(t, "dead", 1)
	r := newRuntime(t, s)
	r.letterSink("out", "t")
	r.letterSink("beside", "u")
	r.WriteFile("mood", "refuse")
	s.Produce(t, "dead", []string{"of somebody else"})
	r.Start()
	s.Produce(t, "t", harness.Numbered(0, 3))
	r.waitLetters("out", 3)

	if found := r.deadLetters("beside"); found.Total != 0 || found.Others != 3 || found.Foreign != 1 {
		t.Errorf("beside has %+v", found)
	}
	if found := r.deadLetters("beside", "--connector", "sink/out", "--stage", "consume", "--since", "1h"); found.Total != 3 {
		t.Errorf("sink/out has %+v", found)
	}
	first := r.deadLetters("out").Letters[0].Letter
	if out := mustCLI(t, "dlq", "show", "out", first, "--url", r.URL); !strings.Contains(out, `{"id":0,"name":"user_0"}`) || !strings.Contains(out, "consume returned 1") {
		t.Errorf("show printed\n%s", out)
	}

	for args, want := range map[string]string{
		"dlq replay out --to connector":   "refused: 3 letters stay, the first because consume returned 1",
		"dlq show out 0-999":              "dead_letter_not_found: ",
		"dlq list none":                   "not_found: there is no connector with the key none",
		"dlq replay sink/none --to topic": "sink_not_found: ",
	} {
		if _, stderr, code := cli(t, append(strings.Fields(args), "--url", r.URL)...); code != 1 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", args, code, stderr)
		}
	}
	mustCLI(t, "dlq", "purge", "out", "--letter", first, "--url", r.URL)
	r.waitLetters("out", 2)

	// The connector goes; its letters can be worked on through one beside it.
	if err := os.Remove(r.Path("connectors/out_sink.toml")); err != nil {
		t.Fatal(err)
	}
	r.Terminate(t)
	r.WriteFile("mood", "")
	r.Start()
	r.WaitStatus("sink", "beside", "running")
	if _, stderr, code := cli(t, "dlq", "replay", "beside", "--connector", "sink/out", "--to", "connector", "--url", r.URL); code != 1 || !strings.Contains(stderr, "does not read its topic") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	mustCLI(t, "dlq", "replay", "beside", "--connector", "sink/out", "--to", "topic", "--url", r.URL)
	if got := s.Payloads(t, "t", 0); len(got) != 5 || got[3] != harness.Numbered(1, 2)[0] {
		t.Errorf("the topic holds %v", got)
	}
	if found := r.deadLetters("beside"); found.Others != 0 {
		t.Errorf("beside has %+v", found)
	}
}

func TestDeadLetters_given_a_source_when_replayed_should_send_what_the_plugin_produced_to_its_topic(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.WriteFile("connectors/lines_source.toml", fmt.Sprintf(
		"enabled = true\nname = \"lines\"\npath = %q\non_message_error = \"dead_letter\"\ndead_letter = { stream = %[2]q, topic = \"dead\" }\n"+
			"streams = [{ stream = %[2]q, topic = \"t\", schema = \"json\" }]\n[plugin_config]\npath = %q\nschema = \"json\"\n",
		harness.Library(t, "file_source"), s.Stream, r.Path("lines")))
	harness.AppendLines(t, r.Path("lines"), []string{`{"id":0}`, `no json`, `{"id":2}`})
	r.Start()
	r.waitLetters("lines", 1)
	if found := r.deadLetters("lines", "--stage", "decode"); found.Total != 1 || found.Letters[0].Connector != "source/lines" {
		t.Errorf("lines has %+v", found)
	}
	if _, stderr, code := cli(t, "dlq", "replay", "lines", "--to", "connector", "--url", r.URL); code != 1 || !strings.Contains(stderr, "conflict: only a sink") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	mustCLI(t, "connectors", "stop", "lines", "--url", r.URL) // a replay to the topic needs no instance
	mustCLI(t, "dlq", "replay", "lines", "--to", "topic", "--url", r.URL)
	if got, want := strings.Join(s.Payloads(t, "t", 0), " "), `{"id":0} {"id":2} no json`; got != want {
		t.Errorf("the topic holds %s, want %s", got, want)
	}
	if found := r.deadLetters("lines"); found.Total != 0 {
		t.Errorf("lines has %+v", found)
	}
}

func TestDeadLetters_given_no_topic_for_them_or_no_iggy_when_asked_should_say_so_in_time(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	if s.Broker == nil {
		t.Skip("the server is not ours to end")
	}
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.letterSink("out", "t")
	r.Sink("plain", harness.Library(t, "count_sink"), "t", "")
	r.Start()
	if found := r.deadLetters("out"); found.Total != 0 {
		t.Errorf("out has %+v", found)
	}
	s.Broker.Kill()
	for key, want := range map[string]string{"plain": "no_dead_letter_topic: ", "out": "iggy_unreachable: "} {
		if _, stderr, code := cli(t, "dlq", "list", key, "--url", r.URL); code != 1 || !strings.Contains(stderr, want) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: exit code %d, %s", key, code, stderr)
		}
	}
}

func TestOffsets_given_a_stopped_sink_when_rewound_should_read_again_from_there(t *testing.T) {
	t.Parallel()
	s := harness.NewServer(t)
	s.CreateTopic(t, "t", 1)
	r := newRuntime(t, s)
	r.Sink("copy", harness.Library(t, "file_sink"), "t", fmt.Sprintf("path = %q", r.Path("copy")))
	r.Start()
	s.Produce(t, "t", harness.Numbered(0, 10))
	mustHold(t, r.Path("copy"), harness.Numbered(0, 10))
	if _, stderr, code := cli(t, "connectors", "offsets", "copy", "--rewind", "--url", r.URL); code != 1 || !strings.Contains(stderr, "conflict: ") {
		t.Errorf("a running sink: exit code %d, %s", code, stderr)
	}
	for _, change := range []struct {
		flag  string
		again int
	}{{"--set=0=6", 3}, {"--set=0=first", 10}, {"--rewind", 10}} {
		before := len(harness.Records(t, r.Path("copy")))
		mustCLI(t, "connectors", "stop", "copy", "--url", r.URL)
		r.mustNotSet(t, s.Stream, 7, "null", "there is no partition 7 of ")
		r.mustNotSet(t, s.Stream, 0, "10", "has no message with the offset 10 yet")
		mustCLI(t, "connectors", "offsets", "copy", change.flag, "--url", r.URL)
		mustCLI(t, "connectors", "start", "copy", "--url", r.URL)
		harness.Eventually(t, change.flag+" brings messages again", func() bool {
			return len(harness.Records(t, r.Path("copy"))) == before+change.again
		})
		got := harness.Records(t, r.Path("copy"))[before].Offset
		if want := uint64(10 - change.again); got != want {
			t.Errorf("%s: it begins with offset %d, want %d", change.flag, got, want)
		}
	}
}

// mustNotSet asks for an offset of copy that cannot be.
func (r *runtime) mustNotSet(t *testing.T, stream string, partition int, offset, reason string) {
	t.Helper()
	body := fmt.Sprintf(`{"offsets":[{"stream":%q,"topic":"t","partition":%d,"stored_offset":%s}]}`, stream, partition, offset)
	if status, answer := r.call("PUT", "/sinks/copy/offsets", body); status != 400 || !strings.Contains(answer, reason) {
		t.Errorf("PUT %s: %d %s, want 400 with %q", body, status, answer, reason)
	}
}
