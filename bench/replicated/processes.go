package replicated

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// Processes are servers that run as programs of their own, until Close.
type Processes struct {
	ctx  context.Context
	stop context.CancelCauseFunc
	wg   sync.WaitGroup
	pids []int
}

func newProcesses(ctx context.Context) *Processes {
	p := &Processes{}
	p.ctx, p.stop = context.WithCancelCause(ctx)
	return p
}

// Context ends with the cause when one of the processes does.
func (p *Processes) Context() context.Context { return p.ctx }

// Close ends the processes and waits for them.
func (p *Processes) Close() {
	p.stop(nil)
	p.wg.Wait()
}

// start starts one more.
func (p *Processes) start(path string, args ...string) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(p.ctx, path, args...)
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", path, err)
	}
	p.pids = append(p.pids, cmd.Process.Pid)
	p.wg.Go(func() {
		if err := cmd.Wait(); p.ctx.Err() == nil {
			p.stop(fmt.Errorf("%s ended: %w: %s", path, errors.Join(err, io.ErrUnexpectedEOF), said.Bytes()))
		}
	})
	return nil
}

// tick is the unit of processor time in /proc, which is the same on all of Linux's architectures.
const tick = 10 * time.Millisecond

// CPU returns the processor time that the processes have used so far, that of the kernel for them included; 0 if the system does not say.
func (p *Processes) CPU() time.Duration {
	var sum time.Duration
	for _, pid := range p.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return 0
		}
		fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:]) // the name before may have blanks
		if len(fields) < 13 {
			return 0
		}
		for _, f := range fields[11:13] { // utime and stime
			n, err := strconv.ParseInt(string(f), 10, 64)
			if err != nil {
				return 0
			}
			sum += time.Duration(n) * tick
		}
	}
	return sum
}

// StartStore runs a store's machines: the foresay program at path, once for each of their files.
func StartStore(ctx context.Context, path string, files []string) (*Processes, error) {
	return startServing(ctx, path, "store", files)
}

// StartService runs replicas of a service: the foresay program at path, once for each of their files.
func StartService(ctx context.Context, path string, files []string) (*Processes, error) {
	return startServing(ctx, path, "smr", files)
}

func startServing(ctx context.Context, path, command string, files []string) (*Processes, error) {
	p := newProcesses(ctx)
	for _, file := range files {
		if err := p.start(path, command, "serve", "--config", file); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// Peak returns the most memory that one of the processes has had at once, in bytes; 0 if the system does not say.
func (p *Processes) Peak() uint64 {
	var most uint64
	for _, pid := range p.pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			return 0
		}
		_, after, _ := bytes.Cut(text, []byte("VmHWM:"))
		fields := bytes.Fields(after)
		if len(fields) == 0 {
			return 0
		}
		kib, err := strconv.ParseUint(string(fields[0]), 10, 64)
		if err != nil {
			return 0
		}
		most = max(most, kib<<10)
	}
	return most
}
