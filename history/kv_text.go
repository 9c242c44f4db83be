package history

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"time"
	"unicode/utf8"
)

const kvKind = "kv"

// WriteText writes the history as text, an operation to a line:
//
//	history kv
//	op client 1 1ms..3ms put "x" "1" ok
//	op client 1 4ms..? append "x" "2" unknown
//	op client 2 2ms..3ms get "x" "1"
//	op client 2 5ms..6ms get "y" none
//	op client 2 7ms..8ms cas "x" "1" "3" swapped
//	op client 3 7ms..8ms cas "y" none "3" kept
//	op client 3 9ms..10ms delete "y" failed
//
// Blank lines and lines that begin with # mean nothing.
func (h KV) WriteText(w io.Writer) error {
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, "history %s\n", kvKind)
	for _, op := range h {
		fmt.Fprintf(b, "op client %d %s %s\n", op.Client, span(op.Call, op.Return, op.Outcome), describeKV(op))
	}
	if err := b.Flush(); err != nil {
		return fmt.Errorf("history: write: %w", err)
	}
	return nil
}

// ParseKV reads what WriteText or WriteJSON wrote; file is its name in errors, which also tell the
// line or the byte.
func ParseKV(file string, data []byte) (KV, error) {
	var h KV
	var doc kvJSON
	text, err := parse(file, kvKind, data, func(s *scanner) { h = append(h, scanKV(s)) }, &doc)
	switch {
	case err != nil:
		return nil, err
	case text:
		return h, nil
	}
	return doc.history(file)
}

func scanKV(s *scanner) KVOp {
	s.expect("op")
	s.expect("client")
	op := KVOp{Client: s.client()}
	var open bool
	op.Call, op.Return, open = s.span()
	word := s.word()
	for kind := KVGet; kind <= KVDelete; kind++ {
		if kind.String() == word {
			op.Input.Kind = kind
		}
	}
	if s.err == nil && op.Input.Kind == 0 {
		s.fail("%q is no operation on a key-value store", word)
	}
	op.Input.Key = s.str()
	if op.Input.Kind == KVCAS {
		op.Input.Expect = scanKVState(s)
	}
	if kind := op.Input.Kind; kind == KVPut || kind == KVAppend || kind == KVCAS {
		op.Input.Value = s.str()
	}
	scanKVOutput(s, &op)
	if s.err != nil {
		return KVOp{}
	}
	if open != (op.Outcome == Unknown) {
		s.fail("an operation has an end if and only if its outcome is not unknown")
	}
	if err := checkTimes(op.Call, op.Return, op.Outcome); err != nil {
		s.fail("the operation %w", err)
	}
	return op
}

func scanKVOutput(s *scanner, op *KVOp) {
	op.Outcome = Returned
	if s.quoted() {
		op.Output.State = scanKVState(s)
		if op.Input.Kind != KVGet {
			s.fail("%v returns no value", op.Input.Kind)
		}
		return
	}
	switch word := s.word(); {
	case word == "unknown":
		op.Outcome = Unknown
	case word == "failed":
		op.Outcome = Failed
	case op.Input.Kind == KVGet && word == "none":
	case op.Input.Kind == KVCAS && word == "swapped":
		op.Output.Swapped = true
	case op.Input.Kind == KVCAS && word == "kept":
	case op.Input.Kind != KVGet && op.Input.Kind != KVCAS && word == "ok":
	default:
		s.fail("%q is no outcome of %v", word, op.Input.Kind)
	}
}

func scanKVState(s *scanner) KVState {
	if s.quoted() {
		return KVState{Value: s.str(), Found: true}
	}
	s.expect("none")
	return KVState{}
}

// kvJSON is the JSON form of a history.
type kvJSON struct {
	History string     `json:"history"`
	Ops     []kvOpJSON `json:"ops"`
}

type kvOpJSON struct {
	Client  Client         `json:"client"`
	Call    time.Duration  `json:"call_ns"`
	Return  *time.Duration `json:"return_ns,omitempty"`
	Op      string         `json:"op"`
	Key     string         `json:"key"`
	Value   string         `json:"value,omitempty"`
	Expect  *string        `json:"expect,omitempty"`
	Outcome string         `json:"outcome"`
	Read    *string        `json:"read,omitempty"`
	Swapped bool           `json:"swapped,omitempty"`
}

