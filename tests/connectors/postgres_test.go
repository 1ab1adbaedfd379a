// Licensed to the Apache Software Foundation (ASF) under one or more contributor
// license agreements; and to You under the Apache License, Version 2.0. See LICENSE.
// SPDX-License-Identifier: Apache-2.0

package connectors

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/apache/iggy-connect-go/tests/harness"
)

// postgres is a PostgreSQL of the test's own, reachable by a socket in its directory alone.
type postgres struct {
	t   *testing.T
	dir string
	bin string
	as  *syscall.Credential // nil: who runs the test
	*exec.Cmd
}

// newPostgres makes a database cluster and starts it. Without PostgreSQL the test is skipped.
func newPostgres(t *testing.T) *postgres {
	t.Helper()
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	if len(found) == 0 {
		skip(t, "PostgreSQL is not installed (.ci/setup postgresql)")
	}
	// Not t.TempDir, which other users may not enter; and the path of a socket is short.
	dir, err := os.MkdirTemp("/tmp", "iggy-pg-")
	if err != nil {
		t.Fatal(err)
	}
	p := &postgres{t: t, dir: dir, bin: filepath.Dir(found[0])}
	t.Cleanup(func() {
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			t.Logf("PostgreSQL:\n%s", harness.Tail(string(log), 40))
		}
		_ = os.RemoveAll(dir)
	})
	p.becomeSomebody()
	p.must(p.command("initdb", "--pgdata", dir+"/data", "--auth", "trust", "--username", "test",
		"--encoding", "UTF8", "--locale", "C", "--no-sync"))
	p.start()
	t.Cleanup(p.stop)
	return p
}

// becomeSomebody finds a user for the server, which refuses to be run by root.
func (p *postgres) becomeSomebody() {
	if os.Geteuid() != 0 {
		return
	}
	account, err := user.Lookup("postgres")
	if err != nil {
		p.t.Fatal(err)
	}
	uid, _ := strconv.Atoi(account.Uid)
	gid, _ := strconv.Atoi(account.Gid)
	p.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	if err := os.Chown(p.dir, uid, gid); err != nil {
		p.t.Fatal(err)
	}
}

func (p *postgres) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(p.bin, name), args...)
	c.Dir = p.dir
	c.SysProcAttr = &syscall.SysProcAttr{Credential: p.as}
	return c
}

func (p *postgres) must(c *exec.Cmd) string {
	p.t.Helper()
	out, err := c.CombinedOutput()
	if err != nil {
		p.t.Fatalf("%v: %v: %s", c.Args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// start returns when the server takes connections.
func (p *postgres) start() {
	p.t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.Cmd = p.command("postgres", "-D", p.dir+"/data", "-k", p.dir, "-c", "listen_addresses=", "-c", "fsync=off")
	p.Stdout, p.Stderr = log, log
	if err := p.Start(); err != nil {
		p.t.Fatal(err)
	}
	harness.Eventually(p.t, "PostgreSQL takes connections", func() bool {
		return p.command("pg_isready", "-h", p.dir, "-U", "test", "-d", "postgres").Run() == nil
	})
}

// stop ends the server and all of its connections, at once but in order.
func (p *postgres) stop() {
	if p.ProcessState != nil {
		return
	}
	_ = p.Process.Signal(syscall.SIGINT)
	_ = p.Wait()
}

// dsn is a connection string for plugins.
func (p *postgres) dsn() string {
	return fmt.Sprintf("host=%s user=test dbname=postgres password=sesame", p.dir)
}

// run executes statements and returns what they print: a line for each row, | between columns.
func (p *postgres) run(sql string) string {
	p.t.Helper()
	return p.must(p.command("psql", "-h", p.dir, "-U", "test", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-XAtqc", sql))
}

func (p *postgres) count(table string) int {
	p.t.Helper()
	n, err := strconv.Atoi(p.run("SELECT count(*) FROM " + table))
	if err != nil {
		p.t.Fatal(err)
	}
	return n
}

// countIfThere is -1 while the table or the server is not there.
func (p *postgres) countIfThere(table string) int {
	out, err := p.command("psql", "-h", p.dir, "-U", "test", "-d", "postgres", "-XAtqc", "SELECT count(*) FROM "+table).Output()
	if err != nil {
		return -1
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(out)))
	if err != nil {
		return -1
	}
	return n
}

// url is the same as dsn in one word.
func (p *postgres) url() string {
	return "postgresql://test:sesame@/postgres?host=" + p.dir
}
