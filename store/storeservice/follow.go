package storeservice

import (
	"context"
	"fmt"
	"sync"
	"time"

	pb "github.com/foresay/foresay/api/foresay/store/v1"
	"github.com/foresay/foresay/history"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/front"
	"github.com/foresay/foresay/store/storeconfig"
)

// A client follows the store into later epochs. A machine that refuses a call because it is of a
// later epoch is asked for the store's file of that epoch, which is what a majority of the sites
// has agreed on, and the client goes on with a connection that is made from it. What was under way
// on the old connection ends with that, and is taken up on the new one: reads are made again, and
// so are commits that no machine has taken. Of one that a machine may have taken the outcome is
// asked for, since sites keep their votes from epoch to epoch. A client that makes no calls asks a
// machine now and then.

// link is a client's connection as of one epoch.
type link struct {
	conn  *front.Conn
	store *storeconfig.Store
	// closed when a machine that was asked for a later epoch has answered; nil: none is asked.
	// Guarded by Client.mu
	learning chan struct{}
}

var _ client.Backend = (*Client)(nil)

// connect returns a link to the machines of a file.
func (c *Client) connect(s *storeconfig.Store) (*link, error) {
	l := &link{store: s}
	var err error
	l.conn, err = front.Dial(front.Config{
		Protocol: s.StoreProtocol(), Topology: s.Topology(), Cluster: s.Cluster, TLS: c.tls, Insecure: c.cfg.Insecure,
		Dial: c.o.Dial, RoundTrip: max(s.RoundTripTime(), c.o.RoundTrip),
		Outdated: func(machine string) { c.outdated(l, machine) },
	})
	if err != nil {
		return nil, fmt.Errorf("client: %w", err)
	}
	return l, nil
}

// newest returns the link of the latest epoch that is known.
func (c *Client) newest() *link {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.link
}

// outdated has a machine that is of another epoch than a link be asked for its file, unless one is
// being asked.
func (c *Client) outdated(l *link, machine string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.link != l || l.learning != nil {
		return
	}
	learning := make(chan struct{})
	l.learning = learning
	c.background.Go(func() {
		c.learn(l, machine)
		c.mu.Lock()
		l.learning = nil
		c.mu.Unlock()
		close(learning)
		if c.newest() != l {
			l.conn.Close()
		}
	})
}

// learn goes on with the epoch of a machine, if that is a later one.
func (c *Client) learn(l *link, machine string) {
	ctx, cancel := context.WithTimeout(context.Background(), max(8*l.store.RoundTripTime(), 2*time.Second))
	defer cancel()
	next, err := askLater(ctx, l.conn, l.store, machine)
	if err == nil && next == nil {
		return
	}
	var to *link
	if err == nil {
		to, err = c.connect(next.SeenAs(l.store))
	}
	if err != nil {
		c.log.Warn("store: client cannot go on in a later epoch", "of", l.store.Epoch, "machine", machine, "err", err)
		return
	}
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.link = to
	}
	c.mu.Unlock()
	if closed {
		to.conn.Close()
		return
	}
	c.log.Warn("store: client goes on in a later epoch than that of its file, which should be replaced", "epoch",
		next.Epoch, "file", c.cfg.StorePath(), "of", l.store.Epoch, "machine", machine)
}

// followEvery is how often a client or a machine asks for a later epoch.
const followEvery = 5 * time.Second

// watch has a client learn of later epochs that makes no calls, which nobody can refuse: it asks
// one machine now and then. Otherwise it would be left alone once no machine of its epoch is there.
func (c *Client) watch() {
	for asked := 0; ; {
		select {
		case <-time.After(followEvery):
		case <-c.closing:
			return
		}
		l := c.newest()
		machines := members(l.store)
		// until one answers; the next time another one is asked, lest one that is behind be
		// believed for good
		for range machines {
			m := machines[asked%len(machines)]
			asked++
			ctx, cancel := context.WithTimeout(context.Background(), followEvery)
			next, err := askLater(ctx, l.conn, l.store, m)
			cancel()
			if next != nil {
				c.outdated(l, m)
			}
			if err == nil {
				break
			}
		}
	}
}

// members returns the names of the machines that take part in an epoch.
func members(s *storeconfig.Store) (names []string) {
	for _, site := range s.Sites {
		for _, m := range site.Machines {
			if !site.Fenced {
				names = append(names, m.Name)
			}
		}
	}
	return names
}

// askLater asks a machine for the store's file, and returns it if it is of a later epoch than the
// one that is known; nil if it is not. Clients and machines follow the store by this.
func askLater(
	ctx context.Context, conn *front.Conn, known *storeconfig.Store, machine string,
) (*storeconfig.Store, error) {
	answer, err := conn.Change(ctx, machine, &pb.ChangeRequest{}) // which ends with the connection too
	if err != nil || answer.GetEpoch() <= known.Epoch {
		return nil, err
	}
	next, err := parseEpoch(answer.GetStore(), known)
	if err == nil && next.Epoch != answer.GetEpoch() {
		return nil, fmt.Errorf("the machine is of epoch %d, and its file of epoch %d", answer.GetEpoch(), next.Epoch)
	}
	return next, err
}

// parseEpoch reads the file of some epoch of a store that is known.
func parseEpoch(b []byte, known *storeconfig.Store) (*storeconfig.Store, error) {
	s, err := storeconfig.ParseStore(b)
	if err != nil {
		return nil, err
	}
	if s.Cluster != known.Cluster {
		return nil, fmt.Errorf("the file is of the store %s, not of %s", s.Cluster, known.Cluster)
	}
	if s.ID != "" && known.ID != "" && s.ID != known.ID {
		return nil, fmt.Errorf("the file is of another store that is named %s", s.Cluster)
	}
	if s.StoreProtocol().Title() != known.StoreProtocol().Title() {
		return nil, fmt.Errorf("the file is of a store of the protocol %s, not of %s", s.StoreProtocol().Title(),
			known.StoreProtocol().Title())
	}
	return s, nil
}

