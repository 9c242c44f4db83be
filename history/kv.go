package history

import (
	"fmt"
	"strconv"
)

// KVKind is what an operation on a key-value store does.
type KVKind uint8

const (
	// KVGet returns the value, and whether there is one.
	KVGet KVKind = iota + 1
	// KVPut sets the value.
	KVPut
	// KVAppend adds to the end of the value; without a value it sets it.
	KVAppend
	// KVCAS sets the value if the present one is as expected, and returns whether it did.
	KVCAS
	// KVDelete removes the value, if there is one.
	KVDelete
)

// String returns the kind's name in the text form of a history.
func (k KVKind) String() string {
	switch k {
	case KVGet:
		return "get"
	case KVPut:
		return "put"
	case KVAppend:
		return "append"
	case KVCAS:
		return "cas"
	case KVDelete:
		return "delete"
	}
	return fmt.Sprintf("KVKind(%d)", uint8(k))
}

// KVState is the state of one key.
type KVState struct {
	Value string
	Found bool // there is a value
}

// KVInput is what a client asks of a key-value store.
type KVInput struct {
	Kind   KVKind
	Key    string
	Value  string  // Put, Append and CAS: what to write
	Expect KVState // CAS: what must be there
}

// KVOutput is what a key-value store answers.
type KVOutput struct {
	State   KVState // Get: what is there
	Swapped bool    // CAS: the value was as expected
}

// KVOp is an operation on a key-value store.
type KVOp = Op[KVInput, KVOutput]

// KV is a history of a key-value store, of which each key is a register.
type KV []KVOp

// KVModel returns the model of a key-value store in which no key has a value at first.
//
// It simplifies before it searches: in keys with nothing but Get, Put and Delete, a Put without an
// answer whose value nobody read is left out, and one whose value was read is taken to have
// happened before that.
func KVModel() Model[KVState, KVInput, KVOutput] {
	return Model[KVState, KVInput, KVOutput]{
		Init:          func() KVState { return KVState{} },
		Step:          stepKV,
		Partition:     func(input KVInput) string { return input.Key },
		Hash:          hashOf[KVState](),
		ReadOnly:      func(input KVInput) bool { return input.Kind == KVGet },
		Simplify:      simplifyKV,
		Explains:      explainsKV,
		Describe:      describeKV,
		DescribeState: KVState.String,
	}
}

func stepKV(state KVState, input KVInput, output *KVOutput) (KVState, bool) {
	switch input.Kind {
	case KVGet:
		return state, output == nil || output.State == state
	case KVPut:
		return KVState{Value: input.Value, Found: true}, true
	case KVAppend:
		return KVState{Value: state.Value + input.Value, Found: true}, true
	case KVCAS:
		swap := state == input.Expect
		if output != nil && output.Swapped != swap {
			return state, false
		}
		if swap {
			state = KVState{Value: input.Value, Found: true}
		}
		return state, true
	case KVDelete:
		return KVState{}, true
	}
	return state, false
}

// String returns the value between quotation marks, or none.
func (s KVState) String() string {
	if !s.Found {
		return "none"
	}
	return strconv.Quote(s.Value)
}

// describeKV returns an operation as in the text form of a history, less the client and the times.
func describeKV(op KVOp) string {
	text := fmt.Sprintf("%v %q", op.Input.Kind, op.Input.Key)
	switch op.Input.Kind {
	case KVPut, KVAppend:
		text += fmt.Sprintf(" %q", op.Input.Value)
	case KVCAS:
		text += fmt.Sprintf(" %v %q", op.Input.Expect, op.Input.Value)
	}
	return text + " " + describeKVOutput(op)
}

func describeKVOutput(op KVOp) string {
	switch {
	case op.Outcome != Returned:
		return op.Outcome.String()
	case op.Input.Kind == KVGet:
		return op.Output.State.String()
	case op.Input.Kind == KVCAS && op.Output.Swapped:
		return "swapped"
	case op.Input.Kind == KVCAS:
		return "kept"
	}
	return "ok"
}
