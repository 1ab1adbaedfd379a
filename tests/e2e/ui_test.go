// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	script "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// browser is a tab of a headless Chromium. What the page throws or complains about fails the test.
type browser struct {
	t   *testing.T
	ctx context.Context
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium here; CI installs it: .ci/setup chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.NoSandbox, // as root it does not start otherwise
		chromedp.Flag("disable-dev-shm-usage", true))
	allocator, endBrowser := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, endTab := chromedp.NewContext(allocator)
	t.Cleanup(func() { endTab(); endBrowser() })
	if err := chromedp.Listen(ctx, func(event any) {
		switch event := event.(type) {
		case *script.EventExceptionThrown:
			t.Errorf("the page threw: %v", event.ExceptionDetails)
		case *script.EventConsoleAPICalled:
			t.Errorf("the page wrote to the console: %v", event.Args)
		}
	}); err != nil {
		t.Fatal(err)
	}
	return &browser{t, ctx}
}

// run runs an action within the patience of the tests.
func run[T any](b *browser, action chromedp.Action[T]) T {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, harness.Patience)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	if err != nil {
		b.t.Fatal(err)
	}
	return result
}

// send sends a command of the protocol that has no action.
func send[P, R any](b *browser, command cdp.Command[P, R], parameters P) R {
	b.t.Helper()
	return run(b, func(ctx context.Context, t *chromedp.Target) (R, error) { return cdp.Call(ctx, t, command, parameters) })
}

