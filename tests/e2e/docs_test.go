// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/apache/iggy-connect-go/docs"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// The commands of every document are run as they stand, one after the other, in a
// directory that looks like the top of the repository. In a document:
//
//	```sh              a script that must succeed
//	```sh background   a command that goes on; the next block runs when it is up
//	```text output     what has been printed by then; … stands for any text
//	```c, cmake, toml  a file, if the first line is a comment with its path in my_plugins
//	<!-- stop -->      the command that was started last is asked to end
//
// Scripts that call make are only checked for their targets: the gate has run them.
func TestDocs_given_a_document_when_its_commands_are_run_should_do_what_it_says(t *testing.T) {
	ran := 0
	for _, path := range documents(t) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		blocks := blocksOf(string(text))
		if !slices.ContainsFunc(blocks, func(b block) bool { return strings.HasPrefix(b.info, "sh") }) {
			continue
		}
		ran++
		t.Run(strings.TrimPrefix(path, "../../"), func(t *testing.T) {
			t.Parallel()
			r := newReader(t)
			for _, b := range blocks {
				r.follow(b)
			}
		})
	}
	if ran < 10 {
		t.Errorf("only %d documents have commands", ran)
	}
}

// elsewhere are the commands that are not run here, and what shows instead that they work.
// A block with one of them is only checked for its syntax.
var elsewhere = map[string]string{
	"apt":     "changes the machine; .ci/dist unpacks and uses the packages",
	"buildah": "root and minutes; .ci/image builds and runs the image",
	"cargo":   "minutes; .ci/rust builds and tests the crate and the examples",
	"docker":  "needs an engine; .ci/image builds and runs the image, .ci/deploy reads compose.yaml",
	"helm":    "needs a cluster; .ci/deploy renders the chart and decodes it strictly",
	"kubectl": "needs a cluster",
	"openssl": "signs for a plugin that cargo builds, whose own tests send signed requests",
	"git":     "this is a clone",
	".ci/run": "this is a part of it",
	"go":      "the gate has run it",

	"iggy-connect-go": "on the PATH of who has installed it; .ci/plugins does what docs/plugins-rust.md says",
	"my_sink/ci.sh":   "cargo, as above; .ci/plugins does what docs/plugins-rust.md says",
}

// commandWords are the first words of the commands of a script.
var commandWords = regexp.MustCompile(`(?m)(?:^|&&|\|\||\$\(|\| )\s*(?:[A-Z_]+=\S* |sudo )*([./\w-]+)`)

// shownElsewhere names a command of a script that is not run here.
func shownElsewhere(script string) (command string, found bool) {
	for _, match := range commandWords.FindAllStringSubmatch(script, -1) {
		if elsewhere[match[1]] != "" {
			return match[1], true
		}
	}
	return "", false
}

// documents are all that the repository holds.
func documents(t *testing.T) []string {
	t.Helper()
	var found []string
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", "build", "dist", "target", "testdata"}, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			found = append(found, path)
		}
		return nil
	})
	if err != nil || len(found) == 0 {
		t.Fatalf("documents %v, error %v", found, err)
	}
	return found
}

// block is one thing of a document to do.
type block struct {
	line int
	info string // of the fence, or "stop"
	text string
}

const stopMark = "<!-- stop -->"

func blocksOf(document string) []block {
	var blocks []block
	var open *block
	for i, line := range strings.Split(document, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		switch {
		case isFence && open != nil:
			blocks, open = append(blocks, *open), nil
		case isFence:
			open = &block{line: i + 1, info: fence}
		case open != nil:
			open.text += line + "\n"
		case line == stopMark:
			blocks = append(blocks, block{line: i + 1, info: "stop"})
		}
	}
	return blocks
}

// reader does what a document says.
type reader struct {
	t       *testing.T
	dir     string
	env     []string
	live    *strings.Replacer // the addresses of documents, by those in use
	broker  string
	api     string
	printed harness.Output
	running []*exec.Cmd
}

