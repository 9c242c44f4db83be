package history

// kvWriters counts a key's operations that write each value, and finds one of each.
type kvWriters struct {
	count map[string]int
	index map[string]int
}

// plainWriters returns the writers of a key with nothing but Get, Put and Delete: there, a read
// that returns a value returns what some Put wrote. Otherwise it returns false.
func plainWriters(ops []KVOp) (kvWriters, bool) {
	w := kvWriters{count: make(map[string]int), index: make(map[string]int)}
	for i, op := range ops {
		switch op.Input.Kind {
		case KVPut:
			w.count[op.Input.Value]++
			w.index[op.Input.Value] = i
		case KVGet, KVDelete:
		default:
			return kvWriters{}, false
		}
	}
	return w, true
}

// simplifyKV leaves out Puts without an answer whose value nobody read. That is sound: no read lies
// between such a Put and the next write, so the rest is linearizable with it if and only if it is
// without. And it gives a Put without an answer, the only one of its value, the first return of a
// read of that value for its own: it took effect before.
func simplifyKV(ops []KVOp) []KVOp {
	writers, plain := plainWriters(ops)
	if !plain {
		return ops
	}
	firstRead := make(map[string]KVOp)
	for _, op := range ops {
		if op.Input.Kind != KVGet || op.Outcome != Returned || !op.Output.State.Found {
			continue
		}
		value := op.Output.State.Value
		if first, ok := firstRead[value]; !ok || op.Return < first.Return {
			firstRead[value] = op
		}
	}
	var simple []KVOp
	for _, op := range ops {
		if op.Input.Kind == KVPut && op.Outcome == Unknown {
			read, seen := firstRead[op.Input.Value]
			switch {
			case !seen:
				continue
			case writers.count[op.Input.Value] == 1 && read.Return >= op.Call:
				op.Return, op.Outcome = read.Return, Returned
			}
		}
		simple = append(simple, op)
	}
	return simple
}

// explainsKV reports whether some hold every writer of what they read. Then what is left out only
// comes between: if all is linearizable, leave the rest out of that order, and each read still
// follows the write that it read.
func explainsKV(some, all []KVOp) bool {
	writers, plain := plainWriters(all)
	if !plain {
		return countWrites(some) == countWrites(all)
	}
	kept, _ := plainWriters(some)
	deletes := countDeletes(some) == countDeletes(all)
	for _, op := range some {
		if op.Input.Kind != KVGet || op.Outcome != Returned {
			continue
		}
		state := op.Output.State
		if !state.Found && !deletes || state.Found && kept.count[state.Value] != writers.count[state.Value] {
			return false
		}
	}
	return true
}

func countWrites(ops []KVOp) int {
	n := 0
	for _, op := range ops {
		if op.Input.Kind != KVGet {
			n++
		}
	}
	return n
}

func countDeletes(ops []KVOp) int {
	n := 0
	for _, op := range ops {
		if op.Input.Kind == KVDelete {
			n++
		}
	}
	return n
}