// moved reports whether what failed on a link is to be taken up on a newer one.
func (c *Client) moved(ctx context.Context, l *link) bool {
	c.mu.Lock()
	now, learning := c.link, l.learning
	c.mu.Unlock()
	if now == l && learning != nil {
		select {
		case <-learning:
		case <-ctx.Done():
		}
		now = c.newest()
	}
	return now != l && ctx.Err() == nil
}

// An attempt is one try of a transaction, on the client's link or, if that is given up meanwhile,
// once more on the next one.
type attempt struct {
	c *Client
	b client.Beginning

	mu    sync.Mutex
	at    *link
	sites client.Attempt // on it
	ended bool
}

// Begin implements client.Backend.
func (c *Client) Begin(b client.Beginning) client.Attempt {
	a := &attempt{c: c, b: b}
	a.newest()
	return a
}

// newest returns the latest link that is known, and the attempt on it.
func (a *attempt) newest() (*link, client.Attempt) {
	l := a.c.newest()
	a.mu.Lock()
	defer a.mu.Unlock()
	if l == a.at {
		return l, a.sites
	}
	if a.sites != nil {
		a.sites.End()
	}
	a.at, a.sites = l, l.conn.Begin(a.b)
	if a.ended {
		a.sites.End()
	}
	return l, a.sites
}

// End implements client.Attempt.
func (a *attempt) End() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ended = true
	a.sites.End()
}

// Read implements client.Attempt.
func (a *attempt) Read(ctx context.Context, key store.Key, first func(client.Answer)) (client.Answer, error) {
	if tell := first; first != nil {
		told := false // the calls of first are one after the other, as those of Read on links are
		first = func(a client.Answer) {
			if !told {
				told = true
				tell(a)
			}
		}
	}
	for {
		l, sites := a.newest()
		if out, err := sites.Read(ctx, key, first); err == nil || !a.c.moved(ctx, l) {
			return out, err
		}
	}
}

// ReadNearest implements client.Attempt.
func (a *attempt) ReadNearest(ctx context.Context, key store.Key) (client.Answer, error) {
	for {
		l, sites := a.newest()
		if out, err := sites.ReadNearest(ctx, key); err == nil || !a.c.moved(ctx, l) {
			return out, err
		}
	}
}

// Prepare implements client.Preparer: of what a connection has prepared, another one knows nothing.
func (a *attempt) Prepare(
	ctx context.Context, reads, writes []store.Key, took func(map[store.Key]client.Answer),
) {
	_, sites := a.newest()
	if p, ok := sites.(client.Preparer); ok {
		p.Prepare(ctx, reads, writes, took)
	}
}

// Commit implements client.Attempt.
func (a *attempt) Commit(ctx context.Context, s client.Submission) client.Decision {
	for {
		l, sites := a.newest()
		d := sites.Commit(ctx, s)
		switch o := d.Outcome; {
		case o.Verdict == store.Unknown || o.Verdict == store.Blocked:
			if d.Txn.ID.IsZero() || !a.c.moved(ctx, l) {
				return d
			}
			return a.c.Resolve(ctx, d.Txn)
		case o.Verdict == store.Rejected, o.Verdict == store.Aborted && o.Reason == store.NoReason && len(s.Writes) == 0:
			// Nobody has taken it, or it has no effect.
			if !a.c.moved(ctx, l) {
				return d
			}
		default:
			return d
		}
	}
}

// Speculate implements client.Speculator. Nothing is sent a second time: what the transaction
// follows the next link does not know. One that nobody has taken is refused then, and tried again.
func (a *attempt) Speculate(ctx context.Context, s client.Submission, how client.Speculation) client.Decision {
	l, sites := a.newest()
	p, ok := sites.(client.Speculator)
	if !ok {
		return a.Commit(ctx, s)
	}
	d := p.Speculate(ctx, s, how)
	switch d.Outcome.Verdict {
	case store.Unknown, store.Blocked:
		if !d.Txn.ID.IsZero() && a.c.moved(ctx, l) {
			return a.c.Resolve(ctx, d.Txn)
		}
	case store.Rejected:
		if a.c.moved(ctx, l) {
			d.Outcome = store.Outcome{Verdict: store.Aborted, Reason: store.Fenced}
		}
	}
	return d
}

// Resolve implements client.Backend.
func (c *Client) Resolve(ctx context.Context, txn store.Txn) client.Decision {
	for {
		l := c.newest()
		d := l.conn.Resolve(ctx, txn)
		if v := d.Outcome.Verdict; v == store.Committed || v == store.Aborted || !c.moved(ctx, l) {
			return d
		}
	}
}

// Promises implements client.Backend: a store has the protocol that it began with.
func (c *Client) Promises() history.Level { return c.newest().conn.Promises() }

// Speculates reports whether transactions can be answered when they are committed locally.
func (c *Client) Speculates() bool { return c.newest().conn.Speculates() }

// Closed reports whether the client is closed, so that nobody can be asked any more.
func (c *Client) Closed() bool { return c.newest().conn.Closed() }

// Stales implements client.Backend.
func (c *Client) Stales() bool { return c.newest().conn.Stales() }

// Stale implements client.Attempt.
func (a *attempt) Stale(ctx context.Context, reads []store.Read) bool {
	_, sites := a.newest()
	return sites.Stale(ctx, reads)
}
