package history

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

const txnKind = "transactions"

// WriteText writes the history as text, a key's versions or a transaction to a line:
//
//	history transactions
//	versions "x" "a" "b"
//	txn 7 client 1 1ms..2ms committed read "x" "a" write "x" "b"
//	txn 8 client 2 1ms..? unknown read "y" none append "l" "p"
//	txn 9 client 3 4ms..5ms aborted list "l" ( "p" "q" )
//
// Blank lines and lines that begin with # mean nothing.
func (h Transactions) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "history %s\n", txnKind)
	for _, key := range slices.Sorted(maps.Keys(h.Versions)) {
		fmt.Fprintf(b, "versions %q", key)
		for _, value := range h.Versions[key] {
			fmt.Fprintf(b, " %q", value)
		}
		b.WriteByte('\n')
	}
	for i := range h.Txns {
		t := &h.Txns[i]
		fmt.Fprintf(b, "txn %d client %d %s %s", uint64(t.ID), t.Client, span(t.Begin, t.End, t.Outcome),
			txnOutcome(t.Outcome))
		for j := range t.Accesses {
			writeAccess(b, &t.Accesses[j])
		}
		b.WriteByte('\n')
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("history: write: %w", err)
	}
	return nil
}

func writeAccess(b *bufio.Writer, a *Access) {
	fmt.Fprintf(b, " %v %q", a.Kind, a.Key)
	switch {
	case a.Kind == ReadList:
		b.WriteString(" (")
		for _, value := range a.List {
			fmt.Fprintf(b, " %q", value)
		}
		b.WriteString(" )")
	case a.Kind == Read && a.Value == Initial:
		b.WriteString(" none")
	default:
		fmt.Fprintf(b, " %q", a.Value)
	}
}

// txnOutcome returns an outcome's name for a transaction.
func txnOutcome(o Outcome) string {
	switch o {
	case Returned:
		return "committed"
	case Failed:
		return "aborted"
	}
	return o.String()
}

func parseTxnOutcome(word string) (Outcome, error) {
	for o := Unknown; o <= Failed; o++ {
		if txnOutcome(o) == word {
			return o, nil
		}
	}
	return 0, fmt.Errorf("%q is no outcome of a transaction", word)
}

// ParseTransactions reads what WriteText or WriteJSON wrote; file is its name in errors, which also
// tell the line or the byte.
func ParseTransactions(file string, data []byte) (Transactions, error) {
	h := Transactions{Versions: make(map[string][]string)}
	var doc txnsJSON
	text, err := parse(file, txnKind, data, func(s *scanner) { scanTxnLine(s, &h) }, &doc)
	if err != nil {
		return Transactions{}, err
	}
	if !text {
		if h, err = doc.history(); err != nil {
			return Transactions{}, fmt.Errorf("history: %s: %w", file, err)
		}
	}
	return h, nil
}

func scanTxnLine(s *scanner, h *Transactions) {
	switch word := s.word(); word {
	case "versions":
		key := s.str()
		if _, ok := h.Versions[key]; ok {
			s.fail("key %q has its versions already", key)
			return
		}
		values := []string{}
		for s.more() {
			values = append(values, s.str())
		}
		h.Versions[key] = values
	case "txn":
		h.Txns = append(h.Txns, scanTxn(s))
	default:
		s.fail("%q where versions or txn should be", word)
	}
}

func scanTxn(s *scanner) Txn {
	var t Txn
	word := s.word()
	id, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		s.fail("%q is no transaction's number", word)
	}
	t.ID = TxnID(id)
	s.expect("client")
	t.Client = s.client()
	var open bool
	t.Begin, t.End, open = s.span()
	outcome := s.word()
	if s.err != nil {
		return t
	}
	if t.Outcome, err = parseTxnOutcome(outcome); err != nil {
		s.fail("%w", err)
	}
	for s.more() {
		t.Accesses = append(t.Accesses, scanAccess(s))
	}
	if s.err == nil && open != (t.Outcome == Unknown) {
		s.fail("%v has an end if and only if its outcome is not unknown", t.ID)
	}
	if err := checkTimes(t.Begin, t.End, t.Outcome); err != nil {
		s.fail("%v %w", t.ID, err)
	}
	return t
}

