// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// upstreamSeries are the names that existing dashboards and alerts select.
var upstreamSeries = []string{
	"iggy_connector_errors_total",
	"iggy_connector_messages_consumed_total",
	"iggy_connector_messages_filtered_total",
	"iggy_connector_messages_processed_total",
	"iggy_connector_messages_produced_total",
	"iggy_connector_messages_sent_total",
	"iggy_connector_stage_duration_seconds_bucket",
	"iggy_connector_stage_duration_seconds_count",
	"iggy_connector_stage_duration_seconds_sum",
	"iggy_connectors_sinks_running",
	"iggy_connectors_sinks_total",
	"iggy_connectors_sources_running",
	"iggy_connectors_sources_total",
}

func scrape(t *testing.T, s *Set) string {
	t.Helper()
	var text strings.Builder
	if _, err := s.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	return text.String()
}

// seriesOf returns the lines of one series name, in order.
func seriesOf(text, name string) []string {
	var found []string
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == '{' || rest[0] == ' ') {
			found = append(found, strings.TrimSuffix(line, "\n"))
		}
	}
	return found
}

func expectLine(t *testing.T, text, line string) {
	t.Helper()
	if !slices.Contains(strings.Split(text, "\n"), line) {
		t.Errorf("missing line %s", line)
	}
}

func TestGivenFreshConnectorsWhenScrapedThenEveryUpstreamSeriesExistsWithZero(t *testing.T) {
	set := NewSet()
	set.Source("in")
	set.Sink("out")

	text := scrape(t, set)

	for _, name := range upstreamSeries {
		series := seriesOf(text, name)
		if len(series) == 0 {
			t.Errorf("no series %s", name)
		}
		for _, line := range series {
			if !strings.HasSuffix(line, " 0") {
				t.Errorf("not zero at the start: %s", line)
			}
		}
	}
	if strings.Contains(text, "_total_total") {
		t.Error("a suffix is doubled")
	}
	for stage, kinds := range map[string][]string{
		"decode": {"source", "sink"}, "prepare": {"source", "sink"}, "total": {"source", "sink"},
		"iggy_send": {"source"}, "state_save": {"source"}, "ffi": {"sink"},
	} {
		count := 0
		for _, line := range seriesOf(text, "iggy_connector_stage_duration_seconds_count") {
			if strings.Contains(line, `stage="`+stage+`"`) {
				count++
			}
		}
		if count != len(kinds) {
			t.Errorf("stage %s has %d series, want those of %v", stage, count, kinds)
		}
	}
}

func TestGivenUpstreamNamesWhenScrapedThenHelpAndTypeAreAsListed(t *testing.T) {
	set := NewSet()
	set.Source("in")
	set.Sink("out")

	text := scrape(t, set)

	for name, want := range map[string]struct{ kind, help string }{
		"iggy_connectors_sources_total":           {"gauge", "Total configured source connectors."},
		"iggy_connectors_sources_running":         {"gauge", "Sources in Running status."},
		"iggy_connectors_sinks_total":             {"gauge", "Total configured sink connectors."},
		"iggy_connectors_sinks_running":           {"gauge", "Sinks in Running status."},
		"iggy_connector_messages_produced_total":  {"counter", "Messages received from source plugin poll."},
		"iggy_connector_messages_sent_total":      {"counter", "Messages sent to Iggy (source)."},
		"iggy_connector_messages_consumed_total":  {"counter", "Messages consumed from Iggy (sink)."},
		"iggy_connector_messages_processed_total": {"counter", "Messages processed and sent to sink plugin."},
		"iggy_connector_messages_filtered_total":  {"counter", "Messages intentionally dropped by transforms returning Ok(None)."},
		"iggy_connector_errors_total":             {"counter", "Errors encountered."},
		"iggy_connector_stage_duration_seconds":   {"histogram", "Per-batch processing stage duration in seconds."},
	} {
		expectLine(t, text, "# HELP "+name+" "+want.help)
		expectLine(t, text, "# TYPE "+name+" "+want.kind)
	}
}

