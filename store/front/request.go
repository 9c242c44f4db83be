package front

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/foresay/foresay/internal/plainerr"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/store"
)

// A request is all that the node sends to machines for one call of the application. It knows
// whether any machine may have taken it: an outcome that is not known is no riddle if nothing was
// sent. Its fields are guarded by Conn.mu.
type request struct {
	key   requestKey
	ref   uint64
	calls []*call
	wg    sync.WaitGroup // of the calls whose messages may still be sent
	txn   []byte         // as it is sent to all sites; nil: it has not been encoded
}

// encode returns the transaction that all messages of the request are about as it is sent.
func (r *request) encode(t store.Txn) []byte {
	if r.txn == nil {
		var err error
		if r.txn, err = proto.Marshal(txnToWire(t)); err != nil {
			// it has no field that could be invalid
			panic(fmt.Sprintf("front: a transaction cannot be encoded: %v", err))
		}
	}
	return r.txn
}

// taken reports whether a machine may have got it.
func (r *request) taken() bool {
	return slices.ContainsFunc(r.calls, func(k *call) bool { return k.taken })
}

// requestKey is what a request's messages have in common: the node's number of a read, or the name
// of a transaction that is committed, or declared, and its step.
type requestKey struct {
	read     uint64
	txn      store.TxnID
	declared store.TxnID
	step     uint32
}

func keyOf(msg store.Message) requestKey {
	switch m := msg.(type) {
	case store.ReadRequest:
		return requestKey{read: m.Ref}
	case store.CommitRequest, store.SpeculateRequest:
		of, _ := commitOf(m)
		return requestKey{txn: of.Txn.ID}
	case store.DeclareRequest:
		return requestKey{declared: m.ID, step: m.Step}
	}
	return requestKey{}
}

// A call carries one message to a machine.
type call struct {
	request  *request
	to       *machine
	cancel   func() // does not have it sent if it has not been
	answered bool
	taken    bool  // the machine may have got it
	failed   bool  // the machine cannot be connected to, or has refused it
	final    bool  // it would refuse it again, at least for now
	full     bool  // it has no room
	err      error // the first
}

// newCall notes that a message is about to be sent. It is called with mu held.
func (c *Conn) newCall(to *machine, msg store.Message) *call {
	key := keyOf(msg)
	r := c.sending[key]
	switch {
	case r != nil:
	case c.asking != nil && key != requestKey{}:
		r = c.asking
		r.key = key
		c.sending[r.key] = r
	default:
		r = &request{} // nobody asks what becomes of it
	}
	k := &call{request: r, to: to}
	r.calls = append(r.calls, k)
	r.wg.Add(1)
	return k
}

// sendAlone carries a large message to a machine, and the answer back.
func (c *Conn) sendAlone(ctx context.Context, k *call, id protocol.ID, m store.Message) {
	defer k.request.wg.Done()
	defer k.cancel()
	answer, err := c.try(ctx, k, m, grpc.WaitForReady(false)) // fails at once if the machine cannot be connected to
	if k.failed && !k.final && status.Code(err) == codes.Unavailable {
		answer, _ = c.try(ctx, k, m, grpc.WaitForReady(true))
	}
	of, _ := commitOf(m)
	c.mu.Lock()
	delete(c.flights, flight{id, of.Txn.ID})
	c.mu.Unlock()
	if answer != nil {
		c.node.Arrive(id, answer, 0)
	}
}

// try calls a machine, and notes how far that came.
func (c *Conn) try(
	ctx context.Context, k *call, m store.Message, wait grpc.CallOption,
) (answer store.Message, err error) {
	var at peer.Peer // stays empty if nothing left
	r, err := k.to.stub.Commit(ctx, commitToWire(m, c.cfg.Topology.Epoch), wait, grpc.Peer(&at))
	if err == nil {
		of, _ := commitOf(m)
		answer = doneFromWire(of.Txn.ID, r)
	}
	if status.Code(err) == codes.FailedPrecondition && c.cfg.Outdated != nil {
		c.cfg.Outdated(k.to.name)
	}
	c.mu.Lock()
	hopeless := c.note(k, err, at.Addr != nil, ctx.Err() != nil)
	c.mu.Unlock()
	if hopeless {
		c.abandon(k.request)
	}
	return answer, err
}

