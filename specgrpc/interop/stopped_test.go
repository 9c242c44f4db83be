//go:build unix

package interop

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"
	"github.com/foresay/foresay/specgrpc"
)

// stoppedClient names the environment variable with the server's address. With
// it the test is the client's process.
const stoppedClient = "FORESAY_STOPPED_CLIENT"

const (
	stoppedTasks = 40
	stoppedLease = 500 * time.Millisecond
)

// TestStoppedClient: a client that is stopped (SIGSTOP) with staged calls half
// open, for longer than their lease, finds them undone when it goes on, and makes
// them plainly. Its timers and what it was sent meanwhile come at once.
func TestStoppedClient(t *testing.T) {
	if addr := os.Getenv(stoppedClient); addr != "" {
		runStoppedClient(t, addr)
		return
	}
	t.Parallel()
	for _, heard := range []string{"before the leases end", "after that"} {
		for range 2 {
			t.Run("answers come "+heard, func(t *testing.T) { stopClient(t, heard == "after that") })
		}
	}
}

// stopping is a server that keeps its answers back as long as it is told to.
type stopping struct {
	kvpb.UnimplementedTestKVServer
	half   atomic.Int32  // Puts that have begun
	asked  chan struct{} // told of each
	answer chan struct{} // closed when Gets are answered

	mu      sync.Mutex
	begun   map[string]bool
	commits map[string]int
}

func (s *stopping) Get(ctx context.Context, r *kvpb.GetRequest) (*kvpb.GetResponse, error) {
	if r.GetKey() != "warm" {
		select {
		case <-s.answer:
		case <-ctx.Done():
		}
	}
	return &kvpb.GetResponse{Value: r.GetKey()}, nil
}

func (s *stopping) Put(ctx context.Context, r *kvpb.PutRequest) (*kvpb.PutResponse, error) {
	key := r.GetKey()
	s.mu.Lock()
	first := !s.begun[key]
	s.begun[key] = true
	s.mu.Unlock()
	if first {
		s.half.Add(1)
		s.asked <- struct{}{}
	}
	foresay.OnCommit(ctx, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.commits[key]++
	})
	return &kvpb.PutResponse{Version: 7}, nil
}

func stopClient(t *testing.T, late bool) {
	s := &stopping{answer: make(chan struct{}), asked: make(chan struct{}, stoppedTasks), begun: map[string]bool{},
		commits: map[string]int{}}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := specgrpc.NewServer(grpc.WaitForHandlers(true), specgrpc.Stages(kvpb.TestKV_Put_FullMethodName))
	kvpb.RegisterTestKVServer(server, s)
	go func() { _ = server.Serve(l) }()
	defer server.Stop()

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestStoppedClient$", "-test.count=1")
	cmd.Env = append(os.Environ(), stoppedClient+"="+l.Addr().String())
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for s.half.Load() < stoppedTasks {
		select {
		case <-s.asked:
		case <-ctx.Done():
			t.Fatalf("%d of %d Puts began", s.half.Load(), stoppedTasks)
		}
	}
	signal(t, cmd, syscall.SIGSTOP)
	if !late {
		close(s.answer)
	}
	for look := time.NewTicker(10 * time.Millisecond); server.HalfOpen() > 0; <-look.C {
		if ctx.Err() != nil {
			t.Fatalf("%d calls are half open after their lease", server.HalfOpen())
		}
	}
	if late {
		close(s.answer)
	}
	signal(t, cmd, syscall.SIGCONT)

	good := 0
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch line := lines.Text(); {
		case strings.HasPrefix(line, "bought"):
			good++
		case strings.HasPrefix(line, "failed"):
			t.Error(line)
		}
	}
	if err := cmd.Wait(); err != nil || good != stoppedTasks {
		t.Errorf("%d of %d tasks succeeded, the client ended with %v", good, stoppedTasks, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for key := range s.begun {
		if n := s.commits[key]; n != 1 {
			t.Errorf("%s took effect %d times, want once", key, n)
		}
	}
}

func signal(t *testing.T, cmd *exec.Cmd, s os.Signal) {
	t.Helper()
	if err := cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// runStoppedClient runs tasks that guess, each, what a read returns, and write it.
func runStoppedClient(t *testing.T, addr string) {
	cc, err := specgrpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		specgrpc.WithMode(control.ModeOn),
		specgrpc.WithLease(stoppedLease), specgrpc.WithMaxHalfOpen(2*stoppedTasks),
		specgrpc.WithCallSites(control.CallSiteConfig{Name: kvpb.TestKV_Put_FullMethodName, Effect: control.EffectStaged}))
	if err != nil {
		t.Fatal(err)
	}
	defer cc.Close()
	kv := kvpb.NewTestKVClient(cc)
	if _, err := kv.Get(t.Context(), &kvpb.GetRequest{Key: "warm"}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var tasks sync.WaitGroup
	for i := range stoppedTasks {
		key := fmt.Sprint("key", i)
		tasks.Go(func() {
			_, err := foresay.Do(ctx, func(ctx context.Context) (uint64, error) {
				got, err := kv.Get(foresay.Predicting(ctx, &kvpb.GetResponse{Value: key}), &kvpb.GetRequest{Key: key})
				if err != nil {
					return 0, err
				}
				res, err := kv.Put(ctx, &kvpb.PutRequest{Key: got.GetValue()})
				return res.GetVersion(), err
			})
			if err != nil {
				fmt.Printf("failed: %v\n", err)
				return
			}
			fmt.Printf("bought %s\n", key)
		})
	}
	tasks.Wait()
}
