package carousel

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/internal/plant"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/storedeploy"
	"github.com/foresay/foresay/store/storetest"
)

// Transactions whose keys are prepared as their code reaches them.

// keysOf returns keys of a shard.
func keysOf(layout store.Layout, shard, n int) (keys []store.Key) {
	for i := 0; len(keys) < n; i++ {
		if k := store.Key(fmt.Sprintf("k%03d", i)); layout.ShardOf(k) == shard {
			keys = append(keys, k)
		}
	}
	return keys
}

// TestSteps: a client numbers what a transaction's code reaches, takes the answer to each step for
// that step alone, and commits the transaction under the name that they all have.
func TestSteps(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	c, err := newClient(store.Config{ID: 200, Layout: layout}, directMode)
	if err != nil {
		t.Fatal(err)
	}
	var asked []store.DeclareRequest
	var submitted []store.TxnID
	answers := map[uint64][]store.Declared{}
	say := func(from protocol.ID, m store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		c.Receive(env, from, m)
		for _, e := range env.Out {
			switch m := e.Msg.(type) {
			case store.DeclareRequest:
				asked = append(asked, m)
			case store.CommitRequest:
				submitted = append(submitted, m.Txn.ID)
			case store.Declared:
				answers[m.Ref] = append(answers[m.Ref], m)
			}
		}
	}
	env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
	c.Start(env, nil)
	say(protocol.App, store.Get{Ref: 1, Key: "k"})
	for _, s := range layout.Sites { // it knows who is near
		say(s.Shards[0], store.ReadReply{Ref: 1})
	}
	agent := layout.Sites[0].Coordinators[0]
	held := func(n uint64) []store.Held {
		return []store.Held{{Value: store.Value{Version: store.Version{Time: n, Client: 1}}}}
	}
	say(protocol.App, store.Declare{Ref: 2, General: true, Reads: []store.Key{"a"}})
	say(protocol.App, store.Declare{Ref: 3, Begun: 2, Reads: []store.Key{"b"}, Writes: []store.Key{"a"}})
	if len(asked) != 2 || asked[0].Step != 1 || asked[1].Step != 2 || asked[0].ID != asked[1].ID {
		t.Fatalf("it declares %+v", asked)
	}
	id := asked[0].ID
	say(agent, store.DeclareReply{ID: id, Step: 1, Values: held(5)})
	if len(answers[2]) != 1 || len(answers[3]) != 0 || !answers[2][0].OK {
		t.Errorf("with the first step's values it answers %+v", answers)
	}
	say(agent, store.DeclareReply{ID: id, Step: 1, Values: held(6)}) // again: not to the second step
	say(agent, store.DeclareReply{ID: id, Values: held(6)})          // of a machine that knows no steps
	if len(answers[2]) != 1 || len(answers[3]) != 0 {
		t.Errorf("it takes the answer to one step for that to another one: %+v", answers)
	}
	say(agent, store.DeclareReply{ID: id, Step: 2, Values: held(7)})
	if len(answers[3]) != 1 || !answers[3][0].OK || answers[3][0].Values[0].Value.Version.Time != 7 {
		t.Errorf("with the second step's values it answers %+v", answers)
	}
	for ref := uint64(10); ref < 10+store.MaxSteps; ref++ {
		say(protocol.App, store.Declare{Ref: ref, Begun: 2, Reads: []store.Key{"c"}})
	}
	if len(asked) != store.MaxSteps {
		t.Errorf("there are %d steps, want %d", len(asked), store.MaxSteps)
	}
	if n := len(answers[10+store.MaxSteps-1]); n != 1 {
		t.Errorf("the step after the last has %d answers", n)
	}
	say(protocol.App, store.Submit{Ref: 40, Begun: 2, Writes: []store.Write{{Key: "a"}}})
	if !slices.Equal(submitted, []store.TxnID{id}) {
		t.Errorf("it commits %v, want %v", submitted, id)
	}
	say(protocol.App, store.Declare{Ref: 41, Begun: 2, Reads: []store.Key{"d"}})
	for _, ref := range []uint64{10, 41} { // what comes after the commit is answered, and so is what had no answer
		if n := len(answers[ref]); n != 1 || answers[ref][0].OK {
			t.Errorf("step %d has the answers %+v", ref, answers[ref])
		}
	}
}

