package wal

import (
	"errors"
	"fmt"
	"math/bits"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// A commit is a batch on its way to the disk.
type commit struct {
	node      *Node
	ops       []op
	sizeBytes int
	done      func(error)
	refused   error // the batch is not written

	low                uint64 // the log's new lowest index, 0 if it stays
	sweepFrom, sweepTo uint64 // records to delete in the database
}

// Commit hands in a batch. It is visible in [Node.Keys] and [Node.NextIndex] when Commit returns.
// done is called once with nil when the batch and all before it of this node are durable, or with
// an error if that will not be acknowledged: the batch may then be found after a restart, or not.
// The calls of done for a store come one at a time, from a goroutine of the store's (after Close:
// from Commit), in the order of the commits; done must not block and must not call Commit or Close.
// An empty batch writes nothing and is done when those before it are.
//
// The batch is empty afterwards and may be filled again; its slices are kept. Commit blocks while
// more than Options.MaxPendingBytes wait for the disk.
//
// A batch whose indexes do not fit the log is refused, with the node's later ones: done gets an
// error and nothing of it is written.
func (n *Node) Commit(b *Batch, done func(error)) { n.commit(b, done, true) }

// CommitUnhurried is Commit for a batch that nobody waits for: it is written with the next group,
// but a group need not be written for it until there is one to hurry, of any node, or some
// milliseconds have passed.
func (n *Node) CommitUnhurried(b *Batch, done func(error)) { n.commit(b, done, false) }

// Hurry has the store write what it was given: a batch that was unhurried is waited for now.
func (n *Node) Hurry() {
	s := n.store
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hurry()
}

// unhurriedDelay is how long a group waits that nobody waits for: some syncs of a quick disk, and
// little beside a round trip between sites.
const unhurriedDelay = 5 * time.Millisecond

// hurry has the writer take what is queued. Invariant: s.mu is held.
func (s *Store) hurry() {
	if len(s.queue) > 0 {
		s.hurried = true
		s.work.Signal()
	}
}

// hurryLater is hurry after a while, unless that is on its way. Invariant: s.mu is held.
func (s *Store) hurryLater() {
	if s.hurried || s.later {
		return
	}
	s.later = true
	time.AfterFunc(unhurriedDelay, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.later = false
		s.hurry()
	})
}

func (n *Node) commit(b *Batch, done func(error), hurried bool) {
	s := n.store
	c := &commit{node: n, ops: b.ops, sizeBytes: b.sizeBytes, done: done}
	s.mu.Lock()
	for s.queuedBytes > s.opts.MaxPendingBytes && s.err == nil && !s.closed {
		s.room.Wait()
	}
	if s.closed {
		s.mu.Unlock()
		b.Reset()
		done(ErrClosed)
		return
	}
	if s.err == nil {
		n.mu.Lock()
		n.accept(c, b)
		n.mu.Unlock()
	}
	s.queue = append(s.queue, c)
	s.queuedBytes += c.sizeBytes
	switch {
	case s.err != nil:
		s.finish.Broadcast()
	case hurried || s.queuedBytes > s.opts.MaxPendingBytes:
		s.hurry()
	default:
		s.hurryLater()
	}
	s.mu.Unlock()
	b.Reset()
}

// accept makes a batch visible, or refuses it.
func (n *Node) accept(c *commit, b *Batch) {
	if n.broken == nil {
		low, next, err := n.check(b)
		if err == nil {
			n.plan(c, low, next)
			return
		}
		n.broken = fmt.Errorf("wal: %s: node %q: the batch %w", n.store.dir, n.name, err)
	}
	c.refused, c.ops = n.broken, nil
}

func (n *Node) plan(c *commit, low, next uint64) {
	limit := n.store.readCacheLimit()
	for _, o := range c.ops {
		n.younger.add(o)
		switch o.kind {
		case opAppend:
			n.garbage += o.valueBytes()
		case opPut, opDelete:
			n.cache.wrote(o, limit)
		case opTruncate:
		}
	}
	n.commits++
	if low > n.low {
		c.low = low
		if low-n.swept >= sweepRecords || n.garbage >= sweepBytes {
			c.sweepFrom, c.sweepTo = n.swept, low
			n.swept, n.garbage = low, 0
		}
	}
	n.low, n.next = low, next
}

