package server

import (
	"slices"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

func (s *Server) onEpoch(env *Env, x *session, m specfs.Epoch) {
	x.got(m.News)
	due := x.next
	for _, r := range s.waiting {
		if r.from == x && r.epoch != nil {
			due = r.epoch.Number + 1
		}
	}
	switch {
	case m.Number-min(m.Acked, m.Number) > specfs.Number(s.config.MaxWaiting):
		s.counts.Rejected++ // so many answers are not kept for it
	case m.Number < x.next: // it comes again
		env.Send(x.client, x.answer(m.Number))
	case m.Number == due:
		s.add(env, &request{from: x, epoch: &m})
	}
}

// A trial is what an epoch comes to if it is carried out now.
type trial struct {
	refused specfs.Refusal
	changed []specfs.Assumption // with the versions before
	objects []specfs.ID         // that it has to do with
}

// Saw is part of tree.Witness.
func (t *trial) Saw(a specfs.Assumption) { t.objects = append(t.objects, a.Part.ID) }

// Changed is part of tree.Witness.
func (t *trial) Changed(a specfs.Assumption) {
	t.objects = append(t.objects, a.Part.ID)
	if !slices.ContainsFunc(t.changed, func(b specfs.Assumption) bool { return a.Part == b.Part }) {
		t.changed = append(t.changed, a)
	}
}

// parts returns what the epoch changes.
func (t *trial) parts() []specfs.Part {
	parts := make([]specfs.Part, len(t.changed))
	for i, c := range t.changed {
		parts[i] = c.Part
	}
	return parts
}

// tryEpoch decides an epoch, unless it has to wait for others.
func (s *Server) tryEpoch(env *Env, r *request, locked []specfs.ID) bool {
	x, m := r.from, r.epoch
	layers := keyspace.NewLayers(files(env))
	layer := layers.Push()
	t := s.try(env, x, m, layer)
	if slices.ContainsFunc(t.objects, func(id specfs.ID) bool { return slices.Contains(locked, id) }) {
		return false
	}
	if t.refused == specfs.Accepted && len(t.changed) > 0 {
		if s.recovering || s.tell(env, r, t) {
			return false
		}
	}
	x.era = max(x.era, m.Era) // a server that has restarted may know less than its client
	answer := specfs.Answer{Number: m.Number, Refused: t.refused, Now: now(env)}
	if x.next = m.Number + 1; t.refused != specfs.Accepted {
		s.counts.Refused++
		if t.refused != specfs.FollowsRefused {
			x.era++
		}
		answer.Era = x.era
		answer.Changed, answer.News = x.tell(func(specfs.ID) bool { return true })
	} else {
		s.counts.Epochs++
		if len(t.changed) > 0 {
			layers.Merge(files(env))
			answer.Moved = s.changed(env, x, t.parts())
		}
		answer.Serial, answer.Moved = s.meta.Serial, append(answer.Moved, x.moved(m.Blind, t.changed)...)
	}
	x.acked(env, m.Acked)
	x.answers = append(x.answers, answer)
	if t.refused == specfs.Accepted && len(t.changed) > 0 {
		x.disk.Decided = m.Number
		s.putSession(env, x)
		env.Put(answerKey(x.disk.ID, m.Number), answerLayout.Encode(answer))
	}
	env.Send(x.client, answer)
	return true
}

// changed notes that a session has changed parts in a transaction. It returns what the client has
// to forget, as it would not be told what becomes of it: it holds too much.
func (s *Server) changed(env *Env, x *session, parts []specfs.Part) (forget []specfs.Part) {
	s.meta.Serial++
	s.putMeta(env)
	for _, y := range s.sessions {
		if y != x && !y.disk.Leases {
			y.note(parts)
		}
	}
	for _, p := range parts {
		if !s.hold(x, p.ID) {
			forget = append(forget, specfs.Part{ID: p.ID})
		}
	}
	return slices.Compact(forget)
}

// moved returns the parts that were changed blindly and had another version than their client
// believed.
func (x *session) moved(blind, changed []specfs.Assumption) (parts []specfs.Part) {
	was := make(map[specfs.Part]specfs.Version, len(changed))
	for _, c := range changed {
		was[c.Part] = c.Version
	}
	for _, b := range blind {
		if version, ok := was[b.Part]; ok && !x.means(b, version) {
			parts = append(parts, b.Part)
		}
	}
	return parts
}

// means reports whether a client assumes a version of a part. A provisional one is that of one of
// its epochs, if it was right about what that changed.
func (x *session) means(a specfs.Assumption, version specfs.Version) bool {
	n, ok := a.Version.Epoch()
	if !ok {
		return a.Version == version
	}
	answer := x.answer(n)
	return answer.Serial == version && !slices.Contains(answer.Moved, a.Part)
}

// try carries an epoch out on a layer.
func (s *Server) try(env *Env, x *session, m *specfs.Epoch, layer *keyspace.Layer) *trial {
	t := &trial{}
	if m.Era < x.era {
		t.refused = specfs.FollowsRefused
		return t
	}
	for _, a := range m.Assumes {
		if a.Part.Aspect == specfs.Everything { // no part that has a version
			t.refused = specfs.Unlawful
			return t
		}
		t.objects = append(t.objects, a.Part.ID)
		// What a client may not read it shall not find out by assuming it.
		if !x.who.Trusted && !tree.MayKnow(layer, x.who.Cred, a.Part) {
			t.refused = specfs.WrongVersion
			return t
		}
		if !x.means(a, tree.VersionOf(layer, a.Part)) {
			t.refused = specfs.WrongVersion
			return t
		}
	}
	for _, step := range m.Steps {
		if !step.Op.Changes() { // what was read is among the assumptions
			t.refused = specfs.Unlawful
		}
		switch op := step.Op.(type) {
		case specfs.Reap:
			t.refused = specfs.Unlawful
		case specfs.Make:
			if op.New.Session() != x.disk.ID {
				t.refused = specfs.Unlawful
			}
		}
		if step.Now > now(env)+specfs.Time(s.config.Ahead) {
			t.refused = specfs.WrongClock
		}
		if t.refused != specfs.Accepted {
			return t
		}
		result := specfs.Result{Errno: specfs.EROFS}
		if !x.who.ReadOnly {
			result = tree.Do(layer, tree.Call{
				Serial: s.meta.Serial + 1, Now: step.Now, Cred: s.cred(x, step.Cred), Witness: t,
			}, step.Op)
		}
		if result.Errno != step.Errno {
			t.refused = specfs.WrongResult
			return t
		}
	}
	return t
}