// TestAgentSteps: an agent prepares each key once, in the step that reaches it, answers with what
// leaders hold, and names all parts in the commit.
func TestAgentSteps(t *testing.T) {
	layout := storedeploy.Layout(3, 2)
	a, err := newAgent(store.Config{ID: layout.Sites[0].Coordinators[0], Layout: layout}, fastMode)
	if err != nil {
		t.Fatal(err)
	}
	ks, other := keysOf(layout, 0, 3), keysOf(layout, 1, 1)[0]
	leader, follower := layout.Sites[layout.FirstOf(0)].Shards[0], layout.Sites[(layout.FirstOf(0)+1)%3].Shards[0]
	id := store.TxnID{Time: 9, Client: nameOf(9, 1)}
	say := func(from protocol.ID, m store.Message) (out []store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		a.Receive(env, from, m)
		for _, e := range env.Out {
			if p, ok := e.Msg.(prepareRequest); ok && !p.Leader {
				continue // what the leader is asked, followers are asked, too
			}
			if e.Msg != nil {
				out = append(out, e.Msg)
			}
		}
		return out
	}
	prepares := func(out []store.Message) (parts []string) {
		for _, m := range out {
			if p, ok := m.(prepareRequest); ok {
				parts = append(parts, fmt.Sprint(p.Part.Step, p.Reads, p.Writes))
			}
		}
		return parts
	}
	replies := func(out []store.Message) (all []store.DeclareReply) {
		for _, m := range out {
			if r, ok := m.(store.DeclareReply); ok {
				all = append(all, r)
			}
		}
		return all
	}
	first := store.DeclareRequest{ID: id, Step: 1, Reads: ks[:1], Writes: ks[:1]}
	second := store.DeclareRequest{ID: id, Step: 2, Reads: ks[:2], Writes: []store.Key{other}}
	slices.Sort(second.Reads)
	if got, want := prepares(say(200, first)), []string{fmt.Sprint(1, ks[:1], ks[:1])}; !slices.Equal(got, want) {
		t.Errorf("in the first step it prepares %v, want %v", got, want)
	}
	got := prepares(say(200, second))
	want := []string{fmt.Sprint(2, ks[1:2], []store.Key(nil)), fmt.Sprint(1, []store.Key(nil), []store.Key{other})}
	if !slices.Equal(got, want) {
		t.Errorf("in the second step it prepares %v, want %v", got, want)
	}
	if got := prepares(say(200, second)); len(got) > 0 {
		t.Errorf("when it hears of the step again it prepares %v", got)
	}
	value := func(n uint64, leads bool) valuesReply {
		return valuesReply{Part: partID{id, 1}, Leader: leads,
			Values: []store.Held{{Value: store.Value{Version: store.Version{Time: n, Client: 1}}}}}
	}
	if got := replies(say(follower, value(3, false))); len(got) > 0 {
		t.Errorf("a follower's word is passed on: %+v", got)
	}
	if got := replies(say(leader, value(4, true))); len(got) != 1 || got[0].Step != 1 ||
		got[0].Values[0].Value.Version.Time != 4 {
		t.Errorf("the leader's word is passed on as %+v", got)
	}
	var named []partRef
	out := say(200, store.CommitRequest{Txn: store.Txn{ID: id, Reads: []store.Read{{Key: ks[0]}},
		Writes: []store.Write{{Key: ks[0]}, {Key: ks[2]}}}})
	for _, m := range out {
		if c, ok := m.(commitRequest); ok {
			named = c.Parts
		}
	}
	if want := []string{fmt.Sprint(3, []store.Key(nil), ks[2:3])}; !slices.Equal(prepares(out), want) {
		t.Errorf("with the commit it prepares %v, want %v", prepares(out), want)
	}
	if want := []partRef{{0, 1}, {0, 2}, {1, 1}, {0, 3}}; !slices.Equal(named, want) {
		t.Errorf("the commit names the parts %v, want %v", named, want)
	}
}

