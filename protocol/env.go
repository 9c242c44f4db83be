package protocol

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"
)

// An Env is the world during one call of a node, and the record of what the node wants done. The
// runner makes one for each incarnation of a node, calls [Env.Begin] before each call, and carries
// out Out after it.
type Env[M any] struct {
	Now  time.Duration // this node's own clock, which may be skewed and may jump
	Rand *rand.Rand
	Out  []Effect[M] // in the order in which they were asked for; not to be kept beyond the next Begin

	keys  Keys
	next  uint64
	wrote overlay
}

// Keys is the key space of a node as its runner keeps it: what all calls before this one have
// written, durable or not. The bytes that it returns stay as they are during the call, and must not
// be changed.
type Keys interface {
	Get(key []byte) (value []byte, ok bool)
	// Scan goes through the keys from lo up to, but not including, hi, in their order; hi of nil is
	// no end.
	Scan(lo, hi []byte) iter.Seq2[[]byte, []byte]
}

// NewEnv returns the world of a node whose next record gets the index next, 1 for a new log. A nil
// keys is an empty key space.
func NewEnv[M any](keys Keys, next uint64, rnd *rand.Rand) *Env[M] {
	if keys == nil {
		keys = noKeys{}
	}
	return &Env[M]{Rand: rnd, keys: keys, next: max(next, 1)}
}

// Begin is for runners: it forgets the last call's effects, which must be carried out by then, and
// sets the time.
func (e *Env[M]) Begin(now time.Duration) {
	clear(e.Out) // what was sent may be large, and is not kept alive by this
	e.Now, e.Out = now, e.Out[:0]
	e.wrote.reset()
}

// Append adds a record to the node's log and returns its index, which is one higher than the last
// one's. No Send of this or a later call leaves before it is durable.
func (e *Env[M]) Append(rec M) uint64 {
	i := e.next
	e.next++
	e.Out = append(e.Out, Effect[M]{Kind: KindAppend, Index: i, Msg: rec})
	return i
}

// NextIndex returns the index that the next record gets.
func (e *Env[M]) NextIndex() uint64 { return e.next }

// Truncate forgets the records below an index: what they say is in the key space, or not needed. An
// index beyond the end of the log is a fault of the node, and panics.
func (e *Env[M]) Truncate(before uint64) {
	if before > e.next {
		panic(fmt.Sprintf("protocol: truncate before %d, beyond the log's end at %d", before, e.next))
	}
	e.Out = append(e.Out, Effect[M]{Kind: KindTruncate, Index: before})
}

// Send sends a message when all that was written so far is durable. It may be lost, and arrives
// late or, to a crashed node, never.
func (e *Env[M]) Send(to ID, msg M) {
	e.Out = append(e.Out, Effect[M]{Kind: KindSend, To: to, Msg: msg})
}

// SendUnhurried is Send for a message that nobody waits for: when nothing else does either, what
// was written may go to the disk some milliseconds later, together with what is written until then.
func (e *Env[M]) SendUnhurried(to ID, msg M) {
	e.Out = append(e.Out, Effect[M]{Kind: KindSend, To: to, Msg: msg, Unhurried: true})
}

// SendAhead sends a message at once. It may overtake messages given to Send before, in this call or
// an earlier one, that wait for the disk. It is for messages that are true even if the node forgets
// what it has not yet on disk.
func (e *Env[M]) SendAhead(to ID, msg M) {
	e.Out = append(e.Out, Effect[M]{Kind: KindSendAhead, To: to, Msg: msg})
}

// After sets a timer, replacing one of the same value: Expire is called with it in d by the node's
// clock, in a call of its own even if d is not positive. A clock that jumps meanwhile does not
// change when that is.
func (e *Env[M]) After(d time.Duration, t Timer) {
	e.Out = append(e.Out, Effect[M]{Kind: KindAfter, Delay: max(d, 0), Timer: t})
}

// Stop ends a timer. It does nothing if the timer is not set.
func (e *Env[M]) Stop(t Timer) { e.Out = append(e.Out, Effect[M]{Kind: KindStop, Timer: t}) }
