package kit

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// Keys of a replica's disk, beside the state's. A protocol's own begin with "p/" as well.
const (
	statePrefix = "s/"
	stableKey   = "p/stable"
	doneKey     = "p/done"
	linksKey    = "p/links"
)

// transfer is how a replica fetches the state of a checkpoint.
type transfer struct {
	fetch     *keyspace.Fetch
	fetching  Checkpoint
	wants     []keyspace.Want // that were asked for of late
	transfers int             // that have ended
	refused   int             // parts of states that were wrong
	asked     int             // of the members, who was asked for the state last
	behind    bft.Seq
}

// Put keeps a message under a key.
func (r *Replica) Put(env *protocol.Env[bft.Message], key string, msg bft.Message) {
	b, err := r.Format.Append(nil, msg)
	if err != nil {
		panic(err) // a kind that was not declared
	}
	env.Put([]byte(key), b)
}

// Get returns what is kept under a key.
func Get[T any](r *Replica, env *protocol.Env[bft.Message], key string) (T, bool) {
	var none T
	b, ok := env.Get([]byte(key))
	if !ok {
		return none, false
	}
	msg, err := r.Format.Decode(b)
	if err != nil {
		return none, false
	}
	m, ok := msg.(T)
	return m, ok
}

// Remember opens the disk, compares the state with its digests, and reads what is kept of
// checkpoints. The call of the protocol that has it is to leave the Store. It is an error if
// that, or what the protocol keeps under keys, cannot be read: the replica may have said what it
// does not know any more, so it must not say anything else.
func (r *Replica) Remember(env *protocol.Env[bft.Message], keys ...string) error {
	state, err := keyspace.Open(env, statePrefix)
	if err != nil {
		return err
	}
	for _, key := range append(keys, linksKey, stableKey, doneKey) {
		if b, ok := env.Get([]byte(key)); ok {
			if _, err := r.Format.Decode(b); err != nil {
				return fmt.Errorf("%s: the disk's %s: %w", r.name, key, err)
			}
		}
	}
	r.Store = state
	r.scrubAll()
	if !r.recall(env) {
		return fmt.Errorf("%s: the disk's %s does not prove who the members are", r.name, linksKey)
	}
	if m, ok := Get[StableProof](r, env, stableKey); ok && m.Proof.Body().Seq > r.Low() {
		r.Stable = m.Proof
	}
	if m, ok := Get[DoneRecord](r, env, doneKey); ok {
		r.Committed, r.Executed, r.Top = m.Committed, m.Committed, m.Committed
	}
	r.Latest = sessions.Time(state.Committed())
	return nil
}

// Resume goes on with what a crash ended, when the log was read. It signs the checkpoints again
// that are not stable: if all crash nobody else remembers them, and the window ends where they
// cannot become stable.
func (r *Replica) Resume(env *protocol.Env[bft.Message]) {
	for _, n := range r.Store.Checkpoints() {
		if seq := bft.Seq(n); seq > r.Low() && seq <= r.Committed {
			moment, _ := r.Store.At(n)
			r.reached[r.Config.ID] = append(r.reached[r.Config.ID], r.signCheckpoint(seq, moment.Digest()))
		}
	}
	if _, _, ok := r.Store.Fetching(); ok {
		r.beginFetch()
	} else {
		r.Repair(env)
	}
	r.spoke = -MaxIdleTicks
	env.After(r.Config.RoundTrip/2, BeatTimer{})
}

// onReached takes the word of a member that it has the state of a checkpoint.
func (r *Replica) onReached(env *protocol.Env[bft.Message], c bft.Signed[Checkpoint]) {
	b := c.Body()
	if b.Seq <= r.Low() || !r.Within(b.Seq) ||
		b.Seq%bft.Seq(r.Config.CheckpointEvery) != 0 && b.Members == r.Dir.digest {
		return
	}
	var same []bft.Signed[Checkpoint]
	for _, m := range r.Dir.Members {
		if c.By(m.Key) {
			r.reached[m.ID] = append(slices.DeleteFunc(r.reached[m.ID], func(s bft.Signed[Checkpoint]) bool {
				return s.Body().Seq <= r.Low() || s.Body().Seq == b.Seq
			}), c)
		}
		for _, s := range r.reached[m.ID] {
			if *s.Body() == *b {
				same = append(same, s)
			}
		}
	}
	if len(same) >= r.Dir.Quorum() {
		r.OnStable(env, bft.Join(same))
	}
}

// OnStable takes the proof that a checkpoint is stable: what is below it is not needed any more.
func (r *Replica) OnStable(env *protocol.Env[bft.Message], proof bft.Certificate[Checkpoint]) {
	if b := proof.Body(); b.Seq > r.Low() && b.Members != r.Dir.digest && proof.Count(r.Dir.IsMember) >= r.Dir.Quorum() {
		r.onLast(env, proof)
		return
	}
	if proof.Body().Seq <= r.Low() || !LawfulStable(r.Dir, &proof) {
		return
	}
	r.Stable = proof
	r.relax()
	r.Put(env, stableKey, StableProof{proof})
	r.compare(proof.Body())
	r.rules.Stabilized(env)
	r.forget(env)
}

