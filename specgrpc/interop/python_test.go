// Package interop holds the tests of package specgrpc against gRPC as others
// speak it: plain clients and servers in Go and in Python. They run over real
// sockets and processes, because what they test is what really is on the wire.
package interop

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Clients and servers in Python, which know nothing of Foresay or speak its
// protocol by hand.
func TestPython(t *testing.T) {
	t.Parallel()
	p := findPython(t)
	t.Run("clients", p.testClients)
	t.Run("servers", p.testServers)
	t.Run("client of the protocol", p.testClientOfTheProtocol)
	t.Run("server of the protocol", p.testServerOfTheProtocol)
}

// python is an interpreter with grpcio and the stubs of the tests' services.
type python struct {
	path  string
	stubs string // the directory of the generated modules
}

// generate writes the stubs. Its exit status tells a missing module from what
// else goes wrong.
const generate = `
import sys
try:
    import grpc
    from grpc_tools import protoc
except ImportError as error:
    print(error)
    sys.exit(77)
sys.exit(protoc.main(sys.argv))
`

const exitMissing = 77

// findPython returns the interpreter that FORESAY_PYTHON names, or python3. It
// skips the test where python3 cannot do what the tests need; one that was named
// must.
func findPython(t *testing.T) *python {
	t.Helper()
	const install = "install it with: python3 -m venv DIR && DIR/bin/pip install grpcio grpcio-tools, " +
		"and set FORESAY_PYTHON=DIR/bin/python"
	p := &python{path: os.Getenv("FORESAY_PYTHON"), stubs: t.TempDir()}
	giveUp := t.Fatalf
	if p.path == "" {
		giveUp = t.Skipf
		p.path = "python3"
	}
	cmd := p.command(t.Context(), "-c", generate, "--proto_path=../../api",
		"--python_out="+p.stubs, "--grpc_python_out="+p.stubs,
		"foresay/testkv/v1/testkv.proto", "foresay/spec/v1/frames.proto")
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil:
		giveUp("no Python: %v; %s", err, install)
	case cmd.ProcessState.ExitCode() == exitMissing:
		giveUp("Python without gRPC: %s; %s", bytes.TrimSpace(out), install)
	case err != nil:
		t.Fatalf("generate the Python stubs: %v\n%s", err, out)
	}
	return p
}

func (p *python) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, p.path, args...)
	cmd.WaitDelay = 5 * time.Second
	for _, v := range os.Environ() {
		// gRPC in Python would take a proxy even to the loopback interface.
		if name, _, _ := strings.Cut(strings.ToLower(v), "="); !strings.HasSuffix(name, "_proxy") {
			cmd.Env = append(cmd.Env, v)
		}
	}
	cmd.Env = append(cmd.Env, "PYTHONPATH="+p.stubs, "PYTHONDONTWRITEBYTECODE=1", "PYTHONIOENCODING=utf-8")
	return cmd
}

// run runs a script of testdata and returns what it printed.
func (p *python) run(t *testing.T, script string, args ...string) string {
	t.Helper()
	var stderr bytes.Buffer
	cmd := p.command(t.Context(), append([]string{filepath.Join("testdata", script)}, args...)...)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\nit printed:\n%s%s", script, err, out, stderr.Bytes())
	}
	return string(out)
}

// serve starts a server of testdata, and returns its address and how to kill it.
// The server stops by itself when its standard input ends: with the test, however
// that ends.
func (p *python) serve(t *testing.T, script string) (addr string, kill func()) {
	t.Helper()
	var stderr bytes.Buffer
	cmd := p.command(context.WithoutCancel(t.Context()), filepath.Join("testdata", script))
	cmd.Stderr = &stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", script, err)
	}
	killed := false
	t.Cleanup(func() {
		stdin.Close()
		defer time.AfterFunc(5*time.Second, func() { _ = cmd.Process.Kill() }).Stop()
		if err := cmd.Wait(); err != nil && !killed {
			t.Errorf("%s: %v\n%s", script, err, stderr.Bytes())
		}
	})
	addr, err = bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("%s gave no address: %v\n%s", script, err, stderr.Bytes())
	}
	return strings.TrimSpace(addr), func() {
		killed = true
		_ = cmd.Process.Kill()
	}
}
