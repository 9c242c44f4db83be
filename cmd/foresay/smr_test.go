package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/foresay/foresay/smr/service"
)

// portsPerScript is how many ports in a row each script has for itself.
const portsPerScript = 10

// A portRange hands out ports that no script has: scripts run at the same time. They are below
// those that systems give to connections.
type portRange struct {
	t    *testing.T
	mu   sync.Mutex
	next int
}

func newPorts(t *testing.T) *portRange {
	return &portRange{t: t, next: 10_000 + os.Getpid()%1500*portsPerScript}
}

// take returns the first of portsPerScript ports at which nobody listens.
func (p *portRange) take() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for range 100 {
		first := p.next
		p.next += portsPerScript
		if free(first, portsPerScript) {
			return first
		}
	}
	p.t.Fatal("there are no free ports")
	return 0
}

func free(first, n int) bool {
	for i := range n {
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(first+i)))
		if err != nil {
			return false
		}
		if l.Close() != nil {
			return false
		}
	}
	return true
}

// leader sets LEADER to the ID of a cluster's leader, and FOLLOWER and FOLLOWER_ADDRESS to another
// replica.
func leader(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: leader clientfile")
	}
	ts.Check(ts.Exec("foresay", "smr", "status", "--json", "--config", args[0]))
	var statuses []service.Status
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &statuses))
	ts.Setenv("LEADER", "")
	for _, s := range statuses {
		switch s.Role {
		case "leader":
			ts.Setenv("LEADER", strconv.Itoa(int(s.Replica)))
		case "follower":
			ts.Setenv("FOLLOWER", strconv.Itoa(int(s.Replica)))
			ts.Setenv("FOLLOWER_ADDRESS", s.Address)
		}
	}
	if ts.Getenv("LEADER") == "" || ts.Getenv("FOLLOWER") == "" {
		ts.Fatalf("no leader, or no follower")
	}
}

// loseNewest removes the newest log of a replica that is not running.
func loseNewest(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: losenewest datadir")
	}
	logs, err := filepath.Glob(filepath.Join(ts.MkAbs(args[0]), "db", "*.log"))
	ts.Check(err)
	if len(logs) == 0 {
		ts.Fatalf("%s has no log", args[0])
	}
	ts.Check(os.Remove(slices.Max(logs)))
}

// watching starts a watch of a key, sets the key once the watch has told what is there, and has the
// watch's lines written to a file.
func watching(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 4 {
		ts.Fatalf("usage: watching clientfile key value outfile")
	}
	config, key, value := args[0], args[1], args[2]
	watch := exec.Command("foresay", "smr", "watch", key, "--changes", "2", "--every", "20ms", "--config", config)
	watch.Dir = ts.MkAbs(".")
	out, err := watch.StdoutPipe()
	ts.Check(err)
	ts.Check(watch.Start())
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err == nil {
		err = ts.Exec("foresay", "smr", "put", key, value, "--config", config)
	}
	if err != nil {
		_ = watch.Process.Kill() // it would go on for ever
	}
	rest, readErr := io.ReadAll(lines)
	ts.Check(errors.Join(err, readErr, watch.Wait()))
	ts.Check(os.WriteFile(ts.MkAbs(args[3]), append([]byte(first), rest...), 0o600))
}

// A replica is a process that serve or machine began.
type replica struct {
	cmd *exec.Cmd
	log bytes.Buffer // standard error; read when the process has ended
}

type replicasKey struct{}

// start starts the process of a replica of package smr's family.
func start(dir, config string) (*replica, error) { return startOf("smr", dir, config) }

// startOf starts the process of a replica of a family.
func startOf(family, dir, config string) (*replica, error) {
	return startProcess(dir, "foresay", family, "serve", "--config", config)
}

func startProcess(dir, name string, args ...string) (*replica, error) {
	r := &replica{cmd: exec.Command(name, args...)}
	r.cmd.Dir, r.cmd.Stderr = dir, &r.log
	return r, r.cmd.Start()
}

// end sends a signal and waits for the process.
func (r *replica) end(s syscall.Signal) error {
	if err := r.cmd.Process.Signal(s); err != nil {
		return err
	}
	return r.cmd.Wait()
}

// serve starts the replica of a file in the background, of another family than smr if a name
// follows.
func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 || len(args) > 2 {
		ts.Fatalf("usage: serve replicafile [family]")
	}
	family := append(args, "smr")[1]
	r, err := startOf(family, ts.MkAbs("."), args[0])
	ts.Check(err)
	keep(ts, args[0], r)
}

// keep notes a process, which is killed when the script ends.
func keep(ts *testscript.TestScript, file string, r *replica) {
	running := ts.Value(replicasKey{}).(map[string]*replica)
	running[file] = r
	ts.Defer(func() {
		if running[file] == r {
			_ = r.end(syscall.SIGKILL) // that it was killed is its error
			ts.Logf("%s:\n%s", file, r.log.String())
		}
	})
}

// crash kills the replica of a file.
func crash(ts *testscript.TestScript, neg bool, args []string) {
	if r := taken(ts, neg, args); r.end(syscall.SIGKILL) == nil {
		ts.Fatalf("the killed process ended well")
	}
}

// terminate ends the replica of a file, gracefully. It is not called stop: that is testscript's own
// command, which ends the script.
func terminate(ts *testscript.TestScript, neg bool, args []string) {
	r := taken(ts, neg, args)
	if err := r.end(syscall.SIGTERM); err != nil || !bytes.Contains(r.log.Bytes(), []byte("replica: stopped")) {
		ts.Fatalf("%s: %v\n%s", args[0], err, r.log.String())
	}
}

// taken returns the running replica of a file, which is not running from now on.
func taken(ts *testscript.TestScript, neg bool, args []string) *replica {
	running := ts.Value(replicasKey{}).(map[string]*replica)
	if neg || len(args) != 1 || running[args[0]] == nil {
		ts.Fatalf("usage: crash, terminate or halt, and the file of a running process")
	}
	r := running[args[0]]
	delete(running, args[0])
	return r
}
