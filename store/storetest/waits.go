package storetest

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/sim/deploy"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/wan"
)

// Waits has a client at the first site of the SpecRPC paper's network read a key, and then write it
// and another one, alone, some seconds after the store has begun. It tells how long the client
// waits: "a read takes 122ms, a transaction 402ms".
func Waits(p store.Protocol) (string, error) {
	network := wan.SpecRPC()
	sites := network.Sites()
	d, err := storedeploy.New(storedeploy.Config{Protocol: p, Layout: storedeploy.Layout(len(sites), 2),
		Clients: sites[:1], Sim: sim.Config[store.Message]{WAN: network}})
	if err != nil {
		return "", err
	}
	client := d.Clients[0]
	if err := d.Pass(5 * time.Second); err != nil { // to elect, and to measure
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
	if err := d.Pass(10 * time.Second); err != nil {
		return "", err
	}
	if verdict != store.Committed {
		return "", fmt.Errorf("storetest: a transaction that is alone is %v", verdict)
	}
	return fmt.Sprintf("a read takes %v, a transaction %v", read.Round(time.Millisecond),
		commit.Round(time.Millisecond)), nil
}