// forget removes what is needed neither for what others ask nor to come to the stable checkpoint.
func (r *Replica) forget(env *protocol.Env[bft.Message]) {
	if r.Fetching() || r.Committed < r.Low() {
		return
	}
	low := r.Low()
	keep := env.NextIndex()
	r.rules.Forget(low)
	maps.DeleteFunc(r.records, func(seq bft.Seq, _ uint64) bool { return seq <= low })
	for seq := low + 1; seq <= low+r.Window(); seq++ {
		if i, ok := r.records[seq]; ok {
			keep = min(keep, i)
		}
	}
	env.Truncate(keep)
	r.Requests.forget(low)
	r.Store.Release(uint64(low))
}

// Fetching reports whether a state is being fetched. Nothing is executed until that has ended.
func (r *Replica) Fetching() bool { return r.fetch != nil }

// CatchUp fetches the state of the stable checkpoint if this replica does not get there by itself,
// and looks for damage of the one it has. It is called in each tick.
func (r *Replica) CatchUp(env *protocol.Env[bft.Message]) {
	r.scrubSome()
	behind := r.Low() > r.Committed
	if r.fetch == nil && behind && r.behind == r.Committed+1 && r.Tick%4 == 0 ||
		r.fetch != nil && r.fetching.Seq < r.Low() {
		r.DropLayers()
		r.beginFetch()
	}
	if r.Tick%4 == 0 {
		r.behind = 0
		if behind {
			r.behind = r.Committed + 1
		}
	}
	if r.fetch == nil {
		return
	}
	if r.Tick%4 == 0 { // who was asked may have nothing to say
		for _, w := range r.wants {
			r.fetch.Again(w)
		}
		r.wants = nil
		r.asked++
	}
	r.askForState(env)
}

func (r *Replica) beginFetch() {
	if r.fetching = r.Stable.Body(); r.fetching.Seq == 0 {
		r.fetching.State = keyspace.Empty()
	}
	r.scrub = nil
	r.fetch = r.Store.Fetch(uint64(r.fetching.Seq), r.fetching.State)
	r.wants = nil
	r.noLayers()
}

func (r *Replica) askForState(env *protocol.Env[bft.Message]) {
	if len(r.Others) == 0 {
		return
	}
	m := StateWanted{Seq: r.fetching.Seq}
	for _, w := range r.fetch.Wants(maxWants - r.fetch.Asked()) {
		m.Wants = append(m.Wants, string(w))
		r.wants = append(r.wants, w)
	}
	if len(m.Wants) > 0 {
		env.Send(r.Others[r.asked%len(r.Others)], m)
	}
	r.endFetch(env)
}

func (r *Replica) endFetch(env *protocol.Env[bft.Message]) {
	if !r.fetch.Done() {
		return
	}
	r.fetch = nil
	r.transfers++
	r.Committed, r.Executed, r.Top = r.fetching.Seq, r.fetching.Seq, r.fetching.Seq
	r.Put(env, doneKey, DoneRecord{r.Committed})
	r.Latest = max(r.Latest, sessions.Time(r.Store.Committed()))
	r.rules.Forget(r.Committed)
	r.Requests.settleOld(r.Store.Committed())
	r.forget(env)
}

func (r *Replica) onStateWanted(env *protocol.Env[bft.Message], from protocol.ID, m StateWanted) {
	moment, ok := r.Store.At(uint64(m.Seq))
	if !ok || r.fetch != nil || len(m.Wants) > maxWants {
		env.Send(from, StableProof{r.Stable})
		return
	}
	for _, w := range m.Wants {
		page, err := moment.Page(keyspace.Want(w), maxPageBytes)
		if err == nil && r.Affords(from, len(page)) {
			env.Send(from, StatePage{m.Seq, w, page})
		}
	}
}

func (r *Replica) onStatePage(env *protocol.Env[bft.Message], m StatePage) {
	if r.fetch == nil || m.Seq != r.fetching.Seq {
		return
	}
	if err := r.fetch.Take(keyspace.Want(m.Want), m.Page); err != nil {
		if !errors.Is(err, keyspace.ErrUnasked) { // which is late, or was asked for twice
			r.refused++
		}
		return
	}
	r.askForState(env)
}

// SayCheckpoints tells a member what it does not know of checkpoints.
func (r *Replica) SayCheckpoints(env *protocol.Env[bft.Message], to protocol.ID, stable bft.Seq) {
	if stable < r.Low() {
		env.Send(to, StableProof{r.Stable})
	}
	for _, s := range r.reached[r.Config.ID] {
		if s.Body().Seq > stable {
			env.Send(to, Reached{s})
		}
	}
}
