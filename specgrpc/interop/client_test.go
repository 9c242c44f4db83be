package interop

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/foresay/foresay/specgrpc"
)

var update = flag.Bool("update", false, "write what the scripts print to testdata")

// checkPrinted compares what a script printed with a file of testdata.
func checkPrinted(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("not what %s says (-want +got):\n%s", path, diff)
	}
}

// Clients in Python see the same of a server that serves through a Registrar,
// its handlers run as tasks or not, as of a plain one: responses, statuses,
// details, metadata, to the letter.
func (p *python) testClients(t *testing.T) {
	for _, script := range []string{"client_sync.py", "client_aio.py"} {
		t.Run(script, func(t *testing.T) {
			t.Parallel()
			plain, aware, replayable := newKV(), newKV(), newKV()
			out := p.run(t, script,
				servePlain(t, plain),
				serveAware(t, aware, aware),
				serveAware(t, replayable, replayable, specgrpc.AllReplayable()))
			saw := strings.Split(out, "==== a server\n")[1:]
			if len(saw) != 3 {
				t.Fatalf("the script printed of %d servers:\n%s", len(saw), out)
			}
			checkPrinted(t, "client.txt", saw[0])
			for i, server := range []*kv{aware, replayable} {
				name := []string{"a Registrar", "a Registrar whose handlers are replayable"}[i]
				if diff := cmp.Diff(saw[0], saw[i+1]); diff != "" {
					t.Errorf("through %s the client saw something else (-plain +registrar):\n%s", name, diff)
				}
				if diff := cmp.Diff(sorted(plain.log), sorted(server.log)); diff != "" {
					t.Errorf("through %s other handlers ran (-plain +registrar):\n%s", name, diff)
				}
				if len(server.streams) > 0 {
					t.Errorf("a plain client opened %v", server.streams)
				}
			}
		})
	}
}
