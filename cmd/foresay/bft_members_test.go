package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/foresay/foresay/bft/client"
	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/kv"
)

// traitor is the process of a replica that betrays the others: its arguments are its file and a
// strategy.
func traitor() {
	cfg, err := service.ReadConfig(os.Args[1])
	if err == nil {
		var r *service.Replica
		if r, err = service.OpenReplica(cfg, service.ReplicaOptions{Traitor: os.Args[2]}); err == nil {
			err = r.Run(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// TestByzantineMembersChange: of four replicas, which are processes of their own, one is killed and
// comes back, one turns traitor, loses its disk and is replaced, and the others get new keys, while
// clients read and write. What they see is linearizable.
func TestByzantineMembersChange(t *testing.T) {
	ports := newPorts(t)
	for _, protocolName := range []string{"pbft", "zyzzyva"} {
		t.Run(protocolName, func(t *testing.T) {
			t.Parallel()
			w := &bftWorld{membersWorld: membersWorld{T: t, family: "bft", dir: t.TempDir(),
				running: map[protocol.ID]*replica{}}}
			w.foresay("init", "--dir", ".", "--protocol", protocolName, "--service", "kv", "--round-trip", "20ms", "--port",
				strconv.Itoa(ports.take()))
			for id := range protocol.ID(4) {
				w.serve(id + 1)
			}
			defer w.kill()
			load := w.load(70001, 70002)
			w.crash(4)
			w.progress()
			w.serve(4)
			w.admin("status", "--wait")
			w.end(2)
			w.betray(2, "equivocate")
			w.progress()
			w.crash(2)
			w.replace(2)
			w.progress()
			for _, id := range []protocol.ID{1, 3, 4} {
				w.shown("init", "--dir", ".", "--next-key", strconv.Itoa(int(id)))
				w.progress()
			}
			w.admin("status", "--wait")
			load()
		})
	}
}

type bftWorld struct {
	membersWorld
	now  func() time.Duration
	done atomic.Int64 // calls
}

// kill kills all that run.
func (w *bftWorld) kill() {
	for id, r := range w.running {
		_ = r.end(syscall.SIGKILL) // that it was killed is its error
		if w.Failed() {
			w.Logf("replica %d:\n%s", id, r.log.String())
		}
	}
}

// admin runs a command of the administrator.
func (w *bftWorld) admin(args ...string) string {
	w.Helper()
	return w.foresay(append(args, "--config", service.ClientFile(0), "--timeout", membersTimeout)...)
}

// shown runs a command, and the last one that it shows.
func (w *bftWorld) shown(args ...string) {
	w.Helper()
	lines := strings.Split(strings.TrimSpace(w.foresay(args...)), "\n")
	w.foresay(append(strings.Fields(lines[len(lines)-1])[2:], "--timeout", membersTimeout)...)
}

func (w *bftWorld) crash(id protocol.ID) {
	w.Helper()
	r := w.running[id]
	delete(w.running, id)
	if r.end(syscall.SIGKILL) == nil {
		w.Errorf("the killed replica %d ended well", id)
	}
}

// betray starts a replica as a traitor.
func (w *bftWorld) betray(id protocol.ID, strategy string) {
	w.Helper()
	r, err := startProcess(w.dir, "bft-traitor", filepath.Join(w.dir, service.ConfigFile(id)), strategy)
	if err != nil {
		w.Fatal(err)
	}
	w.running[id] = r
}

// replace takes the directory of a replica away, and puts a new replica in its place.
func (w *bftWorld) replace(id protocol.ID) {
	w.Helper()
	dir := filepath.Dir(filepath.Join(w.dir, service.ConfigFile(id)))
	if err := os.RemoveAll(dir); err != nil {
		w.Fatal(err)
	}
	text := w.foresay("init", "--dir", ".", "--join", strconv.Itoa(int(id)))
	w.serve(id)
	lines := strings.Split(strings.TrimSpace(text), "\n")
	w.foresay(append(strings.Fields(lines[len(lines)-1])[2:], "--timeout", membersTimeout)...)
}

// progress waits until each client has made a few more calls, about.
func (w *bftWorld) progress() {
	w.Helper()
	goal := w.done.Load() + 20
	for end := time.Now().Add(30 * time.Second); w.done.Load() < goal; <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("the clients have made %d calls of %d", w.done.Load(), goal)
		}
	}
}

// load has clients make calls until the function that it returns is called, which judges what they
// have seen.
func (w *bftWorld) load(ids ...protocol.ID) (judge func()) {
	start := time.Now()
	w.now = func() time.Duration { return time.Since(start) }
	ctx, stop := context.WithCancel(w.Context())
	var ops history.KVRecorder
	var wg sync.WaitGroup
	for i, id := range ids {
		wg.Go(func() {
			cfg, err := service.ReadClientConfig(filepath.Join(w.dir, service.ClientFile(i+1)))
			if err == nil {
				err = service.WithClient(w.Context(), cfg, service.ClientOptions{},
					func(_ context.Context, c *service.Client) error {
						for n := 0; ctx.Err() == nil; n++ {
							if err := w.call(c, &ops, history.Client(id), n); err != nil {
								return err
							}
						}
						return nil
					})
			}
			if err != nil {
				w.Errorf("client %d: %v", id, err)
			}
		})
	}
	return func() {
		stop()
		wg.Wait()
		w.Logf("%d calls in %v", w.done.Load(), w.now().Round(time.Millisecond))
		if err := history.CheckKV(&ops, 30*time.Second); err != nil {
			w.Error(err)
		}
	}
}

// call puts or gets a key, and keeps what came of it.
func (w *bftWorld) call(c *service.Client, ops *history.KVRecorder, id history.Client, n int) error {
	in := history.KVInput{Kind: history.KVGet, Key: fmt.Sprint("key ", n/50%8)}
	if n%2 == 0 {
		in.Kind, in.Value = history.KVPut, fmt.Sprint(id, " ", n)
	}
	op := ops.Invoke(id, w.now(), in)
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	var value []byte
	var err error
	if in.Kind == history.KVPut {
		value, err = c.Execute(ctx, kv.Put([]byte(in.Key), []byte(in.Value)))
	} else {
		value, err = c.Read(ctx, kv.Get([]byte(in.Key)))
	}
	if _, unknown := errors.AsType[*client.UnknownError](err); unknown && w.Context().Err() == nil {
		return fmt.Errorf("no answer in 30 s: %w", c.Explain(err))
	} else if err != nil {
		return err
	}
	r, err := kv.DecodeResult(value)
	if err != nil || r.Err() != nil {
		return errors.Join(err, r.Err())
	}
	var out history.KVOutput
	if in.Kind == history.KVGet && r.Status == kv.OK {
		out.State = history.KVState{Value: string(r.Value), Found: true}
	}
	op.Return(w.now(), out)
	w.done.Add(1)
	return nil
}