func newReader(t *testing.T) *reader {
	r := &reader{t: t, dir: t.TempDir()}
	top, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"build", "examples"} {
		if err := os.Symlink(filepath.Join(top, name), filepath.Join(r.dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	// Copied, because the API writes there.
	if err := os.CopyFS(filepath.Join(r.dir, "configs"), os.DirFS(filepath.Join(top, "configs"))); err != nil {
		t.Fatal(err)
	}
	r.use("127.0.0.1:0", "127.0.0.1:0")
	t.Cleanup(func() {
		for _, command := range r.running {
			_ = command.Process.Kill()
			_ = command.Wait()
		}
		if t.Failed() {
			t.Logf("printed:\n%s", harness.Tail(r.printed.String(), 80))
		}
	})
	return r
}

// use puts addresses in the place of those that documents name.
func (r *reader) use(broker, api string) {
	r.broker, r.api = broker, api
	r.live = strings.NewReplacer("127.0.0.1:8090", broker, "localhost:8090", broker, "127.0.0.1:8081", api)
	r.env = append(os.Environ(),
		"IGGY_CONNECTORS_HTTP_ADDRESS=127.0.0.1:0",
		"IGGY_CONNECTORS_IGGY_ADDRESS="+broker,
		"IGGY_CONNECTORS_URL=http://"+api)
}

func (r *reader) follow(b block) {
	r.t.Helper()
	switch b.info {
	case "sh":
		r.run(b)
	case "sh background":
		r.start(b)
	case "text output":
		r.expect(b)
	case "c", "cmake", "toml":
		r.save(b)
	case "stop":
		r.stop(b)
	}
}

// path is in the comment that begins a file.
var path = regexp.MustCompile(`^(?:# my_plugins/([\w./]+)|/\* (\w+\.c): .*)\n`)

// save writes a file of the reader's own project.
func (r *reader) save(b block) {
	r.t.Helper()
	found := path.FindStringSubmatch(b.text)
	if found == nil {
		return
	}
	if err := os.WriteFile(filepath.Join(r.dir, "my_plugins", found[1]+found[2]), []byte(b.text), 0o644); err != nil {
		r.t.Fatalf("line %d: %v", b.line, err)
	}
}

func (r *reader) script(ctx context.Context, text string) *exec.Cmd {
	command := exec.CommandContext(ctx, "bash", "-euo", "pipefail", "-c", r.live.Replace(text))
	command.Dir, command.Env = r.dir, r.env
	command.Stdout, command.Stderr = &r.printed, &r.printed
	command.WaitDelay = time.Second
	return command
}

func (r *reader) run(b block) {
	r.t.Helper()
	if makes.MatchString(b.text) {
		r.dryRun(b)
		return
	}
	if command, found := shownElsewhere(b.text); found {
		r.t.Logf("line %d is not run, because of %s: %s", b.line, command, elsewhere[command])
		r.mustParse(b)
		return
	}
	ctx, cancel := context.WithTimeout(r.t.Context(), harness.Patience)
	defer cancel()
	if err := r.script(ctx, b.text).Run(); err != nil {
		r.t.Fatalf("line %d: %v:\n%s", b.line, err, b.text)
	}
}

// mustParse makes sure that a script could run.
func (r *reader) mustParse(b block) {
	r.t.Helper()
	if out, err := exec.Command("bash", "-n", "-c", b.text).CombinedOutput(); err != nil {
		r.t.Fatalf("line %d: %v: %s", b.line, err, out)
	}
}

// makes is a line that calls make.
var makes = regexp.MustCompile(`(?m)^(?:[A-Z]+=\S+ )*make `)

// dryRun makes sure that the targets exist. Only make is called.
func (r *reader) dryRun(b block) {
	r.t.Helper()
	for line := range strings.Lines(b.text) {
		if !makes.MatchString(line) {
			r.t.Fatalf("line %d: a block that calls make may call nothing else: %s", b.line, line)
		}
		command := exec.Command("bash", "-euc", strings.Replace(line, "make ", "make --dry-run ", 1))
		command.Dir = "../.."
		if out, err := command.CombinedOutput(); err != nil {
			r.t.Fatalf("line %d: %v: %s", b.line, err, out)
		}
	}
}

// up are the lines by which commands say where they listen.
var up = regexp.MustCompile(`HTTP API on: (\S+)|Iggy broker .*listens on (\S+?),`)

// embedded is the line by which the quickstart says where its broker listens.
var embedded = regexp.MustCompile(`Embedded Iggy broker on (\S+?),`)

func (r *reader) start(b block) {
	r.t.Helper()
	seen := len(r.printed.String())
	command := r.script(r.t.Context(), "exec env "+b.text) // which takes variables too
	if err := command.Start(); err != nil {
		r.t.Fatalf("line %d: %v", b.line, err)
	}
	r.running = append(r.running, command)
	var found []string
	harness.Eventually(r.t, fmt.Sprintf("the command of line %d is up", b.line), func() bool {
		found = up.FindStringSubmatch(r.printed.String()[seen:])
		return found != nil
	})
	broker, api := r.broker, r.api
	if found[1] != "" {
		api = found[1]
	} else {
		broker = found[2]
	}
	if own := embedded.FindStringSubmatch(r.printed.String()[seen:]); own != nil {
		broker = own[1]
	}
	r.use(broker, api)
}

// expect waits until each line has been printed.
func (r *reader) expect(b block) {
	r.t.Helper()
	for line := range strings.Lines(b.text) {
		pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.TrimSpace(r.live.Replace(line))), "…", ".*")
		re := regexp.MustCompile(pattern)
		harness.Eventually(r.t, fmt.Sprintf("line %d: it prints %s", b.line, strings.TrimSpace(line)), func() bool {
			return re.MatchString(r.printed.String())
		})
	}
}

