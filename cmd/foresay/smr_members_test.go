package main

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"

	bftservice "github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
)

// membersTimeout is how long each step of TestMembersAreReplaced may take.
const membersTimeout = "30s"

// TestMembersAreReplaced: of three replicas, which are processes of their own, two are replaced by
// new ones; then all that are left are stopped and started again, one after the other. The service
// goes on with what was written before.
func TestMembersAreReplaced(t *testing.T) {
	ports := newPorts(t)
	for _, p := range catalog.Protocols() {
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			port := ports.take() // and those that follow
			w := &membersWorld{T: t, family: "smr", dir: t.TempDir(), running: map[protocol.ID]*replica{}}
			w.foresay("init", "--dir", ".", "--protocol", p.Name, "--round-trip", "50ms", "--port", strconv.Itoa(port))
			for id := range protocol.ID(3) {
				w.serve(id + 1)
			}
			defer func() {
				for _, r := range w.running {
					_ = r.end(syscall.SIGKILL) // that it was killed is its error
				}
			}()
			w.client("put", "k", "0")
			for i := range 2 {
				w.replace(protocol.ID(i+1), protocol.ID(i+4), port+3+i)
				w.client("put", "k", strconv.Itoa(i+1))
			}
			for n, id := range []protocol.ID{3, 4, 5} {
				w.end(id)
				w.serve(id)
				w.client("status", "--wait")
				if got := w.client("get", "k"); got != fmt.Sprintln(n+2) {
					t.Errorf("after replica %d was started again the key has %q, want %d", id, got, n+2)
				}
				w.client("put", "k", strconv.Itoa(n+3))
			}
			for _, id := range []protocol.ID{3, 4, 5} {
				w.end(id)
			}
		})
	}
}

type membersWorld struct {
	*testing.T
	family  string
	dir     string
	running map[protocol.ID]*replica
}

// foresay runs a command of the family, and returns what it wrote.
func (w *membersWorld) foresay(args ...string) string {
	w.Helper()
	var said bytes.Buffer
	c := exec.Command("foresay", slices.Insert(args, 0, w.family)...)
	c.Dir, c.Stderr = w.dir, &said
	out, err := c.Output()
	if err != nil {
		w.Fatalf("foresay %q: %v\n%s%s", args, err, out, &said)
	}
	return string(out)
}

// client runs a command of a client.
func (w *membersWorld) client(args ...string) string {
	w.Helper()
	return w.foresay(append(args, "--config", service.ClientFile, "--timeout", membersTimeout)...)
}

func (w *membersWorld) serve(id protocol.ID) {
	w.Helper()
	r, err := startOf(w.family, w.dir, filepath.Join(w.dir, configFile(w.family, id)))
	if err != nil {
		w.Fatal(err)
	}
	w.running[id] = r
}

// configFile returns the name of a replica's file.
func configFile(family string, id protocol.ID) string {
	if family == "bft" {
		return bftservice.ConfigFile(id)
	}
	return service.ConfigFile(id)
}

// end has a replica end well.
func (w *membersWorld) end(id protocol.ID) {
	w.Helper()
	r := w.running[id]
	delete(w.running, id)
	if err := r.end(syscall.SIGTERM); err != nil {
		w.Errorf("replica %d: %v\n%s", id, err, r.log.String())
	}
}

// replace adds a replica, and removes another one, whose process ends by itself.
func (w *membersWorld) replace(old, by protocol.ID, port int) {
	w.Helper()
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	w.foresay("init", "--dir", ".", "--join", strconv.Itoa(int(by)), "--at", at)
	w.serve(by)
	w.client("add", strconv.Itoa(int(by)), at)
	w.client("remove", strconv.Itoa(int(old)))
	left := w.running[old]
	delete(w.running, old)
	if err := left.cmd.Wait(); err == nil {
		w.Errorf("replica %d, which was removed, ended well", old)
	}
}
