package client

import (
	"fmt"
	"strings"

	"github.com/foresay/foresay/store"
)

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
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *AbortedError) Unwrap() error { return e.Err }

// An UnknownError says that it is not known whether a transaction took effect, or will.
type UnknownError struct {
	// Txn is for Resolve. If it has no ID, nobody can ask.
	Txn    store.Txn
	Detail string // what sites or the connection said, if anything
	Err    error  // why nobody waited longer, if the context ended
}

func (e *UnknownError) Error() string {
	s := "client: the outcome of a transaction is unknown"
	if !e.Txn.ID.IsZero() {
		s = fmt.Sprintf("client: the outcome of transaction %v is unknown", e.Txn.ID)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns Err.
func (e *UnknownError) Unwrap() error { return e.Err }

// A BlockedError says that a transaction cannot be decided before a site says what it voted. Until then its keys are locked.
type BlockedError struct {
	Txn   store.Txn // for Resolve
	Sites []string  // whose votes are missing
}

func (e *BlockedError) Error() string {
	return fmt.Sprintf("client: transaction %v is blocked until one of these sites is back or fenced: %s", e.Txn.ID, strings.Join(e.Sites, ", "))
}

// A RejectedError says that a transaction was never sent.
type RejectedError struct{ Detail string }

func (e *RejectedError) Error() string { return "client: the transaction was rejected: " + e.Detail }

// An UnavailableError says that too few sites answered, or that this client asks too much at once. The transaction took no effect.
type UnavailableError struct {
	Key    store.Key // that was read; empty if it was the validation that nobody answered
	Detail string    // what those that did not answer said, if anything
}

func (e *UnavailableError) Error() string {
	s := "client: too few sites answer"
	if e.Key != "" {
		s = fmt.Sprintf("client: read %.40q: too few sites answer", e.Key)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// failure returns the error that an outcome is, nil if the transaction is committed.
func failure(d Decision, attempts int) error {
	switch d.Outcome.Verdict {
	case store.Committed:
		return nil
	case store.Aborted:
		return &AbortedError{Reason: d.Outcome.Reason, Attempts: attempts}
	case store.Blocked:
		return &BlockedError{Txn: d.Txn, Sites: d.Outcome.Sites}
	case store.Rejected:
		return &RejectedError{Detail: d.Outcome.Detail}
	}
	return &UnknownError{Txn: d.Txn, Detail: d.Outcome.Detail}
}
