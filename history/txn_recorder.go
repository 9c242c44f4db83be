package history

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// TxnRecorder collects transactions while they happen. Its zero value is ready. It may be used by
// many goroutines at once, and must not be copied.
type TxnRecorder struct {
	mu       sync.Mutex
	txns     []Txn  // in the order of Begin
	ended    []bool // whether Commit or Abort was called
	versions map[string][]string
	errs     []error
}

// TxnLog records one transaction. Unless Commit or Abort follows, its outcome stays Unknown.
type TxnLog struct {
	recorder *TxnRecorder
	index    int
}

// Begin records that a client begins a transaction.
func (r *TxnRecorder) Begin(id TxnID, client Client, at time.Duration) TxnLog {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.txns = append(r.txns, Txn{ID: id, Client: client, Begin: at})
	r.ended = append(r.ended, false)
	return TxnLog{r, len(r.txns) - 1}
}

// Access records an access. The access's list must not change afterwards.
func (l TxnLog) Access(a Access) {
	l.recorder.mu.Lock()
	defer l.recorder.mu.Unlock()
	t := &l.recorder.txns[l.index]
	if l.recorder.ended[l.index] {
		l.misused(fmt.Errorf("an access to %q after the end", a.Key))
		return
	}
	t.Accesses = append(t.Accesses, a)
}

// Read records that the transaction saw a version of a register, [Initial] if it found nothing.
func (l TxnLog) Read(key, value string) {
	l.Access(Access{Kind: Read, Key: key, Value: value})
}

// Write records that the transaction writes a version of a register.
func (l TxnLog) Write(key, value string) {
	l.Access(Access{Kind: Write, Key: key, Value: value})
}

// ReadList records that the transaction saw a list with these elements.
func (l TxnLog) ReadList(key string, elements []string) {
	l.Access(Access{Kind: ReadList, Key: key, List: slices.Clone(elements)})
}

// Append records that the transaction appends an element to a list.
func (l TxnLog) Append(key, element string) {
	l.Access(Access{Kind: Append, Key: key, Value: element})
}

// Commit records that the client was told that the transaction committed.
func (l TxnLog) Commit(at time.Duration) {
	l.end(at, Returned)
}

// Abort records that the client was told that the transaction aborted.
func (l TxnLog) Abort(at time.Duration) {
	l.end(at, Failed)
}

func (l TxnLog) end(at time.Duration, outcome Outcome) {
	r := l.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	t := &r.txns[l.index]
	err := checkTimes(t.Begin, at, outcome)
	if r.ended[l.index] {
		err = errTwice
	}
	if err != nil {
		l.misused(err)
		return
	}
	r.ended[l.index] = true
	t.End, t.Outcome = at, outcome
}

// misused notes an error; the recorder's lock is held.
func (l TxnLog) misused(err error) {
	t := &l.recorder.txns[l.index]
	l.recorder.errs = append(l.recorder.errs, fmt.Errorf("history: %v of client %d, begun at %v: %w", t.ID, t.Client,
		t.Begin, err))
}

// Versions records the order of a register's versions: the store's word, as in [Transactions].
func (r *TxnRecorder) Versions(key string, values []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.versions == nil {
		r.versions = make(map[string][]string)
	}
	r.versions[key] = slices.Clone(values)
}

// Transactions returns a copy of what was recorded so far, in the order of the calls to Begin. The
// error tells of transactions that went on after their end or ended before they began.
func (r *TxnRecorder) Transactions() (Transactions, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	h := Transactions{Txns: slices.Clone(r.txns), Versions: make(map[string][]string, len(r.versions))}
	for i := range h.Txns {
		h.Txns[i].Accesses = slices.Clone(h.Txns[i].Accesses)
	}
	for key, values := range r.versions {
		h.Versions[key] = slices.Clone(values)
	}
	return h, errors.Join(r.errs...)
}