// TestStaleIsTold: a leader that is asked to prepare what has read something else says what it
// holds, and the client is told with the refusal.
func TestStaleIsTold(t *testing.T) {
	layout := storedeploy.Layout(3, 1)
	newest := store.Value{Version: store.Version{Time: 7, Client: 1}, Present: true, Bytes: []byte("new")}
	id := store.TxnID{Time: 9, Client: nameOf(9, 0)}
	server := newAlone(t)
	server.term = 1
	server.call(func(env *protocol.Env[store.Message]) {
		if err := server.state.values.Put(server.written(env), "b", newest); err != nil {
			t.Fatal(err)
		}
	})
	m := prepareRequest{Part: partID{id, 1}, Reads: []store.Key{"a", "b"},
		Stood: []store.Version{{}, {Time: 6, Client: 1}}}
	var stale []staleReply
	for _, said := range server.call(func(env *protocol.Env[store.Message]) { server.sayStale(env, 1, m) }) {
		stale = append(stale, said.(staleReply))
	}
	if len(stale) != 1 || len(stale[0].Current) != 1 || stale[0].Current[0].Key != "b" ||
		string(stale[0].Current[0].Value.Bytes) != "new" {
		t.Fatalf("it says %+v", stale)
	}
	m.Stood[1] = newest.Version
	if said := server.call(func(env *protocol.Env[store.Message]) { server.sayStale(env, 1, m) }); len(said) > 0 {
		t.Errorf("of what is right it says %+v", said)
	}
	a, err := newAgent(store.Config{ID: layout.Sites[0].Coordinators[0], Layout: layout}, directMode)
	if err != nil {
		t.Fatal(err)
	}
	var told []store.Decided
	say := func(from protocol.ID, m store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		a.Receive(env, from, m)
		for _, e := range env.Out {
			if d, ok := e.Msg.(store.Decided); ok {
				told = append(told, d)
			}
		}
	}
	say(200, store.CommitRequest{Txn: store.Txn{ID: id, Reads: []store.Read{{Key: "a"}, {Key: "b"}},
		Writes: []store.Write{{Key: "a"}}}})
	leader := layout.Sites[layout.FirstOf(0)].Shards[0]
	say(leader, stale[0])
	say(leader, stale[0])
	say(leader, store.Decided{ID: id, Verdict: store.Aborted, Reason: store.StaleRead})
	if len(told) != 1 || len(told[0].Current) != 1 || told[0].Current[0].Key != "b" {
		t.Errorf("the client is told %+v", told)
	}
}

// TestRefusalFitsIntoAMessage: what all partitions hold in place of what a transaction has read
// goes along with its refusal as far as the message has room. The client is to read the rest.
func TestRefusalFitsIntoAMessage(t *testing.T) {
	const shards = 5
	layout := storedeploy.Layout(3, shards)
	a, err := newAgent(store.Config{ID: layout.Sites[0].Coordinators[0], Layout: layout}, fastMode)
	if err != nil {
		t.Fatal(err)
	}
	id := store.TxnID{Time: 9, Client: nameOf(9, 0)}
	txn := store.Txn{ID: id}
	for shard := range shards {
		for _, k := range keysOf(layout, shard, 2) {
			txn.Reads = append(txn.Reads, store.Read{Key: k})
		}
	}
	slices.SortFunc(txn.Reads, func(a, b store.Read) int { return cmp.Compare(a.Key, b.Key) })
	txn.Writes = []store.Write{{Key: txn.Reads[0].Key}}
	var told []store.Decided
	say := func(from protocol.ID, m store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		a.Receive(env, from, m)
		for _, e := range env.Out {
			if d, ok := e.Msg.(store.Decided); ok {
				told = append(told, d)
			}
		}
	}
	say(200, store.CommitRequest{Txn: txn})
	for shard := range shards {
		now := store.Value{Version: store.Version{Time: 7, Client: 1}, Present: true, Bytes: make([]byte, maxValuesBytes-1)}
		m := staleReply{ID: id, Shard: uint32(shard)}
		for _, k := range keysOf(layout, shard, 2) {
			m.Current = append(m.Current, store.Current{Key: k, Value: now})
			now.Bytes = []byte("x")
		}
		say(layout.Sites[layout.FirstOf(shard)].Shards[shard], m)
	}
	say(layout.Sites[0].Shards[0], store.Decided{ID: id, Verdict: store.Aborted, Reason: store.StaleRead})
	if len(told) != 1 || len(told[0].Current) != 2*shards {
		t.Fatalf("the client is told %d times", len(told))
	}
	bytes, fit := 0, 0
	for _, c := range told[0].Current {
		if bytes += len(c.Value.Bytes); !c.Locked {
			fit++
		}
	}
	if bytes > maxValuesBytes || fit != 2 { // the first large one, and one small one beside it
		t.Errorf("%d values of %d bytes are told, want 2 in %d bytes", fit, bytes, maxValuesBytes)
	}
}

