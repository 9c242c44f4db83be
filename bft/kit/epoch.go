package kit

import (
	"bytes"
	"crypto/sha256"
	"slices"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/sessions"
	"github.com/foresay/foresay/internal/wirefmt"
	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/protocol"
)

// An Epoch is a time in which the members and their keys are the same. It ends with the first batch
// that changes them: nobody executes anything above that one's place by the votes of the epoch, and
// the checkpoint of that place, signed by a quorum of the epoch, names the members of the next. So
// the checkpoints are a chain by which anybody who knows one epoch learns the later ones.
type Epoch struct {
	*bft.Directory
	// Base is the checkpoint with which the epoch has begun, which needs no other proof in it; the
	// zero one in epoch 0.
	Base   Checkpoint
	record []byte     // the members
	digest bft.Digest // of record
}

// A Link ends an epoch: the proof of its last checkpoint, and the members of the next one as
// bft.Directory.Encode has them.
type Link struct {
	Proof   bft.Certificate[Checkpoint]
	Members []byte
}

// Messages about epochs, which anybody may say to anybody: a link speaks for itself.
type (
	// LinksWanted asks for the links from the end of an epoch on.
	LinksWanted struct{ After bft.Epoch }
	// Links answers. A replica keeps its own, all of them, under a key.
	Links struct{ Links []Link }
)

// maxLinks bounds how many links are sent at once.
const maxLinks = 16

// Genesis returns epoch 0, which a group's directory describes.
func Genesis(d *bft.Directory) *Epoch { return newEpoch(d, Checkpoint{}) }

func newEpoch(d *bft.Directory, base Checkpoint) *Epoch {
	record := d.Encode()
	return &Epoch{Directory: d, Base: base, record: record, digest: bft.Digest(sha256.Sum256(record))}
}

// Digest returns the digest of the members, which the checkpoints of the epoch have.
func (e *Epoch) Digest() bft.Digest { return e.digest }

// Next returns the epoch that follows, if the link proves it.
func (e *Epoch) Next(l *Link) (*Epoch, bool) {
	b := l.Proof.Body()
	if b.Seq <= e.Base.Seq || l.Proof.Count(e.IsMember) < e.Quorum() || b.Members != sha256.Sum256(l.Members) {
		return nil, false
	}
	d, err := e.Decode(l.Members)
	if err != nil || d.Epoch != e.Directory.Epoch+1 {
		return nil, false
	}
	return newEpoch(d, b), true
}

// LawfulStable reports whether a certificate proves a checkpoint within an epoch. That with which
// the epoch has begun needs no proof.
func LawfulStable(e *Epoch, c *bft.Certificate[Checkpoint]) bool {
	b := c.Body()
	if b.Seq <= e.Base.Seq {
		return b == e.Base
	}
	return b.Members == e.digest && c.Count(e.IsMember) >= e.Quorum()
}

// change executes a change of the members: the batch that it is in is the last one of the epoch.
func (r *Replica) change(space keyspace.Space, by protocol.ID, command []byte) []byte {
	c, err := bft.DecodeChange(command)
	switch {
	case !slices.Contains(r.Dir.Administrators, by):
		return bft.Changed{Refused: "only an administrator changes the members"}.Value()
	case err != nil:
		return bft.Changed{Refused: err.Error()}.Value()
	case r.ended(space):
		return bft.Changed{Refused: "another change is under way"}.Value()
	}
	next, err := r.Dir.After(c)
	if err != nil {
		return bft.Changed{Refused: err.Error()}.Value()
	}
	sessions.SetMembers(space, next.Encode())
	return bft.Changed{Epoch: next.Epoch}.Value()
}

// ended reports whether a state is that at the end of the epoch.
func (r *Replica) ended(at keyspace.Reader) bool {
	b, ok := sessions.Members(at)
	return ok && !bytes.Equal(b, r.Dir.record)
}

// top returns the state above all layers.
func (r *Replica) top() keyspace.Reader {
	if p := r.performed[r.Top]; p != nil {
		return p.Layer
	}
	return r.Store.Committed()
}

// Marked reports whether there is a checkpoint at a place that is committed or executed: at each so
// many places, and at the end of the epoch.
func (r *Replica) Marked(seq bft.Seq) bool {
	if seq%bft.Seq(r.Config.CheckpointEvery) == 0 {
		return true
	}
	if p := r.performed[seq]; p != nil {
		return r.ended(p.Layer)
	}
	return seq == r.Committed && r.ended(r.Store.Committed())
}

// members returns the digest of the members that rule what is above a place, which is committed.
func (r *Replica) members(seq bft.Seq) bft.Digest {
	if b, ok := sessions.Members(r.Store.Committed()); ok && seq == r.Committed {
		return bft.Digest(sha256.Sum256(b))
	}
	return r.Dir.digest
}

// onLast takes the proof of the epoch's last checkpoint. Who has not come there cannot tell who the
// next members are, and asks.
func (r *Replica) onLast(env *protocol.Env[bft.Message], proof bft.Certificate[Checkpoint]) {
	if !r.Fetching() && proof.Body().Seq == r.Committed {
		if b, ok := sessions.Members(r.Store.Committed()); ok {
			r.next = &Link{proof, b}
			return
		}
	}
	r.askForLinks(env)
}

