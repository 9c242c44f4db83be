//go:build unix

package specgrpc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	kvpb "github.com/foresay/foresay/api/foresay/testkv/v1"

	specv1 "github.com/foresay/foresay/api/foresay/spec/v1"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/specgrpc"
)

// echoVariable has the test binary serve foretold until its standard input ends.
const echoVariable = "FORESAY_ECHO_SERVER"

// TestEchoProcess is the server of BenchmarkClientAlone.
func TestEchoProcess(t *testing.T) {
	if os.Getenv(echoVariable) == "" {
		t.Skip("it is the other process of BenchmarkClientAlone")
	}
	fmt.Println("at " + loopback(t, foretold{}))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// BenchmarkClientAlone compares the processor time that calls take of their client, whose
// server is another process. On a machine with other work only neighbours in time compare:
// an iteration is a slice of each row, in turns, and what is reported is the median of the
// slices' ratios to plain gRPC's, with its interval of 95 %.
func BenchmarkClientAlone(b *testing.B) {
	addr := echoProcess(b)
	asking := specgrpc.WithCallSites(control.CallSiteConfig{Name: getMethod, ServerPredictions: true})
	bare, cc, streams := grpcAlone(b, addr), speculating(b, addr), speculating(b, addr, asking)
	all := always(b)
	rows := []struct {
		name   string
		call   func(context.Context) error
		ratios []float64
	}{
		{name: "grpc", call: get(bare)},
		{name: "outside", call: get(cc)},
		{name: "off", call: get(speculating(b, addr, specgrpc.WithMode(control.ModeOff)))},
		{name: "task-right", call: inTask(cc, echoed)},
		{name: "task-right-streamed", call: inTask(streams, "")},
		{name: "handed-over", call: handedOver(bare)},
		{name: "all-right", call: inTask(speculating(b, addr, all), echoed)},
		{name: "grpc-stream", call: overStream(bare)},
		{name: "all-right-streamed", call: inTask(speculating(b, addr, all, asking), "")},
	}
	for i := range rows {
		slice(b, rows[i].call) // connections are made, peers are learnt of
	}
	var plainly time.Duration
	for i := 0; b.Loop(); i++ {
		took := make([]time.Duration, len(rows))
		for k := range rows {
			k = (k + i) % len(rows)
			took[k] = slice(b, rows[k].call)
		}
		plainly += took[0]
		for k := 1; k < len(rows); k++ {
			rows[k].ratios = append(rows[k].ratios, float64(took[k])/float64(took[0]))
		}
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(plainly.Nanoseconds())/1000/float64(b.N)/sliceCalls, "grpc-us/call")
	for _, r := range rows[1:] {
		slices.Sort(r.ratios)
		n := float64(len(r.ratios))
		off := 0.98 * math.Sqrt(n) // of the ranks between which the median is, by the binomial distribution
		b.ReportMetric(r.ratios[int(n/2)], r.name+"-ratio")
		b.ReportMetric(r.ratios[int(max(0, n/2-off))], r.name+"-low")
		b.ReportMetric(r.ratios[int(min(n-1, n/2+off))], r.name+"-high")
	}
}

// handedOver makes a call in another goroutine than the code that asks for it, which goes on: with
// nothing else it is what a guessed call must cost.
func handedOver(cc grpc.ClientConnInterface) func(ctx context.Context) error {
	c := kvpb.NewTestKVClient(cc)
	return func(ctx context.Context) error {
		asked, done := make(chan *kvpb.GetRequest, 1), make(chan struct{})
		go func() {
			asked <- &kvpb.GetRequest{Key: echoed}
			close(done)
		}()
		_, err := c.Get(ctx, <-asked)
		<-done
		return err
	}
}

// overStream makes a call with the frames of a speculative stream whose caller is confirmed from
// the start, as they are sent over grpc by hand: what a call that asks its server must cost.
func overStream(cc grpc.ClientConnInterface) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		payload, err := proto.Marshal(&kvpb.GetRequest{Key: echoed})
		if err != nil {
			return err
		}
		stream, err := cc.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true}, getMethod+".spec")
		if err != nil {
			return err
		}
		if err := stream.SendMsg(&specv1.ClientFrame{Frame: &specv1.ClientFrame_Request{Request: &specv1.Request{
			Payload: payload, CallId: make([]byte, 16), Attempt: 1, Caller: specv1.CallerState_CALLER_STATE_CONFIRMED,
		}}}); err != nil {
			return err
		}
		if err := stream.CloseSend(); err != nil {
			return err
		}
		frame := new(specv1.ServerFrame)
		for {
			if err := stream.RecvMsg(frame); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
			if p := frame.GetPrediction(); p != nil {
				if err := proto.Unmarshal(p.GetPayload(), new(kvpb.GetResponse)); err != nil {
					return err
				}
			}
		}
	}
}

// sliceCalls is how many calls a slice makes, of 16 callers.
const sliceCalls = 1600

// slice returns what processor time its calls took.
func slice(b *testing.B, call func(context.Context) error) time.Duration {
	b.Helper()
	before := processorTime(b)
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for range sliceCalls / 16 {
				if err := call(b.Context()); err != nil {
					b.Error(err)
				}
			}
		})
	}
	callers.Wait()
	return processorTime(b) - before
}

// echoProcess starts a server in a process of its own and returns its address.
func echoProcess(b *testing.B) (addr string) {
	b.Helper()
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.CommandContext(b.Context(), self, "-test.run=^TestEchoProcess$")
	cmd.Env = append(os.Environ(), echoVariable+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		b.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		b.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		if addr, ok := strings.CutPrefix(lines.Text(), "at "); ok {
			return addr
		}
	}
	b.Fatal("the server did not say where it is")
	return ""
}

// processorTime is what this process has used so far.
func processorTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
