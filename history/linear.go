package history

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// CheckLinearizable reports whether ops are linearizable [Herlihy and Wing, 1990]: whether the
// operations that returned, and some of those with unknown outcome, can be put in an order that the
// model allows and that has each operation between its call and its return. Operations that failed
// have no part in it.
//
// The search takes exponential time at worst. It ends when timeout has passed, then with the
// verdict Undecided; if timeout is not positive, it ends when it ends. What makes it hard is many
// clients and many unknown outcomes in one part. Time is the wall clock's: in a testing/synctest
// bubble, where that stands still, a timeout never comes.
//
// The error tells of operations that make no sense and of a model that lacks a function.
func CheckLinearizable[S, I, O any](
	ops []Op[I, O], model Model[S, I, O], timeout time.Duration,
) (Linearizability, error) {
	if model.Init == nil || model.Step == nil {
		return Linearizability{}, errors.New("history: the model has no Init or no Step")
	}
	for i, op := range ops {
		if err := checkTimes(op.Call, op.Return, op.Outcome); err != nil {
			return Linearizability{}, fmt.Errorf("history: operation %d of client %d: %w", i, op.Client, err)
		}
	}
	c := linearChecker[S, I, O]{model}
	parts := c.parts(ops)
	verdict, bad := c.search(parts, timeout)
	if verdict != Violation {
		return Linearizability{Verdict: verdict, draw: c.drawing(parts, timeout)}, nil
	}
	return c.explain(parts[bad]), nil
}

// linearChecker puts porcupine to work on a model of ours.
type linearChecker[S, I, O any] struct {
	model Model[S, I, O]
}

// part is the operations on one part of an object, in the order of their calls, less those that
// constrain nothing.
type part[I, O any] struct {
	name string
	ops  []Op[I, O]
}

func (c linearChecker[S, I, O]) parts(ops []Op[I, O]) []part[I, O] {
	var parts []part[I, O]
	index := make(map[string]int)
	for _, op := range ops {
		if op.Outcome == Failed {
			continue
		}
		name := ""
		if c.model.Partition != nil {
			name = c.model.Partition(op.Input)
		}
		i, ok := index[name]
		if !ok {
			i = len(parts)
			index[name] = i
			parts = append(parts, part[I, O]{name: name})
		}
		if op.Outcome == Returned || !c.readOnly(op) {
			parts[i].ops = append(parts[i].ops, op)
		}
	}
	for _, p := range parts {
		slices.SortStableFunc(p.ops, func(a, b Op[I, O]) int { return cmp.Compare(a.Call, b.Call) })
	}
	slices.SortFunc(parts, func(a, b part[I, O]) int { return cmp.Compare(a.name, b.name) })
	return parts
}

func (c linearChecker[S, I, O]) readOnly(op Op[I, O]) bool {
	return c.model.ReadOnly != nil && c.model.ReadOnly(op.Input)
}

// search looks for a part that is not linearizable, one part after the other so that the first in
// order is found. The first round gives each part an equal share of half the time; the second, to
// those that need it, shares of the rest. So one hard part does not hide the violation in another.
func (c linearChecker[S, I, O]) search(parts []part[I, O], timeout time.Duration) (verdict Verdict, bad int) {
	start := time.Now()
	hard := make([]int, len(parts))
	for i := range hard {
		hard[i] = i
	}
	for round := 0; round < 2 && len(hard) > 0; round++ {
		var harder []int
		for done, i := range hard {
			limit := time.Duration(0)
			switch left := timeout - time.Since(start); {
			case timeout <= 0:
			case round == 0:
				limit = max(1, timeout/2/time.Duration(len(parts)))
			default:
				limit = max(1, left/time.Duration(len(hard)-done))
			}
			switch c.decide(parts[i].ops, limit) {
			case Violation:
				return Violation, i
			case Undecided:
				harder = append(harder, i)
			}
		}
		hard = harder
	}
	if len(hard) > 0 {
		return Undecided, 0
	}
	return OK, 0
}

// decide reports whether the operations of one part are linearizable. No limit is 0.
func (c linearChecker[S, I, O]) decide(ops []Op[I, O], limit time.Duration) Verdict {
	if c.model.Simplify != nil {
		ops = c.model.Simplify(ops)
	}
	switch porcupine.CheckOperationsTimeout(c.porcupineModel(), porcupineOps(ops), limit) {
	case porcupine.Ok:
		return OK
	case porcupine.Illegal:
		return Violation
	}
	return Undecided
}

func (c linearChecker[S, I, O]) porcupineModel() porcupine.Model {
	m := porcupine.Model{
		Init: func() any { return c.model.Init() },
		Step: func(state, input, _ any) (bool, any) {
			next, ok := c.step(state.(S), input.(*Op[I, O]))
			return ok, next
		},
		DescribeOperation: func(input, _ any) string { return c.describe(*input.(*Op[I, O])) },
		DescribeState:     func(state any) string { return c.describeState(state.(S)) },
	}
	if equal := c.model.Equal; equal != nil {
		m.Equal = func(a, b any) bool { return equal(a.(S), b.(S)) }
	}
	if hash := c.model.Hash; hash != nil {
		m.Hash = func(state any) uint64 { return hash(state.(S)) }
	}
	return m
}

// step applies an operation. One with unknown outcome that cannot take effect does not: that it
// took none is always possible, and the search may put it last, where nobody sees it.
func (c linearChecker[S, I, O]) step(state S, op *Op[I, O]) (S, bool) {
	if op.Outcome == Returned {
		return c.model.Step(state, op.Input, &op.Output)
	}
	if next, ok := c.model.Step(state, op.Input, nil); ok {
		return next, true
	}
	return state, true
}

// porcupineOps translates operations. Each is its own input. Those with unknown outcome return
// after all others; what the client does next is drawn as another client's.
func porcupineOps[I, O any](ops []Op[I, O]) []porcupine.Operation {
	last := int64(math.MinInt64)
	for _, op := range ops {
		last = max(last, int64(op.Call))
		if op.Outcome == Returned {
			last = max(last, int64(op.Return))
		}
	}
	if last < math.MaxInt64 {
		last++
	}
	rows, count := make(map[Client]int), 0
	translated := make([]porcupine.Operation, len(ops))
	for i := range ops {
		op := &ops[i]
		row, ok := rows[op.Client]
		if !ok {
			row = count
			rows[op.Client] = row
			count++
		}
		ret := int64(op.Return)
		if op.Outcome != Returned {
			ret = last
			delete(rows, op.Client)
		}
		translated[i] = porcupine.Operation{ClientId: row, Input: op, Call: int64(op.Call), Return: ret}
	}
	return translated
}

func (c linearChecker[S, I, O]) describe(op Op[I, O]) string {
	switch {
	case c.model.Describe != nil:
		return c.model.Describe(op)
	case op.Outcome != Returned:
		return fmt.Sprintf("%v %v", op.Input, op.Outcome)
	}
	return fmt.Sprintf("%v returned %v", op.Input, op.Output)
}

func (c linearChecker[S, I, O]) describeState(state S) string {
	if c.model.DescribeState != nil {
		return c.model.DescribeState(state)
	}
	return fmt.Sprint(state)
}