// runWriter writes what gathers, one group after the other, until the store is closed and nothing
// is left, or it has failed.
func (s *Store) runWriter() {
	for {
		group := s.nextGroup()
		if group == nil {
			return
		}
		if err := s.write(group); err != nil {
			s.fail(err)
		}
		s.mu.Lock()
		if s.err == nil {
			s.written = append(s.written, group...)
			s.writing = nil
			endGroup(group)
		}
		s.mu.Unlock()
		s.finish.Broadcast()
	}
}

// nextGroup waits for commits and takes them all. It returns nil when there will be none.
func (s *Store) nextGroup() []*commit {
	s.mu.Lock()
	defer s.mu.Unlock()
	for (len(s.queue) == 0 || !s.hurried) && !s.closed && s.err == nil {
		s.work.Wait()
	}
	if delay := s.delay(); delay > 0 && !s.closed && s.err == nil {
		s.mu.Unlock()
		select {
		case <-time.After(delay):
		case <-s.ended:
		}
		s.mu.Lock()
	}
	if s.err != nil || len(s.queue) == 0 {
		return nil
	}
	group := s.queue
	s.hurried, s.lastGroup = false, len(group)
	s.writing, s.queue, s.queuedBytes = group, nil, 0
	s.room.Broadcast()
	for _, c := range group {
		c.node.mu.Lock()
		if c.node.older == nil {
			c.node.older, c.node.younger = c.node.younger, &pending{}
		}
		c.node.mu.Unlock()
	}
	return group
}

// Many commits in one group are of many that write at once: more are about to come, and a group
// that waits for them costs less than two. Who writes alone never waits.
const (
	manyCommits = 4
	manyDelay   = 300 * time.Microsecond
)

// delay returns how long the writer waits for more. Invariant: s.mu is held.
func (s *Store) delay() time.Duration {
	if s.opts.Delay == 0 && s.lastGroup >= manyCommits {
		return manyDelay
	}
	return s.opts.Delay
}

// endGroup drops the pending writes of a group that is in the database.
func endGroup(group []*commit) {
	for _, c := range group {
		c.node.mu.Lock()
		c.node.older = nil
		c.node.mu.Unlock()
	}
}

// writeGroup writes a group, and syncs it.
func (s *Store) writeGroup(group []*commit) error {
	how := pebble.Sync
	if s.opts.NoSync {
		how = pebble.NoSync
	}
	return s.apply(group, how)
}

// A batch of the database takes its memory from those before it, if these were of at most
// maxBatchBytes.
const (
	minBatchBytes = 1 << 10
	maxBatchBytes = 4 << 20
)

// apply writes commits as one batch of the database.
func (s *Store) apply(group []*commit, how *pebble.WriteOptions) (err error) {
	size := minBatchBytes
	for _, c := range group {
		size += c.sizeBytes
	}
	// It would copy all that it has each time it grows. Sizes that are powers of two fit again.
	size = 1 << bits.Len(uint(size-1))
	batch := s.db.NewBatchWithSize(size, pebble.WithMaxRetainedSizeBytes(maxBatchBytes))
	for _, c := range group {
		if err := c.node.write(batch, c); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	if !batch.Empty() {
		err = s.db.Apply(batch, how)
	}
	return errors.Join(err, batch.Close())
}

// runFinisher calls what waits for commits. It is a goroutine of its own so that a writer that
// hangs in the database does not keep back the news that the store has failed.
func (s *Store) runFinisher() {
	defer close(s.finished)
	for {
		s.mu.Lock()
		for len(s.written) == 0 && !(s.err != nil && len(s.writing)+len(s.queue) > 0) && !s.closedEmpty() {
			s.finish.Wait()
		}
		finished, lost, failure := s.written, []*commit(nil), s.err
		s.written = nil
		if failure != nil {
			lost = append(s.writing, s.queue...)
			s.writing, s.queue, s.queuedBytes = nil, nil, 0
		}
		last := s.closedEmpty()
		s.mu.Unlock()
		for _, c := range finished {
			c.done(c.refused)
		}
		for _, c := range lost {
			c.done(failure)
		}
		if last && len(finished)+len(lost) == 0 {
			return
		}
	}
}

// closedEmpty reports whether nothing is left of a closed store's commits. Invariant: s.mu is held.
func (s *Store) closedEmpty() bool {
	return s.closed && len(s.queue)+len(s.writing)+len(s.written) == 0
}
