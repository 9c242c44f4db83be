//go:build unix

package specgrpc_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/foresay/foresay"
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
// server is another process. Read it against "grpc" of the same run.
func BenchmarkClientAlone(b *testing.B) {
	addr := echoProcess(b)
	bare, cc := grpcAlone(b, addr), speculating(b, addr)
	streams := speculating(b, addr, specgrpc.WithSites(foresay.SiteConfig{Name: getMethod, ServerPredictions: true}))
	for _, row := range []struct {
		name string
		call func(context.Context) error
	}{
		{"grpc", get(bare)},
		{"task-right", inTask(cc, echoed)},
		{"task-right-streamed", inTask(streams, "")},
	} {
		b.Run(row.name, func(b *testing.B) {
			before := processorTime(b)
			measure(b, 16, row.call)
			b.ReportMetric(float64((processorTime(b)-before).Nanoseconds())/1000/float64(b.N), "client-cpu-us/op")
		})
	}
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