// is waits until an expression of JavaScript is true.
func (b *browser) is(what, expression string) {
	b.t.Helper()
	deadline := time.Now().Add(harness.Patience)
	for {
		if run(b, chromedp.Evaluate[bool](`!!(`+expression+`)`)) {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("did not happen: %s\n%s", what, run(b, chromedp.Evaluate[string](`document.body.innerText`)))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (b *browser) press(keys string) {
	b.t.Helper()
	run(b, chromedp.KeyEvent(keys))
}

func (b *browser) click(connector, action string) {
	b.t.Helper()
	run(b, chromedp.Click(button(connector, action)))
}

func button(connector, action string) chromedp.CSS {
	return chromedp.CSS(fmt.Sprintf(`article[aria-label="%s"] [data-action=%s]`, connector, action))
}

// card selects the article of a connector.
func card(name, within string) string {
	return fmt.Sprintf(`document.querySelector('article[aria-label="%s"] %s')`, name, within)
}

// startedForPage is a runtime with a source that produces all the time, a sink, and one that cannot start.
func startedForPage(t *testing.T) *runtime {
	t.Helper()
	r := newRuntime(t, harness.NewServer(t))
	r.Source("numbers", harness.Library(t, "random_source"), "t", `interval = "20ms"`)
	r.Sink("counter", harness.Library(t, "count_sink"), "t", "")
	r.Sink("broken", r.Path("libnone.so"), "t", "")
	r.Start("IGGY_CONNECTORS_HTTP_API_KEY=let-me-in")
	return r
}

func TestPage_given_key_when_opened_should_show_numbers_move_and_a_stop_change_the_state(t *testing.T) {
	b := newBrowser(t)
	r := startedForPage(t)

	// The key is asked for, and the keyboard stands where it is typed.
	run(b, chromedp.Navigate(r.URL+"/ui"))
	b.is("the key is asked for", `document.activeElement.id === "key"`)
	b.press("wrong\r")
	b.is("a wrong key is refused", `document.getElementById("message").textContent.includes("not accepted")`)
	b.press("let-me-in\r")

	b.is("the sink runs", card("sink counter", ".status")+`?.textContent === "running"`)
	b.is("the reason of an error is shown", card("sink broken", ".error")+`.textContent.includes("libnone.so")`)
	b.is("messages move", `parseFloat(`+card("sink counter", ".rate")+`.textContent) > 0`)
	b.is("the rates are drawn", card("sink counter", "polyline")+`.getAttribute("points").split(" ").length > 2`)
	b.is("the stages are shown", `[...document.querySelectorAll('article[aria-label="source numbers"] .stages th')].map(h => h.textContent).join() === "decode,prepare,iggy send,state save,total"`)
	b.is("the log is shown", `document.getElementById("log").textContent.includes("Sink is running")`)

	// Everything can be done with the keyboard alone.
	run(b, chromedp.Focus(button("sink counter", "stop")))
	b.press("\r")
	b.is("the sink is stopped", card("sink counter", ".status")+`.textContent === "stopped"`)
	b.is("that is told to screen readers", `document.getElementById("message").textContent.length > 0`)
	b.is("the focus stays in the card", `document.activeElement.closest("article")?.ariaLabel === "sink counter"`)
	harness.Eventually(t, "the runtime has stopped it", func() bool {
		status, body := r.call("GET", "/sinks/counter", "", "api-key", "let-me-in")
		return status == 200 && strings.Contains(body, `"status":"stopped"`)
	})
	b.click("sink counter", "start")
	b.is("the sink runs again", card("sink counter", ".status")+`.textContent === "running"`)
	b.click("source numbers", "pause")
	b.is("the source is paused", card("source numbers", ".status")+`.textContent === "paused"`)
	b.click("source numbers", "resume")
	b.is("the source runs again", card("source numbers", ".status")+`.textContent === "running"`)
	run(b, chromedp.Evaluate[bool](`(() => {
		const level = `+card("sink counter", ".level select")+`;
		level.value = "debug";
		return level.dispatchEvent(new Event("change"));
	})()`))
	b.is("the log has lines of debug", `document.querySelector("#log .DEBUG")?.textContent.includes("[sink counter]")`)
}

func TestPage_given_phone_or_dark_mode_when_opened_should_stay_readable_and_named(t *testing.T) {
	b := newBrowser(t)
	r := startedForPage(t)
	run(b, chromedp.EmulateViewport(320, 640, chromedp.EmulateMobile))
	b.prefer("dark")
	run(b, chromedp.Navigate(r.URL+"/ui"))
	b.is("the key is asked for", `document.activeElement.id === "key"`)
	b.press("let-me-in\r")
	b.is("all connectors are shown", `document.querySelectorAll("article").length === 3`)

	b.is("nothing is wider than the phone", `document.documentElement.scrollWidth <= 320`)
	b.is("the page is dark", `getComputedStyle(document.body).backgroundColor === "rgb(20, 22, 26)"`)
	b.is("text has a contrast of 4.5 to 1", contrast+` >= 4.5`)
	b.prefer("light")
	b.is("light text has, too", contrast+` >= 4.5`)

	// What a screen reader finds: every control and chart has a name of its own.
	names, seen := map[string]bool{}, 0
	for _, node := range send(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes {
		role := strings.Trim(string(node.Role.Value), `"`)
		if node.Ignored || role != "button" && role != "image" && role != "combobox" && role != "textbox" && role != "article" {
			continue
		}
		seen++
		name := ""
		if node.Name != nil {
			name = strings.Trim(string(node.Name.Value), `"`)
		}
		if name == "" || role == "button" && names[name] {
			t.Errorf("%s has the name %q, which is empty or not its own", role, name)
		}
		names[name] = true
	}
	if seen < 3*4 {
		t.Errorf("only %d controls were found", seen)
	}
}

// prefer sets the colour scheme of the system.
func (b *browser) prefer(scheme string) {
	b.t.Helper()
	send(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
}

// contrast is the lowest contrast of all texts on the page with what is behind them, as WCAG
// computes it.
const contrast = `(() => {
	const rgb = (color) => color.match(/[\d.]+/g).map(Number);
	const luminance = (color) => rgb(color).slice(0, 3).map((v) => v / 255)
		.map((v) => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
		.reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
	const behind = (e) => { for (; e; e = e.parentElement) {
		const color = getComputedStyle(e).backgroundColor;
		if ((rgb(color)[3] ?? 1) > 0) return color;
	} };
	return Math.min(...[...document.querySelectorAll("body *")].filter((e) => e.checkVisibility() && e.textContent.trim() && !e.disabled)
		.map((e) => { const [a, b] = [luminance(getComputedStyle(e).color), luminance(behind(e))].sort((x, y) => y - x); return (a + .05) / (b + .05); }));
})()`
