package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/store"
)

// MayHaveCommitted reports whether a transaction that ended with an error may have taken effect, or
// may yet: nobody could tell. Such a transaction must not be made again as if it had failed;
// [Client.Resolve] asks for its outcome. It also reports true of the error of who no longer waits
// for a future, whatever that computes.
func MayHaveCommitted(err error) bool {
	return errors.As(err, new(*UnknownError)) || errors.As(err, new(*BlockedError)) ||
		errors.Is(err, foresay.ErrUnfinished)
}

// An AbortedError says that a transaction took no effect, however often it was tried.
type AbortedError struct {
	Reason   store.Reason // of the last attempt
	Attempts int
	Err      error // why there was no further attempt, if the context ended
}

func (e *AbortedError) Error() string {
	s := "client: the transaction was aborted"
	if e.Reason != store.NoReason {
		s += ": " + e.Reason.String()
	}
	if e.Attempts > 1 {
		s += fmt.Sprintf(", after %d attempts", e.Attempts)
	}
	return withDetail(s, e.Hint(), e.Err)
}

// Hint says what may be behind the reason, empty if that needs no words.
func (e *AbortedError) Hint() string {
	if e.Reason != store.Ahead {
		return ""
	}
	return "the clock here is ahead, or that of a machine is behind, which 'foresay store status' then names"
}

// Unwrap returns Err.
func (e *AbortedError) Unwrap() error { return e.Err }

// An UnknownError says that it is not known whether a transaction took effect, or will.
type UnknownError struct {
	// Txn is for Resolve. If it has no ID, nobody can ask.
	Txn    store.Txn
	Sites  []string // whose answers were waited for in vain
	Detail string   // what sites or the connection said, if anything
	Err    error    // why nobody waited longer, if the context ended
}

func (e *UnknownError) Error() string {
	s := "client: the outcome of a transaction is unknown"
	if !e.Txn.ID.IsZero() {
		s = fmt.Sprintf("client: the outcome of transaction %v is unknown", e.Txn.ID)
	}
	return withDetail(s+unanswered(", no vote of ", e.Sites), e.Detail, e.Err)
}

// Unwrap returns Err.
func (e *UnknownError) Unwrap() error { return e.Err }

// A BlockedError says that a transaction cannot be decided before a site says what it voted. Until
// then its keys are locked.
type BlockedError struct {
	Txn   store.Txn // for Resolve
	Sites []string  // whose votes are missing
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("client: transaction %v is blocked until one of these sites is back or fenced: %s", e.Txn.ID,
		strings.Join(e.Sites, ", "))
}

// A RejectedError says that a transaction was never sent: it took no effect, and never will.
type RejectedError struct {
	Detail string
	Sites  []string // that could not be reached, if that is why
	Err    error    // why nobody tried longer, if the context ended
}

func (e *RejectedError) Error() string {
	return withDetail("client: the transaction was rejected", e.Detail, e.Err)
}

// Unwrap returns Err.
func (e *RejectedError) Unwrap() error { return e.Err }

// An UnavailableError says that too few sites answered, or that this client asks too much at once.
// The transaction took no effect.
type UnavailableError struct {
	Key    store.Key // that was read; empty if it was the validation that nobody answered
	Sites  []string  // whose answers were waited for in vain, as far as is known
	Detail string    // what those that did not answer said, if anything
	Err    error     // why nobody waited longer, if the context ended or the connection was closed
	// Attempts were refused before this one, the last of them for Reason. Sites may then be well: the
	// time may have gone into the attempts, and a read may wait until others are done with its key.
	Attempts int
	Reason   store.Reason
}

func (e *UnavailableError) Error() string {
	s := "client: "
	if e.Key != "" {
		s += fmt.Sprintf("read %.40q: ", e.Key)
	}
	if !e.contended() {
		return withDetail(s+"too few sites answer"+unanswered(", not ", e.Sites), e.Detail, e.Err)
	}
	s += fmt.Sprintf("time was up in attempt %d, after the one before was refused (%v): other transactions have its "+
		"keys, and reads may wait for their turn there", e.Attempts+1, e.Reason)
	return withDetail(s+unanswered("; not answered yet by ", e.Sites), e.Detail, e.Err)
}

// contended reports whether the time was up after others were in the way.
func (e *UnavailableError) contended() bool {
	switch e.Reason {
	case store.StaleRead, store.StaleWrite, store.Locked, store.Reserved:
		return e.Attempts > 0 && errors.Is(e.Err, context.DeadlineExceeded)
	}
	return false
}

// Unwrap returns Err.
func (e *UnavailableError) Unwrap() error { return e.Err }

// A CanceledError says that the context of a read was cancelled, by whoever has made it, before the
// read was answered. The transaction took no effect. errors.Is says that it is context.Canceled.
type CanceledError struct {
	Key   store.Key // that was read; empty if the transaction had not begun to
	Sites []string  // whose answers were waited for, as far as is known; they may be well
	Err   error     // the context's; it wraps context.Canceled
}

func (e *CanceledError) Error() string {
	s := "client: "
	if e.Key != "" {
		s += fmt.Sprintf("read %.40q: ", e.Key)
	}
	s += "the context was cancelled"
	if why := e.Err.Error(); why != context.Canceled.Error() {
		s += ": " + why
	}
	return s + unanswered("; not answered yet by ", e.Sites)
}

// Unwrap returns Err.
func (e *CanceledError) Unwrap() error { return e.Err }

