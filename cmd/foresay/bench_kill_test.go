package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// TestKilledBench: the servers that a bench started end when it is killed.
func TestKilledBench(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux's /proc tells which processes a process has started")
	}
	for _, experiment := range []string{"smr-snapshots", "rc-away"} {
		t.Run(experiment, func(t *testing.T) { killBench(t, experiment) })
	}
}

func killBench(t *testing.T, experiment string) {
	bench := exec.Command("foresay", "bench", experiment, "--quick")
	bench.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
	var said bytes.Buffer
	bench.Stdout, bench.Stderr = &said, &said
	if err := bench.Start(); err != nil {
		t.Fatal(err)
	}
	var servers []int
	killed := false
	defer func() {
		if !killed {
			_ = bench.Process.Kill()
			_ = bench.Wait()
		}
		for _, pid := range servers {
			_ = syscall.Kill(pid, syscall.SIGKILL) // those that are gone are the rule
		}
	}()
	const all = 3 // or more: there may be several groups
	await(t, "servers", func() bool {
		servers = childrenOf(t, bench.Process.Pid)
		return len(servers) >= all
	})
	if err := bench.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	killed = true
	if err := bench.Wait(); err == nil {
		t.Fatalf("the killed bench ended well: %s", &said)
	}
	for _, pid := range servers {
		await(t, fmt.Sprint("the end of server ", pid), func() bool { return !runs(pid) })
	}
}

// await waits until something is so.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	limit := time.After(time.Minute)
	for !is() {
		select {
		case <-look.C:
		case <-limit:
			t.Fatalf("a minute passed without %s", what)
		}
	}
}

// childrenOf returns the processes that a process has started and that run.
func childrenOf(t *testing.T, parent int) (children []int) {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			t.Fatal(err)
		}
		if ppid, _, ok := processStat(pid); ok && ppid == parent {
			children = append(children, pid)
		}
	}
	return children
}

// runs reports whether a process is there and is more than an entry that nobody has waited for.
func runs(pid int) bool {
	_, state, ok := processStat(pid)
	return ok && state != "Z"
}

func processStat(pid int) (parent int, state string, ok bool) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, "", false // it has ended
	}
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name before may have blanks
	if len(fields) < 2 {
		return 0, "", false
	}
	parent, err = strconv.Atoi(string(fields[1]))
	return parent, string(fields[0]), err == nil
}