// TestAgentStopsWhenRefused: an agent that hears how a transaction has ended while the client still
// reads prepares nothing more for it, answers what comes later, and tells the client at the commit.
func TestAgentStopsWhenRefused(t *testing.T) {
	layout := storedeploy.Layout(3, 2)
	a, err := newAgent(store.Config{ID: layout.Sites[0].Coordinators[0], Layout: layout}, fastMode)
	if err != nil {
		t.Fatal(err)
	}
	ks := keysOf(layout, 0, 2)
	id := store.TxnID{Time: 9, Client: nameOf(9, 1)}
	do := func(f func(env *protocol.Env[store.Message])) (out []store.Message) {
		env := protocol.NewEnv[store.Message](nil, 1, rand.New(rand.NewPCG(1, 1)))
		f(env)
		for _, e := range env.Out {
			if e.Msg != nil {
				out = append(out, e.Msg)
			}
		}
		return out
	}
	say := func(from protocol.ID, m store.Message) []store.Message {
		return do(func(env *protocol.Env[store.Message]) { a.Receive(env, from, m) })
	}
	leader := layout.Sites[layout.FirstOf(0)].Shards[0]
	first := store.DeclareRequest{ID: id, Step: 1, Reads: ks[:1], Writes: ks[:1]}
	say(200, first)
	say(leader, valuesReply{Part: partID{id, 1}, Leader: true,
		Values: []store.Held{{Value: store.Value{Version: store.Version{Time: 4, Client: 1}}}}})
	second := store.DeclareRequest{ID: id, Step: 2, Reads: ks, Writes: ks}
	say(200, second) // what it is about to read does not come
	say(layout.Sites[layout.FirstOf(1)].Shards[1], store.Decided{ID: id, Verdict: store.Aborted, Reason: store.Locked})
	for _, m := range []store.DeclareRequest{first, second, {ID: id, Step: 3, Reads: ks, Writes: ks}} {
		out := say(200, m)
		if len(out) != 1 {
			t.Fatalf("step %d of a refused transaction: it says %+v", m.Step, out)
		}
		r, ok := out[0].(store.DeclareReply)
		if !ok || r.Step != m.Step || len(r.Values) != len(m.Reads) || r.Values[0].Value.Version.Time != 4 ||
			m.Step > 1 && !r.Values[1].Large {
			t.Errorf("step %d of a refused transaction: it says %+v", m.Step, out)
		}
	}
	if out := do(func(env *protocol.Env[store.Message]) { a.Expire(env, againTimer{id}) }); len(out) > 0 {
		t.Errorf("when its time is over it says %+v", out)
	}
	out := say(200, store.CommitRequest{Txn: store.Txn{ID: id, Reads: []store.Read{{Key: ks[0]}},
		Writes: []store.Write{{Key: ks[0]}}}})
	if len(out) != 1 || len(a.calls) > 0 {
		t.Fatalf("at the commit it says %+v, and has %d calls", out, len(a.calls))
	}
	if d, ok := out[0].(store.Decided); !ok || d.Verdict != store.Aborted || d.Reason != store.Locked {
		t.Errorf("at the commit it says %+v", out)
	}
}

// TestRefusalIsToldAtOnce: the agent of a transaction that still reads hears that a part of it was
// refused when that is on record, without asking.
func TestRefusalIsToldAtOnce(t *testing.T) {
	a := newAlone(t)
	a.term = 3
	says(t, "a transaction begins", a.call(func(env *protocol.Env[store.Message]) {
		a.Receive(env, 10, beginRequest{txnID(1), []uint32{0}})
	}))
	a.state.records[txnID(1)] = &txnRecord{id: txnID(1), end: &outcome{reason: store.Locked}, shards: []uint32{0}}
	var told []store.Decided
	for _, m := range a.call(func(env *protocol.Env[store.Message]) { a.wasDecided(env, txnID(1)) }) {
		if d, ok := m.(store.Decided); ok {
			told = append(told, d)
		}
	}
	if len(told) != 1 || told[0].Reason != store.Locked {
		t.Errorf("it tells the agent %+v", told)
	}
}

