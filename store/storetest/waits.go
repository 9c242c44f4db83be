package storetest

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/wan"
)

// Waits has a client at the first site of the SpecRPC paper's network read a key, and then write it
// and another one, alone, some seconds after the store has begun. It tells how long the client
// waits: "a read takes 122ms, a transaction 402ms".
func Waits(p store.Protocol) (string, error) {
	network := wan.SpecRPC()
	sites := network.Sites()
	layout := Layout(len(sites), 2)
	d, err := deploy.New(deploy.Config[store.Message]{
		Sim: sim.Config[store.Message]{WAN: network, Codec: p.Codec},
		Answers: func(msg store.Message) (call uint64, ok bool) {
			switch m := msg.(type) {
			case store.Got:
				return m.Ref, true
			case store.Done:
				return m.Ref, true
			}
			return 0, false
		},
	})
	if err != nil {
		return "", err
	}
	add := func(id protocol.ID, site wan.Site, build func(store.Config) (protocol.Node[store.Message], error)) {
		if err == nil && build != nil {
			cfg := store.Config{ID: id, Layout: layout}
			err = d.Add(id, site, func() (protocol.Node[store.Message], error) { return build(cfg) })
		}
	}
	for i, site := range sites {
		for _, id := range layout.Sites[i].Coordinators {
			add(id, site, p.NewCoordinator)
		}
		for _, id := range layout.Sites[i].Shards {
			add(id, site, p.NewServer)
		}
	}
	const client = 200
	add(client, sites[0], func(c store.Config) (protocol.Node[store.Message], error) { return p.NewClient(c) })
	if err != nil {
		return "", err
	}
	if err := d.Run(5 * time.Second); err != nil { // to elect, and to measure
		return "", err
	}
	var read, commit time.Duration
	var verdict store.Verdict
	d.Call(client, func(ref uint64) store.Message { return store.Get{Ref: ref, Key: "a"} },
		func(a deploy.Answer[store.Message]) {
			read = a.Took
			tx := store.Buffer{}
			tx.Saw("a", a.Msg.(store.Got).Value)
			tx.Put("a", []byte("1"))
			tx.Put("b", []byte("2"))
			reads, writes := tx.Accesses()
			d.Call(client, func(ref uint64) store.Message {
				return store.Submit{Ref: ref, Reads: reads, Writes: writes}
			}, func(a deploy.Answer[store.Message]) { commit, verdict = a.Took, a.Msg.(store.Done).Outcome.Verdict })
		})
	if err := d.Run(10 * time.Second); err != nil {
		return "", err
	}
	if verdict != store.Committed {
		return "", fmt.Errorf("storetest: a transaction that is alone is %v", verdict)
	}
	return fmt.Sprintf("a read takes %v, a transaction %v", read.Round(time.Millisecond),
		commit.Round(time.Millisecond)), nil
}