func TestGivenObservationsWhenScrapedThenBucketsHaveTheListedBounds(t *testing.T) {
	set := NewSet()
	sink := set.Sink("out")
	sink.Observe(StageFFI, 20*time.Microsecond)
	sink.Observe(StageFFI, 700*time.Millisecond)
	sink.Observe(StageFFI, time.Minute)

	text := scrape(t, set)

	const series = `iggy_connector_stage_duration_seconds_bucket{connector_key="out",connector_type="sink",stage="ffi",le="%s"} %d`
	for _, bucket := range []struct {
		bound string
		count int
	}{
		{"0.00005", 1}, {"0.0001", 1}, {"0.00025", 1}, {"0.0005", 1}, {"0.001", 1}, {"0.005", 1}, {"0.01", 1},
		{"0.05", 1}, {"0.1", 1}, {"0.25", 1}, {"0.5", 1}, {"1.0", 2}, {"5.0", 2}, {"+Inf", 3},
	} {
		expectLine(t, text, fmt.Sprintf(series, bucket.bound, bucket.count))
	}
	expectLine(t, text, `iggy_connector_stage_duration_seconds_count{connector_key="out",connector_type="sink",stage="ffi"} 3`)
	expectLine(t, text, `iggy_connector_stage_duration_seconds_sum{connector_key="out",connector_type="sink",stage="ffi"} 60.70002`)
}

func TestGivenASourceAndASinkOfOneKeyWhenCountedThenTheirSeriesStayApart(t *testing.T) {
	set := NewSet()
	set.Source("same").Errors.Add(1)
	set.Sink("same").Errors.Add(2)

	text := scrape(t, set)

	expectLine(t, text, `iggy_connector_errors_total{connector_key="same",connector_type="source"} 1`)
	expectLine(t, text, `iggy_connector_errors_total{connector_key="same",connector_type="sink"} 2`)
}

func TestGivenARestartWhenTheConnectorIsTakenAgainThenItsCountersGoOn(t *testing.T) {
	set := NewSet()
	set.Sink("out").Processed.Add(5)
	set.Sink("out").Processed.Add(6)

	expectLine(t, scrape(t, set), `iggy_connector_messages_processed_total{connector_key="out",connector_type="sink"} 11`)
}

func TestGivenHostileNamesWhenScrapedThenLabelValuesAreEscaped(t *testing.T) {
	set := NewSet()
	set.Sink("a\"b\\c\nd\xff").Lag(`s"`, "t,le=\"1\"}", 7).Set(42)

	expectLine(t, scrape(t, set), `iggy_connector_lag_messages{connector_key="a\"b\\c\nd`+"\uFFFD"+
		`",connector_type="sink",stream="s\"",topic="t,le=\"1\"}",partition="7"} 42`)
}

func TestGivenARevokedPartitionWhenForgottenThenItsLagIsGoneUntilAssignedAgain(t *testing.T) {
	set := NewSet()
	sink := set.Sink("out")
	const series = `iggy_connector_lag_messages{connector_key="out",connector_type="sink",stream="s",topic="t",partition="1"}`
	sink.Lag("s", "t", 1).Set(9)
	expectLine(t, scrape(t, set), series+" 9")

	sink.ForgetLag("s", "t", 1)

	if strings.Contains(scrape(t, set), series) {
		t.Error("the lag of a revoked partition is still exposed")
	}
	sink.Lag("s", "t", 1).Set(3)
	expectLine(t, scrape(t, set), series+" 3")
}

func TestGivenAPartitionThatMovesWithinASinkWhenForgottenByOneLoopThenItsLagStays(t *testing.T) {
	set := NewSet()
	sink := set.Sink("out")
	const series = `iggy_connector_lag_messages{connector_key="out",connector_type="sink",stream="s",topic="t",partition="1"}`
	sink.Lag("s", "t", 1).Set(9)
	sink.Lag("s", "t", 1).Set(3)

	sink.ForgetLag("s", "t", 1)
	expectLine(t, scrape(t, set), series+" 3")

	sink.ForgetLag("s", "t", 1)
	if strings.Contains(scrape(t, set), series) {
		t.Error("the lag is still exposed when both have forgotten it")
	}
}

func TestGivenAStatusSourceWhenScrapedThenGaugesFollowItEachTime(t *testing.T) {
	set := NewSet()
	counts := Counts{SourcesTotal: 4, SourcesRunning: 3, SinksTotal: 2, SinksRunning: 1}
	set.CountConnectors(func() Counts { return counts })
	text := scrape(t, set)
	expectLine(t, text, "iggy_connectors_sources_total 4")
	expectLine(t, text, "iggy_connectors_sources_running 3")
	expectLine(t, text, "iggy_connectors_sinks_total 2")
	expectLine(t, text, "iggy_connectors_sinks_running 1")

	counts.SourcesRunning = 0

	expectLine(t, scrape(t, set), "iggy_connectors_sources_running 0")
}