// note keeps what a call came to, and reports whether there is no hope for its request: all
// machines that were asked have refused it, or cannot be connected to and never could. Those are of
// a majority of the sites, or of the one that is asked before others: if that has no room, the
// others are not asked. A call may have ended because nobody waits for it any more. It is called
// with mu held.
func (c *Conn) note(k *call, err error, connected, ended bool) (hopeless bool) {
	code := status.Code(err)
	c.reached = c.reached || connected
	// a read waits until there is room
	k.full = code == codes.ResourceExhausted && k.request.key.read == 0
	// which the service says before it does anything
	k.final = k.full || code == codes.FailedPrecondition || code == codes.InvalidArgument
	k.answered = err == nil
	k.failed = k.final || err != nil && !connected && !ended
	k.taken = connected && !k.final && code != notTaken
	if k.err == nil && !ended {
		k.err = err
	}
	if !k.failed || k.request.taken() {
		return false
	}
	sites, full := map[string]bool{}, true
	for _, k := range k.request.calls {
		if !k.failed || !k.final && c.reached {
			return false
		}
		sites[k.to.site] = true
		full = full && k.full
	}
	return full || len(sites) > len(c.sites)/2
}

// abandon ends a request that there is no hope for.
func (c *Conn) abandon(r *request) {
	c.mu.Lock()
	ref, goesOn := r.ref, c.sending[r.key] == r && !c.closed
	c.mu.Unlock()
	if !goesOn {
		return
	}
	c.deliver(store.Cancel{Ref: ref}) // which a Get is not answered
	if r.key.read != 0 {
		c.waiting.Answer(ref, store.Got{Ref: ref})
	}
}

// over forgets a request that is answered. It is called with mu held.
func (c *Conn) over(r *request) {
	if c.sending[r.key] == r {
		delete(c.sending, r.key)
	}
}

// unsent reports whether no machine has got a request, which is over, and none will: calls that
// wait for a connection are ended.
func (c *Conn) unsent(r *request) bool {
	c.mu.Lock()
	taken, calls := r.taken(), r.calls
	c.mu.Unlock()
	if taken {
		return false
	}
	for _, k := range calls {
		k.cancel()
	}
	r.wg.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	return !r.taken()
}

// refused returns the outcome of a transaction that no machine has taken, from one that is not
// known.
func (c *Conn) refused(r *request, o store.Outcome) store.Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	o.Verdict = store.Rejected
	if len(r.calls) == 0 { // the node sent it when the connection was closed already
		o.Detail = ErrClosed.Error()
		return o
	}
	said := "nothing was sent"
	for _, k := range r.calls {
		if k.final || status.Code(k.err) == notTaken {
			said = "no machine has taken it"
		}
		if k.full { // it may be tried again
			o.Verdict, o.Reason = store.Aborted, store.Overloaded
		}
	}
	o.Detail = said + ": " + o.Detail
	return o
}

// missing returns the sites that were asked and have not answered, and what is known of why.
func (c *Conn) missing(r *request) (sites []string, why string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	answered, said := map[*machine]bool{}, map[*machine]string{}
	for _, k := range r.calls {
		answered[k.to] = answered[k.to] || k.answered
		if k.err != nil {
			said[k.to] = plainerr.Text(k.err)
		} else if said[k.to] == "" {
			said[k.to] = "no answer"
		}
	}
	var all []string
	for m, text := range said {
		if answered[m] {
			continue
		}
		all = append(all, fmt.Sprintf("%s: %s", m.name, text))
		if !slices.Contains(sites, m.site) {
			sites = append(sites, m.site)
		}
	}
	slices.Sort(all)
	slices.Sort(sites)
	return sites, strings.Join(all, "; ")
}
