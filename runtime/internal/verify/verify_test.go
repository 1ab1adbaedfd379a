// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package verify

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/iggy-connect-go/abi/wire"
	"github.com/apache/iggy-connect-go/runtime/internal/plugin"
)

const built = "../../../build"

// misbehaving is a library of tests/misbehaving.
func misbehaving(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(built, "misbehaving", "lib"+name+".so")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("%v: run make plugins", err)
	}
	return path
}

func emptyConfig(kind plugin.Kind) *Config {
	return &Config{Kind: kind, PluginConfig: []byte("{}"), Schema: wire.SchemaJSON}
}

// verified runs a library's checks.
func verified(t *testing.T, options Options) Report {
	t.Helper()
	if options.Timeout == 0 {
		options.Timeout = 30 * time.Second
	}
	report, err := Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// Each plugin of tests/misbehaving, the check that has to catch it, and as what.
var offenders = []struct {
	sin    string
	check  string
	status Status
	says   string
}{
	{"lacks_close", "library.symbols", Fail, "missing iggy_sink_close"},
	{"lacks_batch_result", "library.symbols", Fail, "missing iggy_source_batch_result"},
	{"exports_more", "library.exports", Warn, "helper_of_this_plugin"},
	{"exports_libc_name", "library.exports", Fail, "closelog"},
	{"needs_newer_glibc", "library.libc", Warn, "needs glibc 2.36"},
	{"needs_future_glibc", "library.libc", Fail, "needs glibc 2.999"},
	{"embeds_go_runtime", "library.go_runtime", Warn, "embeds a Go runtime"},
	{"crashes_in_constructor", "library.load", Crash, "SIGABRT"},
	{"hangs_in_constructor", "library.load", Fail, "took longer than"},
	{"needs_future_glibc", "library.load", Fail, "GLIBC_2.999"},
	{"crashes_in_version", "library.version", Crash, "SIGABRT"},
	{"lacks_version_text", "library.version", Fail, "NULL"},
	{"changes_directory", "library.process", Fail, "working directory"},
	{"changes_umask", "library.process", Fail, "umask"},
	{"installs_handler", "library.signals", Warn, "SIGUSR2"},
	{"installs_handler_without_onstack", "library.signals", Fail, "SIGUSR2"},

	{"returns_unknown_code_from_open", "sink.no_config", Fail, "open with no configuration returned 7"},
	{"hangs_in_open", "sink.no_config", Skip, "does not return within"},
	{"accepts_some_broken_config", "sink.broken_config", Warn, "returned IGGY_OK"},
	{"fails_silently", "sink.broken_config", Warn, "without a log record"},
	{"logs_no_utf8", "sink.log", Fail, "not UTF-8"},
	{"returns_unknown_code_from_open", "sink.open", Fail, "open with the given configuration returned 7"},
	{"crashes_in_open", "sink.open", Crash, "SIGABRT"},
	{"overflows_stack", "sink.open", Crash, "SIGSEGV"},
	{"throws", "sink.open", Crash, "SIGABRT"},
	{"calls_exit", "sink.open", Crash, "exited with code 0"},
	{"hangs_in_open", "sink.open", Fail, "took longer than"},
	{"hangs_in_close", "sink.open", Fail, "took longer than"},
	{"takes_duplicate_id", "sink.duplicate_id", Fail, "open of an id that is in use returned IGGY_OK"},
	{"closes_twice", "sink.close_twice", Fail, "a second close returned IGGY_OK"},
	{"closes_twice", "sink.unknown_id", Fail, "close of an id that was never opened"},
	{"consumes_for_unknown_id", "sink.unknown_id", Fail, "consume for an id that was never opened"},
	{"consumes_for_unknown_id", "sink.call_after_close", Fail, "consume after close"},
	{"leaks_memory", "sink.memory", Fail, "memory grew"},
	{"leaks_threads", "sink.memory", Fail, "threads"},
	{"leaks_descriptors", "sink.memory", Fail, "descriptors"},

	{"crashes_in_consume", "sink.batches", Crash, "SIGABRT"},
	{"hangs_in_consume", "sink.batches", Fail, "took longer than"},
	{"returns_unknown_code", "sink.batches", Fail, "returned 7"},
	{"fails_to_consume", "sink.batches", Warn, "IGGY_FAILED"},
	{"accepts_unknown_schema", "sink.schemas", Fail, "does not exist"},
	{"returns_unknown_code", "sink.headers", Fail, "returned 7"},
	{"accepts_broken_batches", "sink.broken_batches", Fail, "took a batch"},
	{"trusts_counts", "sink.broken_batches", Crash, "SIGABRT"},
	{"crashes_on_second_thread", "sink.threads", Crash, "SIGABRT"},
	{"closes_during_consume", "sink.close_while_consuming", Fail, "before a consume"},
	{"consumes_slowly", "sink.time", Warn, "takes "},

	{"crashes_in_poll", "source.batches", Crash, "SIGABRT"},
	{"numbers_batches_wrongly", "source.batches", Fail, "batch 1 has the id 2"},
	{"sends_for_other_id", "source.batches", Fail, "came under the id"},
	{"sends_garbage", "source.batches", Fail, "cannot be decoded"},
	{"stops_after_ack", "source.batches", Warn, "after an Ack"},
	{"starts_twice", "source.start_twice", Fail, "a second handle returned IGGY_OK"},
	{"sends_before_result", "source.one_in_flight", Fail, "before the result"},
	{"stops_after_nack", "source.nack", Fail, "after a Nack"},
	{"waits_too_short_after_nack", "source.nack", Fail, "not 100ms"},
	{"skips_nacked_records", "source.nack", Fail, "came others"},
	{"stops_after_refusal", "source.refused_batch", Fail, "after one was refused"},
	{"goes_on_after_five_nacks", "source.five_nacks", Fail, "fifth Nack"},
	{"accepts_result_for_unknown_id", "source.unknown_id", Fail, "batch_result for an id"},
	{"accepts_result_for_other_batch", "source.wrong_results", Fail, "another batch"},
	{"accepts_unknown_result", "source.wrong_results", Fail, "unknown result"},
	{"accepts_late_result", "source.wrong_results", Fail, "a second batch_result"},
	{"waits_for_result_for_ever", "source.result_timeout", Fail, "without a result"},
	{"waits_for_result_in_close", "source.close_while_waiting", Fail, "took longer than"},
	{"abandons_send", "source.close_while_sending", Fail, "had not returned"},
	{"polls_slowly", "source.close_while_polling", Warn, "broken off"},
	{"sends_after_close", "source.silent_after_close", Fail, "after close"},
	{"sends_after_close", "source.generation_1", Fail, "after close"},
	{"refuses_own_state", "source.state", Fail, "its own state"},
	{"takes_broken_state", "source.state", Warn, "broken state"},
}

func TestRun_given_an_offender_should_catch_it(t *testing.T) {
	misbehaving(t, "nothing_wrong_sink")
	t.Parallel()
	options := make([]Options, len(offenders))
	for i, offender := range offenders {
		kind := plugin.KindSink
		if strings.HasPrefix(offender.check, "source.") {
			kind = plugin.KindSource
		}
		options[i] = Options{
			Path:   filepath.Join(built, "misbehaving", "lib"+offender.sin+".so"),
			Config: emptyConfig(kind), Only: []string{offender.check}, Timeout: patience(offender.says),
		}
	}
	for i, report := range verifiedAll(t, options) {
		offender := offenders[i]
		t.Run(offender.sin+"/"+offender.check, func(t *testing.T) {
			if len(report.Results) != 1 {
				t.Skip("it was not built")
			}
			result := report.Results[0]
			if result.Status != offender.status || !strings.Contains(result.Message, offender.says) {
				t.Errorf("%s: %s", result.Status, result.Message)
			}
			if bad := offender.status == Fail || offender.status == Crash; report.OK() == bad {
				t.Errorf("the report says OK=%v", report.OK())
			}
		})
	}
}

// places are for verifications that run side by side.
var places = make(chan struct{}, 10)

// verifiedAll runs verifications side by side, because most of their time is spent in
// waiting. A library that was not built, for want of a tool, has no results.
func verifiedAll(t *testing.T, options []Options) []Report {
	reports := make([]Report, len(options))
	var verifying sync.WaitGroup
	for i, one := range options {
		if _, err := os.Stat(one.Path); err != nil {
			continue
		}
		verifying.Go(func() {
			places <- struct{}{}
			defer func() { <-places }()
			var err error
			if reports[i], err = Run(t.Context(), one); err != nil {
				t.Errorf("%s: %v", one.Path, err)
			}
		})
	}
	verifying.Wait()
	return reports
}

// patience is short for what hangs, and long for what only a loaded machine makes slow.
func patience(says string) time.Duration {
	if says == "took longer than" || says == "does not return within" {
		return 4 * time.Second
	}
	return 30 * time.Second
}

// A sin that no test expects would be no proof of anything.
func TestOffenders_given_what_was_built_should_be_complete(t *testing.T) {
	misbehaving(t, "nothing_wrong_sink")
	tested := map[string]bool{"nothing_wrong_sink": true, "nothing_wrong_source": true}
	checked := map[string]bool{}
	for _, offender := range offenders {
		tested[offender.sin] = true
		checked[offender.check] = true
	}
	libraries, err := filepath.Glob(filepath.Join(built, "misbehaving", "*.so"))
	if err != nil {
		t.Fatal(err)
	}
	for _, library := range libraries {
		if name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(library), "lib"), ".so"); !tested[name] {
			t.Errorf("%s is built, but no check has to catch it", name)
		}
	}
	for _, name := range []string{"nothing_wrong_sink", "nothing_wrong_source"} {
		info, err := plugin.Inspect(misbehaving(t, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range (&subject{info: info}).checks() {
			_, common, _ := strings.Cut(c.String(), ".")
			if !checked[c.String()] && !checked["sink."+common] {
				t.Errorf("nothing is caught by %s", c)
			}
		}
	}
}

func TestRun_given_no_configuration_should_skip_what_needs_an_instance(t *testing.T) {
	report := verified(t, Options{Path: misbehaving(t, "nothing_wrong_source")})
	if report.Count(Skip) == 0 || report.Count(Pass) == 0 || report.Count(Skip)+report.Count(Pass) != len(report.Results) || !report.OK() {
		t.Errorf("%+v", report)
	}
}

func TestRun_given_a_library_that_does_not_load_should_skip_the_rest(t *testing.T) {
	report := verified(t, Options{Path: misbehaving(t, "crashes_in_constructor"), Config: emptyConfig(plugin.KindSink)})
	if report.Count(Crash) != 1 || report.Count(Skip) < 10 {
		t.Errorf("%+v", report)
	}
}

func TestRun_given_names_should_run_those_checks(t *testing.T) {
	for only, want := range map[string][]string{
		"library.symbols": {"library.symbols"},
		"load":            {"library.load"},
		"*.close*":        {"source.close_twice", "source.close_while_waiting", "source.close_while_sending", "source.close_while_polling"},
	} {
		report := verified(t, Options{Path: misbehaving(t, "nothing_wrong_source"), Only: []string{only}})
		var got []string
		for _, result := range report.Results {
			got = append(got, result.Check)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %v", only, got)
		}
	}
	_, err := Run(t.Context(), Options{Path: misbehaving(t, "nothing_wrong_source"), Only: []string{"sinks"}, Timeout: time.Second})
	if err == nil || !strings.Contains(err.Error(), "source.state") {
		t.Errorf("%v", err)
	}
}

func TestRun_given_no_library_should_fail(t *testing.T) {
	if _, err := Run(t.Context(), Options{Path: "/nowhere/libnone.so", Timeout: time.Second}); err == nil {
		t.Error("no error")
	}
}

func TestRun_given_a_context_that_ends_should_end(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Second, cancel)
	begin := time.Now()
	_, err := Run(ctx, Options{Path: misbehaving(t, "hangs_in_constructor"), Timeout: time.Minute})
	if err == nil || time.Since(begin) > 30*time.Second {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

func TestEveryCheckHasItsPlaceInTheHeader(t *testing.T) {
	s := &subject{info: plugin.Info{Kinds: []plugin.Kind{plugin.KindSink, plugin.KindSource}, Generation: 2, Found: []string{"iggy_source_handle"}}}
	names := map[string]bool{}
	for _, c := range s.checks() {
		if rule, line := c.place(); line == 0 {
			t.Errorf("%s: connector.h has no %s", c, rule)
		}
		if names[c.String()] {
			t.Errorf("two checks are called %s", c)
		}
		names[c.String()] = true
	}
}

func TestNewest_given_names_of_versions_should_compare_numbers(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  glibc
	}{
		{nil, glibc{}},
		{[]string{"GLIBC_2.9", "GLIBC_2.34", "GCC_3.0"}, glibc{2, 34}},
		{[]string{"GLIBC_2.2.5", "GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR"}, glibc{2, 2}},
	} {
		if got := newest(test.names); got != test.want {
			t.Errorf("%v: %v", test.names, got)
		}
	}
}
