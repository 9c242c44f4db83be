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

	mu  sync.Mutex
	all []*process
}

// A process is one of them, and those that ran in its place before they were killed.
type process struct {
	path string
	args []string
	pid  int           // 0: it was killed
	used time.Duration // processor time of those before
	gone chan struct{} // is closed when it has ended
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
	one := &process{path: path, args: args}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.run(one); err != nil {
		return err
	}
	p.all = append(p.all, one)
	return nil
}

// run is called with mu held.
func (p *Processes) run(one *process) error {
	var said bytes.Buffer
	cmd := exec.CommandContext(p.ctx, one.path, one.args...)
	cmd.Stderr = &said
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Second
	// Nothing is written there. It ends with this process, however that ends: see LeashFlag.
	if _, err := cmd.StdinPipe(); err != nil {
		return fmt.Errorf("start %s: %w", one.path, err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start %s: %w", one.path, err)
	}
	pid, gone := cmd.Process.Pid, make(chan struct{})
	one.pid, one.gone = pid, gone
	p.wg.Go(func() {
		defer close(gone)
		err := cmd.Wait()
		p.mu.Lock()
		defer p.mu.Unlock()
		one.used += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		if killed := one.pid != pid; !killed && p.ctx.Err() == nil {
			p.stop(fmt.Errorf("%s ended: %w: %s", one.path, errors.Join(err, io.ErrUnexpectedEOF), said.Bytes()))
		}
	})
	return nil
}

// Kill ends one of the processes as a crash does, and returns when it has ended.
func (p *Processes) Kill(i int) error {
	p.mu.Lock()
	one := p.all[i]
	pid, gone := one.pid, one.gone
	one.pid = 0
	p.mu.Unlock()
	if pid == 0 {
		return fmt.Errorf("process %d is not there", i)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		return fmt.Errorf("kill process %d: %w", i, err)
	}
	<-gone
	return nil
}

// Restart starts a process again that was killed.
func (p *Processes) Restart(i int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.all[i].pid != 0 {
		return fmt.Errorf("process %d is there", i)
	}
	return p.run(p.all[i])
}

// running returns the processes that are there.
func (p *Processes) running() (pids []int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		if one.pid != 0 {
			pids = append(pids, one.pid)
		}
	}
	return pids
}

// tick is the unit of processor time in /proc, which is the same on all of Linux's architectures.
const tick = 10 * time.Millisecond

// CPU returns the processor time that the processes have used so far, that of the kernel for them
// included; 0 if the system does not say.
func (p *Processes) CPU() (sum time.Duration) {
	for _, used := range p.CPUs() {
		sum += used
	}
	return sum
}

// CPUs returns it by process, those that were killed in its place included; nil if the system does
// not say, or one of them is just ending.
func (p *Processes) CPUs() (used []time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, one := range p.all {
		now := one.used
		if one.pid == 0 { // it was killed, and what it has used is known once it is gone
			select {
			case <-one.gone:
			default:
				return nil
			}
		} else {
			text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", one.pid))
			if err != nil {
				return nil
			}
			// the name before may have blanks; utime and stime
			ticks, ok := sumOf(text[bytes.LastIndexByte(text, ')')+1:], 11, 13)
			if !ok {
				return nil
			}
			now += time.Duration(ticks) * tick
		}
		used = append(used, now)
	}
	return used
}

// MachineCPU returns the processor time that all programs of this computer have used since it
// began, and what a host of it took away; 0 if the system does not say.
func MachineCPU() time.Duration {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(text, []byte("\n")) // cpu user nice system idle iowait irq softirq steal ...
	used, ok := sumOf(line, 1, 4)
	if interrupts, also := sumOf(line, 6, 9); ok && also {
		return time.Duration(used+interrupts) * tick
	}
	return 0
}

// sumOf adds fields up, from one to before another one.
func sumOf(text []byte, from, to int) (sum int64, ok bool) {
	fields := bytes.Fields(text)
	if len(fields) < to {
		return 0, false
	}
	for _, f := range fields[from:to] {
		n, err := strconv.ParseInt(string(f), 10, 64)
		if err != nil {
			return 0, false
		}
		sum += n
	}
	return sum, true
}

// LeashFlag is the flag with which the foresay program's servers end when their standard input
// does: what a process starts that is killed must not outlive it.
const LeashFlag = "leash"

// StartStore runs a store's machines: the foresay program at path, once for each of their files.
func StartStore(ctx context.Context, path string, files []string) (*Processes, error) {
	return startServing(ctx, path, "store", files)
}

// StartService runs replicas of a service: the foresay program at path, once for each of their
// files.
func StartService(ctx context.Context, path string, files []string) (*Processes, error) {
	return startServing(ctx, path, "smr", files)
}

func startServing(ctx context.Context, path, command string, files []string) (*Processes, error) {
	p := newProcesses(ctx)
	for _, file := range files {
		if err := p.serve(path, command, file); err != nil {
			p.Close()
			return nil, err
		}
	}
	return p, nil
}

// StartMachine starts one more machine of a store.
func (p *Processes) StartMachine(path, file string) error { return p.serve(path, "store", file) }

// serve starts one more service with its configuration.
func (p *Processes) serve(path, command, file string) error {
	return p.start(path, command, "serve", "--"+LeashFlag, "--config", file)
}

// MayEnd says that a process may end by itself from now on, such as a replica that is removed.
func (p *Processes) MayEnd(i int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all[i].pid = 0
}

// Peak returns the most memory that one of the processes has had at once, in bytes; 0 if the system
// does not say.
func (p *Processes) Peak() uint64 {
	var most uint64
	for _, pid := range p.running() {
		most = max(most, memoryOf(pid, "VmHWM:"))
	}
	return most
}

// Written returns how many bytes the processes have had written to disks, those that were killed
// left out; 0 if the system does not say.
func (p *Processes) Written() uint64 {
	var sum uint64
	for _, pid := range p.running() {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/io", pid))
		if err != nil {
			return 0
		}
		_, after, _ := bytes.Cut(text, []byte("write_bytes:"))
		n, _ := sumOf(after, 0, 1)
		sum += uint64(n)
	}
	return sum
}

// Memory returns how much memory all processes have together, in bytes; 0 if the system does not
// say.
func (p *Processes) Memory() uint64 {
	var sum uint64
	for _, pid := range p.running() {
		sum += memoryOf(pid, "VmRSS:")
	}
	return sum
}

// memoryOf returns a figure of a process's in bytes; 0 if the system does not say.
func memoryOf(pid int, name string) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, after, _ := bytes.Cut(text, []byte(name))
	fields := bytes.Fields(after)
	if len(fields) == 0 {
		return 0
	}
	kib, err := strconv.ParseUint(string(fields[0]), 10, 64)
	if err != nil {
		return 0
	}
	return kib << 10
}