func TestGivenARunningCallAndASavedStateWhenScrapedThenTheirAgesShow(t *testing.T) {
	set := NewSet()
	source := set.Source("in")
	const labels = `{connector_key="in",connector_type="source"}`
	text := scrape(t, set)
	expectLine(t, text, "iggy_connector_plugin_call_age_seconds"+labels+" 0")
	expectLine(t, text, "iggy_connector_state_age_seconds"+labels+" 0")

	source.WatchCalls(func() time.Duration { return 90 * time.Second })
	source.StateSaved(time.Now().Add(-time.Hour))

	text = scrape(t, set)
	expectLine(t, text, "iggy_connector_plugin_call_age_seconds"+labels+" 90")
	var age float64
	if _, err := fmt.Sscanf(seriesOf(text, "iggy_connector_state_age_seconds")[0],
		"iggy_connector_state_age_seconds"+labels+" %g", &age); err != nil || age < 3600 || age > 7200 {
		t.Errorf("state age %v (%v), want about an hour", age, err)
	}
}

// touchEverything is what a loop adds for one batch.
func touchEverything(c *Connector) {
	c.Produced.Add(10)
	c.Sent.Add(10)
	c.Consumed.Add(10)
	c.Processed.Add(10)
	c.Filtered.Add(1)
	c.Errors.Add(1)
	c.BytesIn.Add(2560)
	c.BytesOut.Add(2560)
	c.QueueBatches.Inc()
	c.QueueBytes.Add(2560)
	c.ObserveBatch(10)
	for stage := range stageCount {
		c.Observe(stage, 30*time.Microsecond)
	}
	c.StateSaved(time.Now())
}

func TestGivenABatchWhenItIsCountedThenNothingIsAllocated(t *testing.T) {
	set := NewSet()
	for _, c := range []*Connector{set.Source("in"), set.Sink("out")} {
		if allocations := testing.AllocsPerRun(100, func() { touchEverything(c) }); allocations != 0 {
			t.Errorf("%v allocations a batch", allocations)
		}
	}
}

func TestGivenManyLoopsWhenScrapedMeanwhileThenNoCountIsLost(t *testing.T) {
	const loops, batches = 8, 200
	set := NewSet()
	var work sync.WaitGroup
	for range loops {
		work.Go(func() {
			for range batches {
				touchEverything(set.Source("in"))
				touchEverything(set.Sink("out"))
			}
		})
	}
	for range 20 {
		scrape(t, set)
	}
	work.Wait()

	text := scrape(t, set)
	expectLine(t, text, fmt.Sprintf(`iggy_connector_messages_sent_total{connector_key="in",connector_type="source"} %d`, loops*batches*10))
	expectLine(t, text, fmt.Sprintf(`iggy_connector_stage_duration_seconds_count{connector_key="out",connector_type="sink",stage="ffi"} %d`, loops*batches))
}

func TestGivenPromtoolWhenItChecksTheTextThenOnlyUpstreamsGaugeNamesAreReported(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian package prometheus)")
	}
	set := NewSet()
	touchEverything(set.Source("in"))
	touchEverything(set.Sink("out"))
	set.Sink("out").Lag("s", "t", 1).Set(1)

	check := exec.Command(promtool, "check", "metrics")
	check.Stdin = strings.NewReader(scrape(t, set))
	report, _ := check.CombinedOutput() // a finding is a non-zero exit

	var reported []string
	for line := range strings.Lines(string(report)) {
		name, _, _ := strings.Cut(line, " ")
		reported = append(reported, strings.TrimSpace(name))
	}
	slices.Sort(reported)
	if want := []string{"iggy_connectors_sinks_total", "iggy_connectors_sources_total"}; !slices.Equal(reported, want) {
		t.Errorf("promtool reports:\n%s", report)
	}
}

func BenchmarkScrape(b *testing.B) {
	set := NewSet()
	for i := range 64 {
		set.Sink(fmt.Sprint("sink-", i))
	}
	for b.Loop() {
		if _, err := set.WriteTo(&strings.Builder{}); err != nil {
			b.Fatal(err)
		}
	}
}
