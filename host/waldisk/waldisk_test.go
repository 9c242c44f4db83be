package waldisk_test

import (
	"context"
	"fmt"
	"log"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
)

type texts struct{}

func (texts) Append(buf []byte, msg string) ([]byte, error) { return append(buf, msg...), nil }
func (texts) Decode(b []byte) (string, error)               { return string(b), nil }

// AppendShared leaves a text where it is, but for its first byte.
func (texts) AppendShared(buf []byte, refs []protocol.Ref, msg string) ([]byte, []protocol.Ref, error) {
	buf = append(buf, msg[:1]...)
	return buf, append(refs, protocol.Ref{At: len(buf), Data: []byte(msg[1:])}), nil
}

// register remembers its application's messages, and answers to each when it is durable.
type register struct{ found []string }

func (r *register) Start(env *protocol.Env[string], log []protocol.Record[string]) {
	for _, rec := range log {
		r.found = append(r.found, fmt.Sprint(rec.Index, " ", rec.Msg))
	}
	for k, v := range env.Scan(nil, nil) {
		r.found = append(r.found, fmt.Sprintf("%s=%s", k, v))
	}
}

func (r *register) Receive(env *protocol.Env[string], _ protocol.ID, msg string) {
	i := env.Append(msg)
	env.Put(fmt.Appendf(nil, "%03d", i), []byte(msg))
	if i > 3 {
		env.Truncate(i - 2)
		env.Delete(fmt.Appendf(nil, "%03d", i-2))
	}
	env.Send(protocol.App, msg)
}

func (r *register) Expire(*protocol.Env[string], protocol.Timer) {}

// serve runs a register on a store until stop is called, which returns what Run did.
func serve(t testing.TB, store *wal.Store, app func(string)) (r *register, n *host.Node[string], stop func() error) {
	t.Helper()
	disk, err := waldisk.New(store, "register")
	if err != nil {
		t.Fatal(err)
	}
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "test", Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	r = new(register)
	if n, err = host.Add(h, host.Spec[string]{ID: 1, Node: r, Codec: texts{}, Disk: disk, App: app}); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	return r, n, func() error { cancel(); return <-ended }
}

func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fs := vfs.NewMem()
		open := func() *wal.Store {
			s, err := wal.Open("disk", wal.Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			return s
		}
		store := open()
		r, n, stop := serve(t, store, nil)
		identity := n.Disk()
		for i := range 5 {
			if err := n.Deliver(t.Context(), fmt.Sprint("m", i)); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		if len(r.found) > 0 {
			t.Errorf("a new disk had %q", r.found)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		store = open()
		r, n, stop = serve(t, store, nil)
		synctest.Wait()
		if err := stop(); err != nil {
			t.Fatal(err)
		}
		want := []string{"3 m2", "4 m3", "5 m4", "001=m0", "004=m3", "005=m4"}
		if !slices.Equal(r.found, want) {
			t.Errorf("after the restart the node found %q, want %q", r.found, want)
		}
		if n.Disk() != identity {
			t.Errorf("the disk's identity was %s, now it is %s", identity, n.Disk())
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// What was acknowledged survives the crash of the machine, whatever else is lost; what survives has
// no gaps.
func TestCrash(t *testing.T) {
	for seed := range uint64(20) {
		synctest.Test(t, func(t *testing.T) {
			fs := vfs.NewCrashableMem()
			store, err := wal.Open("disk", wal.Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			acknowledged := make(chan string, 1000)
			_, n, stop := serve(t, store, func(msg string) { acknowledged <- msg })
			for i := range 100 {
				if err := n.Deliver(t.Context(), fmt.Sprint("m", i)); err != nil {
					t.Fatal(err)
				}
			}
			for range seed { // some are acknowledged, some are on their way
				<-acknowledged
			}
			safe := len(acknowledged) + int(seed)
			after := fs.CrashClone(vfs.CrashCloneCfg{})
			if err := stop(); err != nil {
				t.Fatal(err)
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			if store, err = wal.Open("disk", wal.Options{FS: after}); err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			disk, err := waldisk.New(store, "register")
			if err != nil {
				t.Fatal(err)
			}
			if got := int(disk.NextIndex()) - 1; got < safe {
				t.Errorf("%d messages were acknowledged, %d are there after the crash", safe, got)
			}
			last := uint64(0)
			for r, err := range disk.Records() {
				if err != nil || last != 0 && r.Index != last+1 || string(r.Bytes) != fmt.Sprint("m", r.Index-1) {
					t.Errorf("record %d after %d is %q, %v", r.Index, last, r.Bytes, err)
				}
				last = r.Index
			}
		})
	}
}

func TestClosedStoreStopsTheHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := wal.OpenMemory(wal.Options{})
		if err != nil {
			t.Fatal(err)
		}
		_, n, stop := serve(t, store, func(msg string) { t.Errorf("%q was acknowledged", msg) })
		synctest.Wait()
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		if err := n.Deliver(t.Context(), "lost"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		const want = "host: node 1 of group 0: disk: wal: the store is closed"
		if err := stop(); err == nil || err.Error() != want {
			t.Errorf("got the error %v, want %s", err, want)
		}
	})
}

// A node whose records are on a disk.
func Example() {
	store, err := wal.OpenMemory(wal.Options{}) // wal.Open for a directory
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	disk, err := waldisk.New(store, "partition 7")
	if err != nil {
		log.Fatal(err)
	}
	h, err := host.New(host.Config{Network: transport.Config{Cluster: "example", Insecure: true}})
	if err != nil {
		log.Fatal(err)
	}
	durable := make(chan string)
	spec := host.Spec[string]{ID: 1, Node: new(register), Codec: texts{}, Disk: disk, App: func(msg string) {
		durable <- msg
	}}
	n, err := host.Add(h, spec)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- h.Run(ctx) }()
	if err := n.Deliver(ctx, "a record"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(<-durable, "is durable")
	stop()
	fmt.Println(<-ended)
	// Output:
	// a record is durable
	// <nil>
}