// Unread returns the error of a read that nobody waits for any more, as its context has ended: u,
// with why that was, unless it was cancelled. A run that is discarded gets the engine's error.
func Unread(ctx context.Context, u *UnavailableError) error {
	why := ended(ctx)
	switch {
	case errors.Is(why, foresay.ErrMisspeculated):
		return why
	case u.Err == nil:
		u.Err = why
	case why != nil && !errors.Is(u.Err, why):
		u.Err = fmt.Errorf("%w: %w", u.Err, why)
	}
	switch is := errors.Is(u.Err, context.Canceled); {
	case errors.Is(u.Err, context.DeadlineExceeded), !is && !errors.Is(ctx.Err(), context.Canceled):
		return u
	case !is: // whoever has cancelled it has given a reason
		u.Err = canceled{u.Err}
	}
	return &CanceledError{Key: u.Key, Sites: u.Sites, Err: u.Err}
}

// canceled is the reason for which a context was cancelled.
type canceled struct{ error }

// Unwrap makes it context.Canceled, too.
func (e canceled) Unwrap() []error { return []error{e.error, context.Canceled} }

// unanswered names sites that did not answer, if there are any.
func unanswered(before string, sites []string) string {
	if len(sites) == 0 {
		return ""
	}
	return before + strings.Join(sites, ", ")
}

// withDetail adds to a message what else is known.
func withDetail(s, detail string, err error) string {
	if detail != "" {
		s += ": " + detail
	}
	if err != nil {
		s += ": " + err.Error()
	}
	return s
}

// failure returns the error that an outcome is, nil if the transaction is committed.
func failure(d Decision, attempts int) error {
	o := d.Outcome
	switch o.Verdict {
	case store.Committed:
		return nil
	case store.Aborted:
		return &AbortedError{Reason: o.Reason, Attempts: attempts}
	case store.Blocked:
		return &BlockedError{Txn: d.Txn, Sites: o.Sites}
	case store.Rejected:
		return &RejectedError{Detail: o.Detail, Sites: o.Sites}
	}
	return &UnknownError{Txn: d.Txn, Sites: o.Sites, Detail: o.Detail}
}

// unsure adds why nobody waited longer.
func unsure(ctx context.Context, err error) error {
	if u, ok := errors.AsType[*UnknownError](err); ok {
		u.Err = ended(ctx)
	}
	if r, ok := errors.AsType[*RejectedError](err); ok && len(r.Sites) > 0 {
		r.Err = ended(ctx)
	}
	return err
}

// ended returns why a context ended, nil if it goes on. The engine may notice that a deadline is
// over before the context does.
func ended(ctx context.Context) error {
	if at, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(at) {
		return context.DeadlineExceeded
	}
	return context.Cause(ctx)
}

// unread is the error of an attempt whose reads came to no end: one of this package's, which says
// what was waited for.
func (a *attempt) unread(ctx context.Context, err error) error {
	if why := ended(ctx); errors.Is(why, foresay.ErrMisspeculated) {
		return why
	}
	if isTyped(err) || !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	u := &UnavailableError{Err: plainEnd{err}}
	if open := a.reads.waiting(); len(open) > 0 {
		u.Key = open[0]
		if len(open) > 1 {
			u.Detail = fmt.Sprintf("and %d more keys", len(open)-1)
		}
	}
	return Unread(ctx, u)
}

// unread is that of an attempt, with what became of those before.
func (t *txn) unread(ctx context.Context, a *attempt, err error) error {
	err = a.unread(ctx, err)
	x, ok := err.(*CanceledError) //nolint:errorlint // as below
	if why := context.Cause(ctx); ok && errors.Is(ctx.Err(), context.Canceled) && !errors.Is(err, why) {
		return &CanceledError{Key: x.Key, Sites: x.Sites, Err: canceled{why}} // the engine does not hand it on
	}
	if u, ok := err.(*UnavailableError); ok { //nolint:errorlint // else it has words around it that say more
		after := *u // runs that are given up may still look at it
		after.Attempts, after.Reason = a.number-1, t.refused
		return &after
	}
	return err
}

// EndedError says that the sites have ended an attempt while it was reading: something that its
// snapshot shows has not been committed, say. The transaction is tried again; a program sees it
// only as what a read of an attempt that is over returns.
type EndedError struct {
	Key    store.Key    // that was read
	Reason store.Reason // NoReason: the site did not say
}

// Error implements error.
func (e *EndedError) Error() string {
	return fmt.Sprintf("client: read %.40q: the attempt is over, and the transaction is tried again (%v)", e.Key, e.Reason)
}

// plainEnd is an error of the engine's whose context ended, without its words, which name calls and
// are of no use to who reads keys.
type plainEnd struct{ error }

func (e plainEnd) Error() string {
	for _, why := range []error{context.DeadlineExceeded, context.Canceled} {
		if errors.Is(e.error, why) {
			return why.Error()
		}
	}
	return e.error.Error()
}

func (e plainEnd) Unwrap() error { return e.error }

// isTyped reports whether an error of a read says what was waited for.
func isTyped(err error) bool {
	return errors.As(err, new(*UnavailableError)) || errors.As(err, new(*CanceledError)) ||
		errors.As(err, new(*RejectedError)) || errors.As(err, new(*EndedError))
}

// waiting returns the keys that are asked for and not answered, in order.
func (s *reads) waiting() []store.Key {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []store.Key
	for k, n := range s.asked {
		if n > 0 {
			out = append(out, k)
		}
	}
	slices.Sort(out)
	return out
}