func (r *reader) stop(b block) {
	r.t.Helper()
	if len(r.running) == 0 {
		r.t.Fatalf("line %d: nothing runs", b.line)
	}
	last := r.running[len(r.running)-1]
	r.running = r.running[:len(r.running)-1]
	if err := last.Process.Signal(syscall.SIGTERM); err != nil {
		r.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- last.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			r.t.Fatalf("line %d: it ended with %v", b.line, err)
		}
	case <-time.After(harness.Patience):
		_ = last.Process.Kill()
		r.t.Fatalf("line %d: it did not end", b.line)
	}
}

// Every operation of the description stands in the table of the page, in the path of
// which sources and sinks share what they have in common.
func TestDocs_given_the_description_of_the_api_when_read_should_be_covered_by_its_page(t *testing.T) {
	page, err := os.ReadFile("../../docs/http-api.md")
	if err != nil {
		t.Fatal(err)
	}
	var described struct {
		Paths map[string]map[string]any
	}
	if err := yaml.Unmarshal(docs.OpenAPI, &described); err != nil || len(described.Paths) == 0 {
		t.Fatalf("%d paths, error %v", len(described.Paths), err)
	}
	for path, operations := range described.Paths {
		shared := strings.NewReplacer("/sources", "/{kind}", "/sinks", "/{kind}").Replace(path)
		for method := range operations {
			if method == "parameters" {
				continue
			}
			one, both := fmt.Sprintf("| `%s %s` |", strings.ToUpper(method), path), fmt.Sprintf("| `%s %s` |", strings.ToUpper(method), shared)
			if !strings.Contains(string(page), one) && !strings.Contains(string(page), both) {
				t.Errorf("docs/http-api.md lacks %s", one)
			}
		}
	}
}

// named are the tests that a document says show something, by the beginning of their names.
var named = regexp.MustCompile("`(Test[A-Za-z0-9_]+)`")

var declared = regexp.MustCompile(`(?m)^func (Test\w+)\(`)