// WriteJSON writes the history as JSON. It returns an error if a key or value is not UTF-8, which
// JSON cannot tell.
func (h KV) WriteJSON(w io.Writer) error {
	doc := kvJSON{History: kvKind, Ops: make([]kvOpJSON, len(h))}
	for i, op := range h {
		for _, s := range []string{op.Input.Key, op.Input.Value, op.Input.Expect.Value, op.Output.State.Value} {
			if !utf8.ValidString(s) {
				return fmt.Errorf("history: operation %d of client %d: %q is not UTF-8: write the history as text", i, op.Client, s)
			}
		}
		j := kvOpJSON{
			Client: op.Client, Call: op.Call, Op: op.Input.Kind.String(), Key: op.Input.Key, Value: op.Input.Value,
			Expect: stateJSON(op.Input.Expect), Outcome: op.Outcome.String(),
			Read: stateJSON(op.Output.State), Swapped: op.Output.Swapped,
		}
		if op.Outcome != Unknown {
			j.Return = &op.Return
		}
		doc.Ops[i] = j
	}
	return writeJSON(w, doc)
}

func writeJSON(w io.Writer, doc any) error {
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "\t")
	if err := encoder.Encode(doc); err != nil {
		return fmt.Errorf("history: write: %w", err)
	}
	return nil
}

func stateJSON(s KVState) *string {
	if !s.Found {
		return nil
	}
	return &s.Value
}

func (doc kvJSON) history(file string) (KV, error) {
	if doc.History != kvKind {
		return nil, fmt.Errorf("history: %s: history: %q where %q should be", file, doc.History, kvKind)
	}
	var h KV
	for i, j := range doc.Ops {
		// One grammar: what would not be read as text is not read as JSON either.
		op := KVOp{Client: j.Client, Call: j.Call, Input: KVInput{Key: j.Key, Value: j.Value}}
		for kind := KVGet; kind <= KVDelete; kind++ {
			if kind.String() == j.Op {
				op.Input.Kind = kind
			}
		}
		outcome, err := parseOutcome(j.Outcome)
		if j.Return != nil {
			op.Return = *j.Return
		}
		if j.Expect != nil {
			op.Input.Expect = KVState{Value: *j.Expect, Found: true}
		}
		if j.Read != nil {
			op.Output.State = KVState{Value: *j.Read, Found: true}
		}
		op.Outcome, op.Output.Swapped = outcome, j.Swapped
		switch {
		case err != nil:
		case op.Input.Kind == 0:
			err = fmt.Errorf("%q is no operation on a key-value store", j.Op)
		case (j.Return == nil) != (outcome == Unknown):
			err = fmt.Errorf("it has a return_ns if and only if its outcome is not unknown")
		case op != plainKV(op):
			err = fmt.Errorf("%v has a field that it cannot have", op.Input.Kind)
		default:
			err = checkTimes(op.Call, op.Return, outcome)
		}
		if err != nil {
			return nil, fmt.Errorf("history: %s: ops[%d]: %w", file, i, err)
		}
		h = append(h, op)
	}
	return h, nil
}

func parseOutcome(word string) (Outcome, error) {
	for o := Unknown; o <= Failed; o++ {
		if o.String() == word {
			return o, nil
		}
	}
	return 0, fmt.Errorf("%q is no outcome", word)
}

// plainKV returns op without what an operation of its kind and outcome does not have.
func plainKV(op KVOp) KVOp {
	if kind := op.Input.Kind; kind == KVGet || kind == KVDelete {
		op.Input.Value = ""
	}
	if op.Input.Kind != KVCAS {
		op.Input.Expect = KVState{}
		op.Output.Swapped = false
	}
	if op.Input.Kind != KVGet {
		op.Output.State = KVState{}
	}
	if op.Outcome != Returned {
		op.Output = KVOutput{}
	}
	if op.Outcome == Unknown {
		op.Return = 0
	}
	return op
}