func (r *Replica) askForLinks(env *protocol.Env[bft.Message]) {
	if r.linksAsked < r.Tick {
		r.linksAsked = r.Tick
		r.ToOthers(env, LinksWanted{r.Dir.Epoch})
	}
}

// Turn begins the next epoch if this replica knows how the present one has ended, and reports
// whether it does. A protocol calls it where it has nothing else under way.
func (r *Replica) Turn(env *protocol.Env[bft.Message]) bool {
	l := r.next
	if r.next = nil; l == nil {
		return false
	}
	return r.follow(env, l)
}

// follow begins the epoch after a link.
func (r *Replica) follow(env *protocol.Env[bft.Message], l *Link) bool {
	e, ok := r.Dir.Next(l)
	if !ok {
		return false
	}
	r.links = append(r.links, *l)
	r.Put(env, linksKey, Links{r.links})
	r.Put(env, stableKey, StableProof{l.Proof})
	r.adopt(e)
	r.Stable = l.Proof
	clear(r.reached)
	clear(r.records) // all that they have is of the epoch that has ended
	r.ClampReads(e.Base.Seq)
	r.compare(e.Base)
	r.Begin(e.Epoch.First(), e.Base.Seq)
	r.rules.Turned(env)
	r.forget(env)
	env.Send(protocol.App, bft.Turned{Directory: e.Directory})
	return true
}

// adopt has the replica be in an epoch, as a member if it has the key of one.
func (r *Replica) adopt(e *Epoch) {
	r.Dir, r.Others = e, nil
	for _, m := range e.Members {
		if m.ID != r.Config.ID {
			r.Others = append(r.Others, m.ID)
		}
	}
	if n := r.Config.NextSigner; n != nil && n.Key() == e.KeyOf(r.Config.ID) {
		r.Config.Signer, r.Config.NextSigner = n, nil
	}
}

// Outside reports whether this replica is no member of the epoch: it was removed or replaced, or is
// not there yet. It says nothing but how epochs have ended, and takes nothing else.
func (r *Replica) Outside() bool { return r.Dir.KeyOf(r.Config.ID) != r.Config.Signer.Key() }

// recall goes through the epochs whose ends are on the disk.
func (r *Replica) recall(env *protocol.Env[bft.Message]) bool {
	m, _ := Get[Links](r, env, linksKey)
	for i := range m.Links {
		e, ok := r.Dir.Next(&m.Links[i])
		if !ok {
			return false
		}
		r.adopt(e)
		r.Stable = m.Links[i].Proof
	}
	r.links = m.Links
	r.View = r.Dir.Epoch.First()
	if len(r.links) > 0 {
		env.Send(protocol.App, bft.Turned{Directory: r.Dir.Directory})
	}
	return true
}

// OnEpochs takes what is said of epochs, by whomever, and reports whether that was all that there
// is to do with a message.
func (r *Replica) OnEpochs(env *protocol.Env[bft.Message], from protocol.ID, msg bft.Message) bool {
	switch m := msg.(type) {
	case LinksWanted:
		r.tellLinks(env, from, m.After)
	case Links:
		for i := range m.Links {
			r.follow(env, &m.Links[i])
		}
		return r.Outside()
	default:
		return r.Outside()
	}
	return true
}

// tellLinks tells somebody how the epochs have ended from one on.
func (r *Replica) tellLinks(env *protocol.Env[bft.Message], to protocol.ID, after bft.Epoch) {
	if n := bft.Epoch(len(r.links)); after < n {
		links := r.links[after:min(n, after+maxLinks)]
		if r.Affords(to, len(links)*(len(links[0].Members)+len(r.Dir.Members)*entryBytes)) {
			env.Send(to, Links{links})
		}
	}
}

// OtherEpoch reports whether a member speaks of another epoch than this replica. Who is behind is
// told how epochs have ended.
func (r *Replica) OtherEpoch(env *protocol.Env[bft.Message], from protocol.ID, v bft.View) bool {
	switch e := v.Epoch(); {
	case e < r.Dir.Epoch:
		r.tellLinks(env, from, e)
	case e > r.Dir.Epoch:
		env.Send(from, LinksWanted{r.Dir.Epoch})
	default:
		return false
	}
	return true
}

// Await asks how the epoch has ended, if this replica is outside, or has come to the end. It is
// called in each tick, and reports whether there is nothing else to do.
func (r *Replica) Await(env *protocol.Env[bft.Message]) bool {
	if r.Tick%4 == 0 && (r.Outside() || !r.Fetching() && r.ended(r.Store.Committed())) {
		r.askForLinks(env)
	}
	return r.Outside()
}

// linkFields takes a Link.
func linkFields(st *Statements) func(*wirefmt.Coder, *Link) {
	proof := bft.CertificateFields(st.Checkpoints, st.Scheme)
	return func(c *wirefmt.Coder, l *Link) {
		proof(c, &l.Proof)
		wirefmt.Bytes(c, &l.Members)
	}
}
