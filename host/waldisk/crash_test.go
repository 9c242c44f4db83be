package waldisk_test

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/transport"
	"github.com/foresay/foresay/wal"
	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// tally writes each number that it gets, if it follows the last one, and answers with the last one.
type tally struct{ last int }

func (n *tally) Start(_ *protocol.Env[string], log []protocol.Record[string]) {
	for _, r := range log {
		n.last++
		if r.Msg != strconv.Itoa(n.last) {
			panic(fmt.Sprintf("record %d is %s", r.Index, r.Msg))
		}
	}
}

func (n *tally) Receive(env *protocol.Env[string], from protocol.ID, msg string) {
	if msg == strconv.Itoa(n.last+1) {
		n.last++
		env.Append(msg)
	}
	env.Send(from, strconv.Itoa(n.last))
}

func (n *tally) Expire(*protocol.Env[string], protocol.Timer) {}

// teller has numbers written, one after the other, and asks again after a while without an answer,
// or when one may be lost.
type teller struct {
	acknowledged int
	goal         int
	broken       int
}

type retry struct{}

func (n *teller) Start(env *protocol.Env[string], _ []protocol.Record[string]) { n.ask(env) }

func (n *teller) ask(env *protocol.Env[string]) {
	env.Send(1, strconv.Itoa(n.acknowledged+1))
	env.After(100*time.Millisecond, retry{})
}

func (n *teller) Receive(env *protocol.Env[string], _ protocol.ID, msg string) {
	last, err := strconv.Atoi(msg)
	switch {
	case err != nil || last > n.acknowledged+1:
		panic("an answer of " + msg)
	case last < n.acknowledged:
		env.SendAhead(protocol.App, fmt.Sprintf("%d were acknowledged, %d are left", n.acknowledged, last))
	}
	n.acknowledged = max(n.acknowledged, last)
	if n.acknowledged == n.goal {
		env.Stop(retry{})
		env.Send(protocol.App, "done")
	} else {
		n.ask(env)
	}
}

func (n *teller) Expire(env *protocol.Env[string], _ protocol.Timer) { n.ask(env) }

func (n *teller) Broken(env *protocol.Env[string], _ protocol.ID) {
	n.broken++
	n.ask(env)
}

// A machine crashes again and again while it serves: what it acknowledged is there afterwards.
func TestServerThatCrashes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		net := shape.NewNetwork(wan.Uniform(2*time.Millisecond, "server", "client"), 1)
		fs := vfs.NewCrashableMem()
		serve := func() (store *wal.Store, cancel context.CancelFunc, ended chan error) {
			store, err := wal.Open("disk", wal.Options{FS: fs})
			if err != nil {
				t.Fatal(err)
			}
			disk, err := waldisk.New(store, "tally")
			if err != nil {
				t.Fatal(err)
			}
			lis, err := net.Listen("server")
			if err != nil {
				t.Fatal(err)
			}
			h, err := host.New(host.Config{
				Network:  transport.Config{Cluster: "test", Insecure: true, IDs: []protocol.ID{1}},
				Listener: lis,
			})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := host.Add(h, host.Spec[string]{ID: 1, Node: new(tally), Codec: texts{}, Disk: disk}); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			ended = make(chan error, 1)
			go func() { ended <- h.Run(ctx) }()
			return store, cancel, ended
		}
		client, err := host.New(host.Config{Network: transport.Config{Cluster: "test", Insecure: true,
			Dial: net.DialContext("client")}})
		if err != nil {
			t.Fatal(err)
		}
		if err := client.SetPeer(1, "server:1"); err != nil {
			t.Fatal(err)
		}
		said := make(chan string, 10)
		asker := &teller{goal: 500}
		if _, err := host.Add(client, host.Spec[string]{ID: 70000, Node: asker, Codec: texts{}, App: func(msg string) {
			said <- msg
		}}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		clientEnded := make(chan error, 1)
		go func() { clientEnded <- client.Run(ctx) }()
		for range 8 {
			store, stop, ended := serve()
			time.Sleep(77 * time.Millisecond)
			after := fs.CrashClone(vfs.CrashCloneCfg{}) // only what was synced is left
			net.Crash("server")
			stop()
			<-ended // it may have noticed that its listener is gone, or not
			if err := store.Close(); err != nil {
				t.Error(err)
			}
			fs = after
		}
		store, stop, ended := serve()
		if got := <-said; got != "done" {
			t.Error(got)
		}
		if asker.broken == 0 {
			t.Error("the client was never told that messages were lost")
		}
		cancel()
		stop()
		if err := <-clientEnded; err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}
