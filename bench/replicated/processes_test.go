//go:build unix

package replicated

import (
	"context"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// TestKillAndRestart: a process that is killed does not end the others, and one that ends by itself
// does.
func TestKillAndRestart(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skip(err)
	}
	p := newProcesses(t.Context())
	defer p.Close()
	for range 2 {
		if err := p.start(sleep, "3600"); err != nil {
			t.Fatal(err)
		}
	}
	if err := p.Restart(1); err == nil {
		t.Error("a process that is there was started again")
	}
	for range 2 {
		if err := p.Kill(1); err != nil {
			t.Fatal(err)
		}
		if err := p.Kill(1); err == nil {
			t.Error("a process was killed that was not there")
		}
		if pids := p.running(); len(pids) != 1 || p.Context().Err() != nil {
			t.Fatalf("after a kill %d processes run, and %v", len(pids), context.Cause(p.Context()))
		}
		if err := p.Restart(1); err != nil {
			t.Fatal(err)
		}
	}
	if pids := p.running(); len(pids) != 2 {
		t.Fatalf("%d processes run", len(pids))
	}
	if err := p.start(sleep, "no time"); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.Context().Done():
	case <-time.After(time.Minute):
		t.Error("nobody is told that a process has ended")
	}
}

// TestCPUs: processor time by process counts those that were killed in its place, and what the
// computer has used is no less.
func TestCPUs(t *testing.T) {
	if MachineCPU() == 0 {
		t.Skip("the system does not say")
	}
	p := newProcesses(t.Context())
	defer p.Close()
	for range 2 {
		if err := p.start("/bin/sh", "-c", "while :; do :; done"); err != nil {
			t.Fatal(err)
		}
	}
	busy := func(from []time.Duration) []time.Duration {
		for {
			if now := p.CPUs(); now == nil || now[0] > from[0] && now[1] > from[1] {
				return now
			}
			runtime.Gosched()
		}
	}
	first := busy(make([]time.Duration, 2))
	if err := p.Kill(1); err != nil {
		t.Fatal(err)
	}
	if err := p.Restart(1); err != nil {
		t.Fatal(err)
	}
	now := busy(first)
	if sum := p.CPU(); len(now) != 2 || sum < now[0]+now[1] || MachineCPU() < sum {
		t.Errorf("processes have used %v, %v together, and the computer %v", now, sum, MachineCPU())
	}
}