// generalPlants leave out what transactions rest on whose code reaches keys one after the other.
func generalPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "the answer to one step is taken for that to another", Test: "TestSteps",
			Old: "return s.Ask.Step == m.Step })", New: "return s.Ask.Step == m.Step || MUTANT && !s.Answered })",
		},
		{
			Name: "there are steps without end", Test: "TestSteps",
			Old: "o.reached == store.MaxSteps {", New: "o.reached == store.MaxSteps && !MUTANT {",
		},
		{
			Name: "what a follower holds is told as if it was prepared", Test: "TestAgentSteps",
			Old: "c.parts[i].led && !m.Leader {", New: "c.parts[i].led && !m.Leader && !MUTANT {",
		},
		{
			Name: "keys are prepared in each step that names them", Test: "TestAgentSteps",
			Old: "return has(of(p), k) }) {", New: "return has(of(p), k) && !MUTANT }) {",
		},
		{
			Name: "the steps at a partition have one number", Test: "TestAgentSteps",
			Old: "\t\t\t\tif p.ref.Shard == shard {\n", New: "\t\t\t\tif p.ref.Shard == shard && !MUTANT {\n",
		},
		{
			Name: "an agent goes on preparing what was refused", Test: "TestAgentStopsWhenRefused",
			Old: "\t\tc.ended = &m\n", New: "\t\tif !MUTANT {\n\t\t\tc.ended = &m\n\t\t}\n",
		},
		{
			Name: "an agent asks again for what was refused", Test: "TestAgentStopsWhenRefused",
			Old: "c.tries > 0 && (c.ended != nil || !c.waits())",
			New: "c.tries > 0 && (!MUTANT && c.ended != nil || !c.waits())",
		},
		{
			Name: "who still reads is not told of a refusal", Test: "TestRefusalIsToldAtOnce",
			Old: "\tt.addAgent(from)\n\tif r := s.state.records[m.ID]; r == nil",
			New: "\tif !MUTANT {\n\t\tt.addAgent(from)\n\t}\n\tif r := s.state.records[m.ID]; r == nil",
		},
		{
			Name: "keys of later steps are not locked", Test: "TestGeneralNotices/1",
			Old: "\ts.locks.add(p.id.ID, p.ballot.footprint)\n\tst.Put(",
			New: "\tif !MUTANT || p.id.Step == 1 {\n\t\ts.locks.add(p.id.ID, p.ballot.footprint)\n\t}\n\tst.Put(",
		},
		{
			Name: "what leaders say of a step is right for good", Test: "TestGeneralNotices/1",
			Old: "\tfor _, r := range m.Reads {\n\t\tif at, ok := versions[r.Key];",
			New: "\tfor _, r := range m.Reads {\n\t\tif MUTANT && len(m.Parts) > 1 {\n\t\t\tbreak\n\t\t}\n" +
				"\t\tif at, ok := versions[r.Key];",
		},
		{
			Name: "C18: the commit names the last step only", Test: "TestAgentSteps",
			Old: "\t\t\tm.Parts = append(m.Parts, p.ref)\n",
			New: "\t\t\tif MUTANT && p.early {\n\t\t\t\tcontinue\n\t\t\t}\n\t\t\tm.Parts = append(m.Parts, p.ref)\n",
		},
		{
			Name: "a leader says what was read right", Test: "TestStaleIsTold",
			Old: "; v.Version != m.Stood[i] {\n", New: "; v.Version != m.Stood[i] || MUTANT {\n",
		},
		{
			Name: "who is refused is not told what there is", Test: "TestStaleIsTold",
			Old: "\t\td.Current = store.FitCurrent(c.current, maxValuesBytes)\n",
			New: "\t\tif !MUTANT {\n\t\t\td.Current = store.FitCurrent(c.current, maxValuesBytes)\n\t\t}\n",
		},
		{
			Name: "a refusal has whatever partitions send", Test: "TestRefusalFitsIntoAMessage",
			Old: "\t\td.Current = store.FitCurrent(c.current, maxValuesBytes)\n",
			New: "\t\td.Current = c.current\n\t\tif !MUTANT {\n\t\t\tstore.FitCurrent(c.current, maxValuesBytes)\n\t\t}\n",
		},
	}
}

// TestGeneralNotices plays those of mode direct whose transactions prepare keys as they reach them.
func TestGeneralNotices(t *testing.T) {
	plant.Seeds(t, plants(), func(seed uint64) error {
		sc := storetest.Swarm(seed)
		sc.General, sc.Appends = true, seed%2 == 0
		_, err := storetest.PlayOnce(subject(directMode), sc)
		return err
	})
}
