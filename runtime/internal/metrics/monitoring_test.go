// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

const monitoring = "../../../configs/monitoring"

// query is one PromQL expression of a file for operators.
type query struct{ where, expr string }

func readMonitoring(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(monitoring, name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func alertQueries(t *testing.T) (queries []query) {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr string }
		}
	}
	if err := yaml.Unmarshal(readMonitoring(t, "alerts.yaml"), &file); err != nil {
		t.Fatal(err)
	}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			queries = append(queries, query{rule.Alert, rule.Expr})
		}
	}
	return queries
}

// dashboardQueries returns the queries of the panels with the variables of Grafana replaced.
func dashboardQueries(t *testing.T) (queries []query) {
	t.Helper()
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(readMonitoring(t, "dashboard.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	variables := strings.NewReplacer("$__rate_interval", "5m", "$instance", ".*", "$connector", ".*")
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, query{panel.Title, variables.Replace(target.Expr)})
		}
	}
	return queries
}

// exportedLabels returns the labels of every series that a runtime with a source and a sink
// exports, by name.
func exportedLabels(t *testing.T) map[string][]string {
	t.Helper()
	set := NewSet()
	set.Source("in").StateSaved(time.Now())
	set.Sink("out").Lag("s", "t", 1).Set(1)
	exported := map[string][]string{}
	line := regexp.MustCompile(`^(\w+)(?:\{(.*)\})? `)
	label := regexp.MustCompile(`(\w+)="`)
	for text := range strings.Lines(scrape(t, set)) {
		series := line.FindStringSubmatch(text)
		if series == nil {
			continue // a comment
		}
		labels := exported[series[1]]
		for _, name := range label.FindAllStringSubmatch(series[2], -1) {
			labels = append(labels, name[1])
		}
		exported[series[1]] = labels
	}
	return exported
}

var (
	seriesName = regexp.MustCompile(`\b((?:iggy|process|go)_\w+)(?:\{([^}]*)\})?`)
	matcher    = regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping   = regexp.MustCompile(`\b(?:by|on)\s*\(([^)]*)\)`)
)

func TestGivenAlertsAndDashboardWhenTheirQueriesAreReadThenEverySeriesAndLabelIsExported(t *testing.T) {
	exported := exportedLabels(t)
	queries := append(alertQueries(t), dashboardQueries(t)...)
	if len(queries) < 30 {
		t.Fatalf("only %d queries were found", len(queries))
	}
	for _, q := range queries {
		names := seriesName.FindAllStringSubmatch(q.expr, -1)
		if len(names) == 0 {
			t.Errorf("%s asks for no series: %s", q.where, q.expr)
		}
		known := []string{"instance"} // Prometheus adds it to what it scrapes
		for _, name := range names {
			labels, ok := exported[name[1]]
			if !ok {
				t.Errorf("%s asks for %s, which is not exported", q.where, name[1])
			}
			known = append(known, labels...)
			for _, m := range matcher.FindAllStringSubmatch(name[2], -1) {
				if m[1] != "instance" && !slices.Contains(labels, m[1]) {
					t.Errorf("%s selects %s by %s, which it does not have", q.where, name[1], m[1])
				}
			}
		}
		for _, group := range grouping.FindAllStringSubmatch(q.expr, -1) {
			for name := range strings.SplitSeq(group[1], ",") {
				if !slices.Contains(known, strings.TrimSpace(name)) {
					t.Errorf("%s groups by %s, which no series of it has", q.where, name)
				}
			}
		}
	}
}

// Every family of the project is shown or watched: a metric that nobody looks at is not worth
// its cost.
func TestGivenTheExportedSeriesThenDashboardAndAlertsLeaveNoneOut(t *testing.T) {
	var all strings.Builder
	for _, q := range append(alertQueries(t), dashboardQueries(t)...) {
		all.WriteString(q.expr + "\n")
	}
	for _, family := range exposed {
		if !strings.Contains(all.String(), family.name) {
			t.Errorf("%s is neither shown nor watched", family.name)
		}
	}
}

func TestGivenTheExportedSeriesThenThePageForOperatorsDescribesEach(t *testing.T) {
	page, err := os.ReadFile("../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	part := regexp.MustCompile(`_(bucket|sum|count)$`) // of a histogram
	for name := range exportedLabels(t) {
		if row := "| `" + part.ReplaceAllString(name, "") + "` |"; !strings.Contains(string(page), row) {
			t.Errorf("docs/operations.md lacks %s", row)
		}
	}
}

func TestGivenAlertsAndDashboardWhenPromtoolReadsThemThenTheyAreValidAndFireAsTheyShould(t *testing.T) {
	promtool, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed (Debian package prometheus)")
	}
	type rule struct {
		Record string `yaml:"record"`
		Expr   string `yaml:"expr"`
	}
	var rules []rule
	for _, q := range dashboardQueries(t) {
		rules = append(rules, rule{"panel:query", q.expr})
	}
	panels, err := yaml.Marshal(map[string]any{"groups": []any{map[string]any{"name": "panels", "rules": rules}}})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "panels.yaml")
	if err := os.WriteFile(file, panels, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"check", "rules", "--lint=none", file},
		{"check", "rules", "alerts.yaml"},
		{"test", "rules", "alerts.test.yaml"},
	} {
		command := exec.Command(promtool, args...)
		command.Dir = monitoring
		if report, err := command.CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, report)
		}
	}
}