func TestDocs_given_a_test_that_a_document_names_when_looked_for_should_exist(t *testing.T) {
	var tests strings.Builder
	err := filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAllStringSubmatch(string(text), -1) {
			tests.WriteString("\n" + match[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range documents(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range named.FindAllStringSubmatch(string(text), -1) {
			if !strings.Contains(tests.String(), "\n"+match[1]) {
				t.Errorf("%s names %s, which there is not", page, match[1])
			}
		}
	}
}

var (
	cited   = regexp.MustCompile(`decisions? ((?:[A-H]\d+(?:, | and )?)+)`)
	decided = regexp.MustCompile(`(?m)^\| ([A-H]\d+) \|`)
	letter  = regexp.MustCompile(`[A-H]\d+`)
)

func TestDocs_given_a_decision_that_a_comment_cites_when_looked_for_should_be_explained(t *testing.T) {
	page, err := os.ReadFile("../../docs/decisions.md")
	if err != nil {
		t.Fatal(err)
	}
	explained := map[string]bool{}
	for _, match := range decided.FindAllStringSubmatch(string(page), -1) {
		explained[match[1]] = true
	}
	citations := 0
	err = filepath.WalkDir("../..", func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range cited.FindAllStringSubmatch(string(text), -1) {
			for _, name := range letter.FindAllString(match[1], -1) {
				citations++
				if !explained[name] {
					t.Errorf("%s cites decision %s, which docs/decisions.md does not explain", path, name)
				}
			}
		}
		return err
	})
	if err != nil || citations < 20 {
		t.Errorf("%d citations, error %v", citations, err)
	}
}

// series are the names of metrics in the source and on the page.
var series = regexp.MustCompile(`iggy_connectors?_[a-z_]+`)

// logLines are the first cells of the table of log lines.
var logLines = regexp.MustCompile("(?m)^\\| (`.+`) \\| (?:info|warn|error) \\|")

func TestDocs_given_metrics_and_log_lines_of_the_page_when_looked_for_should_be_those_of_the_source(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	var source strings.Builder
	err = filepath.WalkDir("../../runtime", func(path string, entry os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		source.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	families, err := os.ReadFile("../../runtime/internal/metrics/families.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range series.FindAllString(string(families), -1) {
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("the page lacks %s", name)
		}
	}
	for _, name := range series.FindAllString(string(page), -1) {
		if !strings.Contains(string(families), `"`+name+`"`) {
			t.Errorf("there is no series %s", name)
		}
	}
	lines := logLines.FindAllStringSubmatch(string(page), -1)
	if len(lines) == 0 {
		t.Fatal("the page has no log lines")
	}
	for _, line := range lines {
		for _, part := range strings.FieldsFunc(line[1], func(r rune) bool { return r == '`' || r == '…' }) {
			if part = strings.TrimSpace(part); part != "," && !strings.Contains(source.String(), part) {
				t.Errorf("nothing logs %q of %s", part, line[1])
			}
		}
	}
}

func TestShownElsewhere_given_scripts_should_find_the_commands_that_are_not_run_here(t *testing.T) {
	for script, want := range map[string]string{
		"docker build .\n": "docker", "cd x && cargo test": "cargo", "A=b sudo apt install x": "apt",
		"x=$(openssl dgst)": "openssl", "echo a | openssl": "openssl", "curl x": "", "echo docker": "", "build/iggy-connect-go run": "",
	} {
		if got, _ := shownElsewhere(script); got != want {
			t.Errorf("%q: got %q, want %q", script, got, want)
		}
	}
}

func TestBlocksOf_given_a_document_should_find_what_there_is_to_do(t *testing.T) {
	blocks := blocksOf("text\n```sh\na\nb\n```\n<!-- stop -->\n```toml\nc\n```\n")
	want := []block{{2, "sh", "a\nb\n"}, {6, "stop", ""}, {7, "toml", "c\n"}}
	if fmt.Sprint(blocks) != fmt.Sprint(want) {
		t.Errorf("got %v", blocks)
	}
}
