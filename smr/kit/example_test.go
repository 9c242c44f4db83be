package kit_test

import (
	"fmt"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/kit"
	"github.com/foresay/foresay/smr/kv"
)

// A leader's way with a request: the desk takes what is new in it, the protocol has it decided,
// the state executes it, and the desk answers whoever asked.
func Example() {
	cfg, err := smr.ReplicaConfig{ID: 1, Members: []smr.Member{{ID: 1}}, Machine: kv.New()}.WithDefaults()
	if err != nil {
		fmt.Println(err)
		return
	}
	state := kit.NewState(cfg.Machine, cfg.Members)
	desk := kit.NewDesk(cfg, state, kit.NewAdmission(cfg, state))
	env := protocol.NewEnv[smr.Message](nil, 1, nil)
	env.Begin(0)

	const client protocol.ID = 9
	slot := smr.Slot(0)
	ask := func(request smr.Message) {
		for _, entry := range desk.Take(env, client, request, nil) {
			slot++ // here a protocol would have the entry decided in this slot
			desk.Applied(env, entry, state.Apply(slot, entry))
		}
	}
	ask(kit.OpenRequest{Nonce: 5})
	put := kit.Request{Session: 1, Acked: 1,
		Commands: []kit.RequestedCommand{{Seq: 1, Command: kv.Put([]byte("k"), []byte("v"))}}}
	ask(put)
	ask(put) // sent again: it is answered, not executed
	desk.Flush(env)
	fmt.Printf("%d slots, applied up to %d\n", slot, state.Applied())
	for _, sent := range env.Out {
		fmt.Printf("%T to %d\n", sent.Msg, sent.To)
	}
	// Output:
	// 2 slots, applied up to 2
	// kit.OpenReply to 9
	// kit.Replies to 9
}