func scanAccess(s *scanner) Access {
	var a Access
	word := s.word()
	a.Kind = accessKind(word)
	if a.Kind == 0 {
		s.fail("%q is no access", word)
		return a
	}
	a.Key = s.str()
	switch {
	case a.Kind == ReadList:
		s.expect("(")
		for s.quoted() {
			a.List = append(a.List, s.str())
		}
		s.expect(")")
	case a.Kind == Read && !s.quoted():
		s.expect("none")
	default:
		a.Value = s.str()
	}
	if s.err == nil {
		if err := a.validate(); err != nil {
			s.fail("%v %q: %w", a.Kind, a.Key, err)
		}
	}
	return a
}

func accessKind(word string) AccessKind {
	for kind := Read; kind <= Append; kind++ {
		if kind.String() == word {
			return kind
		}
	}
	return 0
}

// txnsJSON is the JSON form of a history.
type txnsJSON struct {
	History  string              `json:"history"`
	Versions map[string][]string `json:"versions"`
	Txns     []txnJSON           `json:"txns"`
}

type txnJSON struct {
	ID       TxnID          `json:"id"`
	Client   Client         `json:"client"`
	Begin    time.Duration  `json:"begin_ns"`
	End      *time.Duration `json:"end_ns,omitempty"`
	Outcome  string         `json:"outcome"`
	Accesses []accessJSON   `json:"accesses"`
}

type accessJSON struct {
	Kind  string   `json:"kind"`
	Key   string   `json:"key"`
	Value string   `json:"value,omitempty"`
	List  []string `json:"list,omitempty"`
}

// WriteJSON writes the history as JSON. It returns an error if a key or value is not UTF-8, which
// JSON cannot tell.
func (h Transactions) WriteJSON(w io.Writer) error {
	doc := txnsJSON{History: txnKind, Versions: h.Versions, Txns: make([]txnJSON, len(h.Txns))}
	var all []string
	for key, values := range h.Versions {
		all = append(append(all, key), values...)
	}
	for i := range h.Txns {
		t := &h.Txns[i]
		j := txnJSON{ID: t.ID, Client: t.Client, Begin: t.Begin, Outcome: txnOutcome(t.Outcome),
			Accesses: make([]accessJSON, len(t.Accesses))}
		if t.Outcome != Unknown {
			j.End = &t.End
		}
		for k, a := range t.Accesses {
			j.Accesses[k] = accessJSON{Kind: a.Kind.String(), Key: a.Key, Value: a.Value, List: a.List}
			all = append(append(all, a.Key, a.Value), a.List...)
		}
		doc.Txns[i] = j
	}
	for _, s := range all {
		if !utf8.ValidString(s) {
			return fmt.Errorf("history: %q is not UTF-8: write the history as text", s)
		}
	}
	return writeJSON(w, doc)
}

func (doc txnsJSON) history() (Transactions, error) {
	h := Transactions{Versions: make(map[string][]string)}
	for key, values := range doc.Versions {
		h.Versions[key] = append([]string{}, values...)
	}
	if doc.History != txnKind {
		return h, fmt.Errorf("history: %q where %q should be", doc.History, txnKind)
	}
	for i, j := range doc.Txns {
		t := Txn{ID: j.ID, Client: j.Client, Begin: j.Begin}
		var err error
		if t.Outcome, err = parseTxnOutcome(j.Outcome); err != nil {
			return h, fmt.Errorf("txns[%d]: %w", i, err)
		}
		if (j.End == nil) != (t.Outcome == Unknown) {
			return h, fmt.Errorf("txns[%d]: it has an end_ns if and only if its outcome is not unknown", i)
		}
		if j.End != nil {
			t.End = *j.End
		}
		if err := checkTimes(t.Begin, t.End, t.Outcome); err != nil {
			return h, fmt.Errorf("txns[%d]: %w", i, err)
		}
		for k, access := range j.Accesses {
			a := Access{Kind: accessKind(access.Kind), Key: access.Key, Value: access.Value, List: access.List}
			if len(a.List) == 0 {
				a.List = nil
			}
			if err := a.validate(); err != nil {
				return h, fmt.Errorf("txns[%d].accesses[%d]: %w", i, k, err)
			}
			t.Accesses = append(t.Accesses, a)
		}
		h.Txns = append(h.Txns, t)
	}
	return h, nil
}
