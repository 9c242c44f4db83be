package server

import (
	"bytes"
	"slices"
	"time"

	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// Env is the world of a server during a call.
type Env = protocol.Env[specfs.Message]

// Server is the server of a file system: a protocol.Node. All that it must not forget is in its key
// space.
type Server struct {
	config Config
	meta   meta
	// sessions are in the order of their clients.
	sessions []*session
	// waiting are the requests that cannot be carried out yet, in the order in which they came.
	waiting []*request
	notices uint64
	// recovering says that sessions of before a restart may rely on leases that the server does not
	// remember: nothing may change until they have come back, or these leases are over.
	recovering bool
	counts     Counts
}

// meta is what a server remembers of the whole.
type meta struct {
	Serial  specfs.Version   // of the last transaction that changed something
	Session specfs.SessionID // the last one
	Starts  uint64           // how often the server has started
	Lease   time.Duration    // that clients may have been given since
}

// Counts says what a server has done since it started.
type Counts struct {
	Epochs, Refused, Fetches, Notices, Lapses, Rejected uint64
}

// The keys of a server begin with one of these.
const (
	keyTree    = "t" // the file system
	keyMeta    = 'm'
	keySession = 's' // client: the session
	keyAnswer  = 'a' // session, epoch: an Answer that the client may not have got
)

var metaLayout = wirefmt.NewLayout("specfs: server", func(c *wirefmt.Coder, m *meta) {
	wirefmt.Version(c, 1)
	wirefmt.Uint(c, &m.Serial)
	wirefmt.Uint32(c, &m.Session)
	wirefmt.Uint(c, &m.Starts)
	wirefmt.Uint(c, &m.Lease)
})

// Timers of a server.
type (
	recovered struct{}
	lapse     struct{ client protocol.ID }
	gone      struct{ client protocol.ID }
	overdue   struct{ notice uint64 }
	collect   struct{}
)

// collectEvery is how often the server looks for objects without a name that nobody holds.
const collectEvery = time.Second

// New returns a server.
func New(c Config) (*Server, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &Server{config: c}, nil
}

// Counts returns what the server has done.
func (s *Server) Counts() Counts { return s.counts }

// Serial returns the serial number of the last transaction that has changed something.
func (s *Server) Serial() specfs.Version { return s.meta.Serial }

// Start is part of protocol.Node.
func (s *Server) Start(env *Env, _ []protocol.Record[specfs.Message]) {
	if b, ok := env.Get([]byte{keyMeta}); ok {
		s.meta = mustDecode(metaLayout.Decode(b))
		s.loadSessions(env)
	} else {
		s.meta.Serial = 1
		tree.Format(files(env), tree.Call{Serial: 1, Now: now(env), Cred: s.config.Owner}, s.config.Root)
	}
	given := max(s.meta.Lease, s.config.Lease)
	s.meta.Starts++
	s.meta.Lease = s.config.Lease
	for _, x := range s.sessions {
		env.After(s.config.Gone, gone{x.client})
		if x.disk.Leases {
			s.recovering = true
			s.meta.Lease = given // also if the server restarts again meanwhile
			env.After(patience(given), recovered{})
		}
	}
	s.putMeta(env)
	env.After(collectEvery, collect{})
}

// patience is for how long the server waits for a client that relies on leases. Its clock may be
// slower than the client's.
func (s *Server) patience() time.Duration { return patience(s.config.Lease) }

func patience(lease time.Duration) time.Duration { return lease + lease/8 }

// files returns the file system.
func files(env *Env) keyspace.Space { return keyspace.Within(env, keyTree) }

// now returns the server's clock.
func now(env *Env) specfs.Time { return specfs.Time(env.Now) }

func (s *Server) putMeta(env *Env) { env.Put([]byte{keyMeta}, metaLayout.Encode(s.meta)) }

// mustDecode returns what a record says that the server has written.
func mustDecode[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Receive is part of protocol.Node.
func (s *Server) Receive(env *Env, from protocol.ID, msg specfs.Message) {
	if hello, ok := msg.(specfs.Hello); ok {
		s.onHello(env, from, hello)
		s.advance(env)
		return
	}
	x := s.session(from)
	if x == nil || !x.here {
		s.counts.Rejected++
		env.Send(from, specfs.Unknown{})
		return
	}
	if !x.disk.Leases {
		env.After(s.config.Gone, gone{x.client})
	}
	switch msg := msg.(type) {
	case specfs.Fetch:
		s.onFetch(env, x, msg)
	case specfs.Epoch:
		s.onEpoch(env, x, msg)
	case specfs.Heard:
		s.onHeard(env, x, msg)
	case specfs.Renew:
		s.onRenew(env, x, msg)
	case specfs.Forget:
		x.drop(msg.IDs)
	case specfs.Bye:
		s.end(env, x)
	default:
		s.counts.Rejected++
	}
	s.advance(env)
}

// Broken is part of protocol.Linked. What was lost the client sends again when it says hello.
func (s *Server) Broken(env *Env, from protocol.ID) {
	if s.session(from) != nil {
		env.Send(from, specfs.Unknown{})
	}
}

// Expire is part of protocol.Node.
func (s *Server) Expire(env *Env, t protocol.Timer) {
	switch t := t.(type) {
	case recovered:
		s.recovering = false
	case lapse:
		if x := s.session(t.client); x != nil {
			s.lapse(env, x)
		}
	case gone:
		if x := s.session(t.client); x != nil {
			s.end(env, x)
		}
	case overdue:
		s.onOverdue(t.notice)
	case collect:
		s.collect(env)
		env.After(collectEvery, collect{})
	}
	s.advance(env)
}

// collect removes some of what has no name any more, and nobody holds.
func (s *Server) collect(env *Env) {
	if s.recovering {
		return // nobody has told yet what is open
	}
	held := func(id specfs.ID) bool {
		return slices.ContainsFunc(s.sessions, func(x *session) bool { return x.holds(id) })
	}
	for id := range tree.Orphans(files(env), 0) {
		if tree.IsOrphan(files(env), id) && held(id) {
			continue
		}
		s.meta.Serial++
		tree.Do(files(env), tree.Call{Serial: s.meta.Serial, Now: now(env)}, specfs.Reap{ID: id})
		s.putMeta(env)
		return // the next one in the next call
	}
}

// Check is part of protocol.Checked.
func (s *Server) Check() error { return s.checkWaiting() }

func clientKey(client protocol.ID) []byte {
	return []byte{keySession, byte(client >> 24), byte(client >> 16), byte(client >> 8), byte(client)}
}

// after returns the first key beyond those that begin with one, which does not end with 0xff.
func after(prefix []byte) []byte {
	b := bytes.Clone(prefix)
	b[len(b)-1]++
	return b
}
