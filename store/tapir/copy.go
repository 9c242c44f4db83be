package tapir

import (
	"slices"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A server that was away for so long that others have gone on without it copies their values. That
// changes nothing of what it has on record: a value of a committed transaction may be written at
// any time, as if the Commit had come.

// copying is a server's copying of another one.
type copying struct {
	serial uint64
	from   store.Key
}

// Limits of a page.
const (
	pageValues = 256
	pageBytes  = 256 << 10
)

// owe has a server copy. It is to answer what is owed last: a copy may have begun before.
func (s *server) owe(env *protocol.Env[store.Message], id protocol.ID) {
	s.owed[id] = 1 + env.Rand.Uint64()>>1
	env.Put(serverKey(owedPrefix, id), numberLayout.Encode(s.owed[id]))
}

func (s *server) onCaughtUp(env *protocol.Env[store.Message], from protocol.ID, m caughtUp) {
	if serial := s.owed[from]; serial != 0 && serial == m.Serial {
		delete(s.owed, from)
		env.Delete(serverKey(owedPrefix, from))
	}
}

func (s *server) onBehind(env *protocol.Env[store.Message], from protocol.ID, m behind) {
	if !s.isPeer(from) || m.Serial == 0 || s.copying[from] != nil {
		return
	}
	s.copying[from] = &copying{serial: m.Serial}
	s.askPage(env, from)
}

func (s *server) askPage(env *protocol.Env[store.Message], from protocol.ID) {
	if c := s.copying[from]; c != nil {
		env.Send(from, askPage{c.from})
		env.After(2*s.cfg.RoundTrip, copyTimer{from})
	}
}

func (s *server) onAskPage(env *protocol.Env[store.Message], from protocol.ID, m askPage) {
	if !s.isPeer(from) {
		return
	}
	p := page{From: m.From}
	bytes := 0
	for k, b := range env.Scan([]byte(valuePrefix+string(m.From)), within(valuePrefix)) {
		key := store.Key(k[len(valuePrefix):])
		if len(p.Values) >= pageValues || bytes > pageBytes {
			p.More, p.Next = true, key
			break
		}
		v := values.Parse(key, b)
		v.Bytes = slices.Clone(v.Bytes) // what is on disk is not kept beyond the call
		p.Values = append(p.Values, item{key, v})
		bytes += len(b)
	}
	env.Send(from, p)
}

func (s *server) onPage(env *protocol.Env[store.Message], from protocol.ID, m page) {
	c := s.copying[from]
	if c == nil || m.From != c.from || m.More && m.Next <= m.From ||
		slices.ContainsFunc(m.Values, func(i item) bool { return s.cfg.Layout.ShardOf(i.Key) != s.place.Index }) {
		return
	}
	for _, i := range m.Values {
		s.putValue(env, i.Key, i.Value)
		s.counts.CopiedValues++
		s.counts.CopiedBytes += uint64(len(i.Key) + len(i.Value.Bytes))
	}
	if c.from = m.Next; m.More {
		s.askPage(env, from)
		return
	}
	env.Stop(copyTimer{from})
	delete(s.copying, from)
	env.Send(from, caughtUp{c.serial})
}
