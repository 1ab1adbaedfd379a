// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"
)

// startChild starts a child that is closed at the end of the test.
func startChild(t testing.TB, options ChildOptions) *Child {
	t.Helper()
	c, err := StartChild(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// loadedChild has loaded a library.
func loadedChild(t testing.TB, path string, options ChildOptions) *Child {
	t.Helper()
	c := startChild(t, options)
	info, err := readLibrary(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Load(path, info.Found); err != nil {
		t.Fatal(err)
	}
	return c
}

// scriptedChild has loaded the scripted library and opened it as sink 1.
func scriptedChild(t testing.TB, options ChildOptions) *Child {
	t.Helper()
	c := loadedChild(t, scripted(t), options)
	if code, err := c.SinkOpen(1, []byte("ok")); code != CodeOK || err != nil {
		t.Fatalf("open returned %d, %v", code, err)
	}
	return c
}

// runIn has sink 1 run a script.
func runIn(c *Child, script string) (int32, error) {
	return c.SinkConsume(1, nil, nil, []byte(script))
}

func awaitDeath(t testing.TB, c *Child) *Crash {
	t.Helper()
	select {
	case <-c.Dead():
		return c.Crash()
	case <-time.After(patience):
		t.Fatal("the child lives on")
		return nil
	}
}

// logLines collects what a child logs.
type logLines struct {
	mu    sync.Mutex
	lines []string
	added chan struct{}
}

func newLogLines() *logLines { return &logLines{added: make(chan struct{}, 1)} }

func (l *logLines) add(r LogRecord) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%d %d %s %s", r.Instance, r.Level, r.Target, r.Message))
	select {
	case l.added <- struct{}{}:
	default:
	}
}

func (l *logLines) await(t testing.TB, line string) {
	t.Helper()
	deadline := time.After(patience)
	for {
		l.mu.Lock()
		found := slices.Contains(l.lines, line)
		l.mu.Unlock()
		if found {
			return
		}
		select {
		case <-l.added:
		case <-deadline:
			t.Fatalf("%q is not logged, but %q", line, l.lines)
		}
	}
}

// A message that is cut in the middle of a character would be no text any more.
func TestChild_given_a_long_record_should_cut_it_behind_a_whole_character(t *testing.T) {
	logged := make(chan string, 4)
	c := loadedChild(t, scripted(t), ChildOptions{OnLog: func(r LogRecord) { logged <- string(r.Message) }})
	for _, first := range []string{"", "x"} {
		message := first + strings.Repeat("\u00e4", maxPacket)
		if _, err := c.SinkOpen(uint32(1+len(first)), []byte("log 2 me "+message)); err != nil {
			t.Fatal(err)
		}
		if got := <-logged; !utf8.ValidString(got) || len(got) < maxPacket*9/10 || !strings.HasPrefix(message, got) {
			t.Errorf("%d bytes, which end in %q", len(got), got[max(len(got)-5, 0):])
		}
	}
}

func TestChild_given_a_record_of_an_impossible_length_should_log_it_without_text(t *testing.T) {
	logged := newLogLines()
	c := loadedChild(t, scripted(t), ChildOptions{OnLog: logged.add})
	if code, err := c.SinkOpen(1, []byte("log_endless return 7")); code != 7 || err != nil {
		t.Fatalf("open returned %d, %v", code, err)
	}
	logged.await(t, "1 2  ")
}

func TestChild_given_a_sink_when_called_should_return_its_codes_and_its_log(t *testing.T) {
	logged := newLogLines()
	c := loadedChild(t, scripted(t), ChildOptions{OnLog: logged.add})

	if v, err := c.SinkVersion(); v != "1.2.3" || err != nil {
		t.Fatalf("version %q, %v", v, err)
	}
	if code, err := c.SinkOpen(5, []byte("return 3")); code != 3 || err != nil {
		t.Fatalf("open returned %d, %v", code, err)
	}
	if code, err := c.SinkConsume(5, []byte("top"), []byte("meta"), []byte("log 3 aim shot return -2")); code != -2 || err != nil {
		t.Fatalf("consume returned %d, %v", code, err)
	}
	if code, err := c.SinkConsume(6, nil, nil, nil); code != CodeRefused || err != nil {
		t.Fatalf("consume of an unknown instance returned %d, %v", code, err)
	}
	if code, err := c.SinkClose(5); code != CodeOK || err != nil {
		t.Fatalf("close returned %d, %v", code, err)
	}
	logged.await(t, "5 2 scripted topic top metadata meta")
	logged.await(t, "5 3 aim shot")
	logged.await(t, "5 2 scripted closing 5")
}

func TestChild_given_both_generations_when_started_should_deliver_batches_and_answers(t *testing.T) {
	for _, generation := range []Generation{1, 2} {
		t.Run(fmt.Sprint(generation), func(t *testing.T) {
			batches, logged := make(chan Batch, 10), newLogLines()
			c := loadedChild(t, scripted(t), ChildOptions{OnLog: logged.add, OnBatch: func(b Batch) int32 {
				b.Messages = slices.Clone(b.Messages)
				batches <- b
				return CodeOK
			}})
			if code, err := c.SourceOpen(9, []byte("then send 2"), []byte("four")); code != CodeOK || err != nil {
				t.Fatalf("open returned %d, %v", code, err)
			}
			logged.await(t, "9 2 scripted state of 4 bytes: four")
			if code, err := c.SourceHandle(9, generation); code != CodeOK || err != nil {
				t.Fatalf("handle returned %d, %v", code, err)
			}
			for i := uint64(1); i <= 2; i++ {
				b := <-batches
				want := Batch{Generation: generation, Instance: 9}
				if generation == 2 {
					want.ID = i
				}
				if b.Generation != want.Generation || b.Instance != want.Instance || b.ID != want.ID || string(b.Messages) != fmt.Sprintf("batch %d", i) {
					t.Fatalf("batch %+v", b)
				}
				if generation == 2 {
					if code, err := c.SourceBatchResult(9, b.ID, uint8(i)); code != CodeOK || err != nil {
						t.Fatalf("batch_result returned %d, %v", code, err)
					}
					logged.await(t, fmt.Sprintf("0 2 scripted result %d", i))
				}
			}
			if code, err := c.SourceClose(9); code != CodeOK || err != nil {
				t.Fatalf("close returned %d, %v", code, err)
			}
		})
	}
}

func TestChild_given_no_state_and_an_empty_one_when_opened_should_tell_them_apart(t *testing.T) {
	logged := newLogLines()
	c := loadedChild(t, scripted(t), ChildOptions{OnLog: logged.add})
	_, _ = c.SourceOpen(1, []byte("ok"), nil)
	logged.await(t, "1 2 scripted no state")
	_, _ = c.SourceOpen(2, []byte("ok"), []byte{})
	logged.await(t, "2 2 scripted state of 0 bytes: ")
}

func TestChild_given_an_answer_when_the_callback_returns_should_give_it_to_the_plugin(t *testing.T) {
	logged := newLogLines()
	c := loadedChild(t, scripted(t), ChildOptions{OnLog: logged.add, OnBatch: func(b Batch) int32 {
		if b.Impossible {
			return -5
		}
		return int32(b.Instance)
	}})
	_, _ = c.SourceOpen(1, []byte("then send_as 77 send_endless send_null"), nil)
	_, _ = c.SourceHandle(1, 2)
	logged.await(t, "0 2 scripted send_as 77")
	logged.await(t, "0 2 scripted send_endless -5")
	logged.await(t, "0 2 scripted send_null 1")
}

func TestChild_given_many_calls_at_once_when_all_hang_should_run_each_on_a_thread_of_its_own(t *testing.T) {
	c := scriptedChild(t, ChildOptions{})
	const calls = 20
	var all sync.WaitGroup
	codes := make(chan int32, calls)
	for range calls {
		all.Go(func() {
			code, _ := runIn(c, "hang return 4")
			codes <- code
		})
	}
	// Each release frees one; a release needs a thread that listens while the others hang.
	for range calls {
		for len(codes) < calls {
			if _, err := runIn(c, "release"); err != nil {
				t.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	all.Wait()
	for range calls {
		if code := <-codes; code != 4 {
			t.Fatalf("code %d", code)
		}
	}
}

func TestChild_given_large_arguments_when_called_should_pass_them_and_keep_little_memory(t *testing.T) {
	c := scriptedChild(t, ChildOptions{})
	script := []byte("return 6 " + strings.Repeat("x", 40<<20))
	if code, err := c.SinkConsume(1, nil, nil, script); code != 6 || err != nil {
		t.Fatalf("consume returned %d, %v", code, err)
	}
	var status unix.Stat_t
	if err := unix.Fstat(int(c.calls.file.Fd()), &status); err != nil {
		t.Fatal(err)
	}
	if kept := status.Blocks * 512; kept > slotKeepBytes+64<<10 {
		t.Fatalf("%d bytes are kept", kept)
	}
}

func TestChild_given_a_deadly_call_when_made_should_tell_how_the_process_died(t *testing.T) {
	for _, c := range []struct {
		how      string
		signal   syscall.Signal
		exitCode int
		inCall   bool
		frame    string // of the backtrace
	}{
		{"segv", syscall.SIGSEGV, 0, true, "iggy_sink_consume"},
		{"segv_thread", syscall.SIGSEGV, 0, true, "libscripted.so"},
		{"abort", syscall.SIGABRT, 0, true, "iggy_sink_consume"},
		{"overflow", syscall.SIGSEGV, 0, true, "libscripted.so"},
		{"exit", 0, 7, true, "iggy_sink_consume"},
		{"_exit", 0, 9, true, ""},
	} {
		t.Run(c.how, func(t *testing.T) {
			child := scriptedChild(t, ChildOptions{Limits: Limits{NoCore: true}})
			_, err := runIn(child, "log 2 me before die "+c.how)
			var crash *Crash
			if !errors.As(err, &crash) || crash != awaitDeath(t, child) {
				t.Fatalf("error %v", err)
			}
			if crash.Signal != c.signal || crash.ExitCode != c.exitCode || crash.InCall != c.inCall || crash.Call != CallConsume || crash.Instance != 1 {
				t.Errorf("crash %+v", crash)
			}
			if !slices.Equal(crash.Log, []string{"INFO me: before"}) {
				t.Errorf("log %q", crash.Log)
			}
			if trace := strings.Join(crash.Backtrace, "\n"); !strings.Contains(trace, c.frame) || (c.frame == "") != (trace == "") {
				t.Errorf("backtrace %s", trace)
			}
			if _, err := runIn(child, "ok"); err == nil {
				t.Error("a call after the death succeeds")
			}
		})
	}
}

func TestChild_given_two_calls_when_one_kills_the_process_should_blame_that_one(t *testing.T) {
	logged := newLogLines()
	c := scriptedChild(t, ChildOptions{OnLog: logged.add, Limits: Limits{NoCore: true}})
	var innocent error
	var other sync.WaitGroup
	other.Go(func() { _, innocent = runIn(c, "hang") })
	logged.await(t, "1 2 scripted hanging")
	_, guilty := runIn(c, "die segv")
	other.Wait()
	if died := (*callDeath)(nil); !errors.As(guilty, &died) || errors.As(innocent, &died) {
		t.Fatalf("errors %v and %v", guilty, innocent)
	}
}

func TestChild_given_a_memory_limit_when_the_plugin_allocates_without_end_should_cost_the_process(t *testing.T) {
	if addressSanitizer {
		t.Skip("the sanitizer itself takes more")
	}
	c := scriptedChild(t, ChildOptions{Limits: Limits{Memory: 256 << 20, NoCore: true}})
	_, err := runIn(c, "die allocate")
	var crash *Crash
	if !errors.As(err, &crash) || crash.Signal != syscall.SIGABRT {
		t.Fatalf("error %v", err)
	}
	if peak := c.Usage().PeakMemory; peak > 256<<20+32<<20 {
		t.Fatalf("peak memory %d", peak)
	}
}

func TestChild_given_a_time_limit_when_a_call_hangs_should_be_killed(t *testing.T) {
	c := scriptedChild(t, ChildOptions{CallTimeout: 2 * time.Second})
	_, err := runIn(c, "hang")
	if died := (*callDeath)(nil); !errors.As(err, &died) || !strings.Contains(err.Error(), "took longer than 2s, in the call consume") {
		t.Fatalf("error %v", err)
	}
}

func TestChild_given_a_cpu_limit_when_the_plugin_spins_should_end(t *testing.T) {
	c := scriptedChild(t, ChildOptions{Limits: Limits{CPUSeconds: 1, NoCore: true}})
	_, err := runIn(c, "die spin")
	if err == nil || !strings.Contains(err.Error(), "SIGXCPU") {
		t.Fatalf("error %v", err)
	}
	if cpu := c.Usage().CPU; cpu < 500*time.Millisecond || cpu > patience {
		t.Fatalf("CPU time %v", cpu)
	}
}

func TestChild_given_a_closed_channel_when_the_process_stays_should_kill_it(t *testing.T) {
	c := scriptedChild(t, ChildOptions{})
	_, err := runIn(c, "die close_channel")
	if err == nil {
		t.Fatal("the call returned")
	}
}

func TestChild_given_niceness_and_another_user_when_started_should_have_them(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root")
	}
	user := uint32(65534)
	c := scriptedChild(t, ChildOptions{Limits: Limits{Nice: 5, User: &user, Group: &user}})
	nice, err := unix.Getpriority(unix.PRIO_PROCESS, c.PID())
	own, _ := unix.Getpriority(unix.PRIO_PROCESS, 0)
	if err != nil || nice != own-5 {
		t.Fatalf("priority %d of %d, %v", nice, own, err)
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", c.PID()))
	if err != nil || !strings.Contains(string(status), "Uid:\t65534\t65534\t65534\t65534") || !strings.Contains(string(status), "Groups:\t \n") {
		t.Fatalf("%s, %v", status, err)
	}
}

func TestChild_given_files_to_hold_when_started_should_have_no_other_descriptor(t *testing.T) {
	// given a descriptor that a library in the host left open for every process
	inherited, err := unix.Open("/dev/null", unix.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	held, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()

	c := scriptedChild(t, ChildOptions{Hold: []*os.File{held}, Quiet: true})

	var found []string
	dir := fmt.Sprintf("/proc/%d/fd", c.PID())
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		target, _ := os.Readlink(filepath.Join(dir, e.Name()))
		name, _, _ := strings.Cut(target, ":[")
		found = append(found, name)
	}
	slices.Sort(found)
	want := []string{"/dev/null", "/dev/null", "/dev/null", "/memfd:iggy-plugin-batches (deleted)", "/memfd:iggy-plugin-calls (deleted)", held.Name(), "socket"}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Fatalf("descriptors %q, want %q", found, want)
	}
}

func TestChild_given_a_request_to_end_when_sent_to_all_processes_should_leave_it_to_the_host(t *testing.T) {
	c := scriptedChild(t, ChildOptions{})
	for _, request := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		if err := syscall.Kill(c.PID(), request); err != nil {
			t.Fatal(err)
		}
		if code, err := runIn(c, "return 3"); code != 3 || err != nil {
			t.Fatalf("consume after %v returned %d, %v", request, code, err)
		}
	}
}

func TestChild_given_a_handler_without_sa_onstack_when_asked_should_list_its_signal(t *testing.T) {
	c := scriptedChild(t, ChildOptions{})
	_, _ = runIn(c, "handler 10")
	found, err := c.UnguardedSignals()
	if err != nil || !slices.Equal(found, []syscall.Signal{syscall.SIGUSR1}) {
		t.Fatalf("signals %v, %v", found, err)
	}
}

func TestChild_given_a_plugin_built_by_Go_when_called_should_run_it(t *testing.T) {
	c := loadedChild(t, buildGoPlugin(t), ChildOptions{})
	if v, err := c.SinkVersion(); v != "4.5.6" || err != nil {
		t.Fatalf("version %q, %v", v, err)
	}
	for id := range uint32(3) {
		if code, err := c.SinkOpen(id, []byte("null")); code != CodeOK || err != nil {
			t.Fatalf("open returned %d, %v", code, err)
		}
		if code, err := c.SinkConsume(id, nil, nil, []byte("messages")); code != CodeOK || err != nil {
			t.Fatalf("consume returned %d, %v", code, err)
		}
		if code, err := c.SinkClose(id); code != CodeOK || err != nil {
			t.Fatalf("close returned %d, %v", code, err)
		}
	}
}

func TestChild_given_its_host_when_killed_should_be_gone_within_a_second(t *testing.T) {
	for _, state := range []string{"idle", "hanging"} {
		t.Run(state, func(t *testing.T) {
			if os.Getenv(childMarker) == t.Name() {
				abandonChild(t, state)
			}
			host := exec.Command(os.Args[0], "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$")
			host.Env = append(os.Environ(), childMarker+"="+t.Name())
			out, err := host.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := host.Start(); err != nil {
				t.Fatal(err)
			}
			var pid int
			if _, err := fmt.Fscan(out, &pid); err != nil {
				t.Fatal(err)
			}
			process, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer unix.Close(process)

			_ = host.Process.Kill()
			begin := time.Now()
			const allowed = patience // a second, on a machine that is not busy
			poll := []unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}
			for n := 0; n == 0; n, _ = unix.Poll(poll, 100) {
				if time.Since(begin) > allowed {
					t.Fatalf("the child is alive after %v", allowed)
				}
			}
			_ = host.Wait()
		})
	}
}

// abandonChild is the host that is killed.
func abandonChild(t *testing.T, state string) {
	logged := newLogLines()
	c := scriptedChild(t, ChildOptions{OnLog: logged.add})
	if state == "hanging" {
		go func() { _, _ = runIn(c, "hang") }()
		logged.await(t, "1 2 scripted hanging")
	}
	fmt.Println(c.PID())
	select {}
}

func TestChild_given_many_lives_when_over_should_leave_nothing_behind(t *testing.T) {
	before := descriptors(t)
	for i := range 6 {
		c, err := StartChild(ChildOptions{Quiet: true})
		if err != nil {
			t.Fatal(err)
		}
		if i%2 == 0 {
			c.Kill("it was told to")
			<-c.Dead()
		}
		c.Close()
		if err := syscall.Kill(c.PID(), 0); !errors.Is(err, syscall.ESRCH) {
			t.Errorf("process %d: %v", c.PID(), err)
		}
	}
	if after := descriptors(t); after != before {
		t.Errorf("%d descriptors are open, before it were %d", after, before)
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil || strings.Contains(string(maps), "iggy-plugin") {
		t.Errorf("shared memory is mapped: %v", err)
	}
}
