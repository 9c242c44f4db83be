package protocol_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
)

// wrapped is a message or a timer of an outer node that holds one of an inner node.
type wrapped struct {
	by    string
	inner any
}

func embedding[N any](by string, prefix []byte) *protocol.Embedding[any, N] {
	return &protocol.Embedding[any, N]{
		Message: func(n N) any { return wrapped{by, n} },
		Timer:   func(t protocol.Timer) protocol.Timer { return wrapped{by, t} },
		Prefix:  prefix,
	}
}

func TestEmbeddedEffects(t *testing.T) {
	b := embedding[string]("b", []byte("p/"))
	var told []string
	b.App = func(env *protocol.Env[any], msg string) { told = append(told, msg) }
	b.Truncate = func(env *protocol.Env[any], before uint64) { env.Truncate(before - 1) }
	rnd := rand.New(rand.NewPCG(1, 1))
	outer := protocol.NewEnv[any](nil, 10, rnd)
	outer.Begin(time.Minute)
	outer.Append("the outer node's")
	b.Call(outer, func(env *protocol.Env[string]) {
		if env.Now != time.Minute || env.Rand != rnd || env.NextIndex() != 11 {
			t.Errorf("now %v, rand %v, next %d", env.Now, env.Rand, env.NextIndex())
		}
		env.Send(2, "m")
		if i := env.Append("r"); i != 11 {
			t.Errorf("index %d", i)
		}
		env.Truncate(3)
		env.SendAhead(3, "n")
		env.SendUnhurried(4, "u")
		env.Send(protocol.App, "x")
		env.SendAhead(protocol.App, "y")
		env.Put([]byte("k"), []byte("v"))
		env.Delete([]byte("l"))
		env.After(time.Second, 1)
		env.Stop(2)
		env.Truncate(8)
		env.Truncate(5)
	})
	b.Call(outer, func(env *protocol.Env[string]) {
		if i := env.Append("s"); i != 12 {
			t.Errorf("index %d", i)
		}
	})
	want := []protocol.Effect[any]{
		{Kind: protocol.KindAppend, Index: 10, Msg: "the outer node's"},
		{Kind: protocol.KindSend, To: 2, Msg: wrapped{"b", "m"}},
		{Kind: protocol.KindAppend, Index: 11, Msg: wrapped{"b", "r"}},
		{Kind: protocol.KindSendAhead, To: 3, Msg: wrapped{"b", "n"}},
		{Kind: protocol.KindSend, To: 4, Msg: wrapped{"b", "u"}, Unhurried: true},
		{Kind: protocol.KindPut, Key: []byte("p/k"), Value: []byte("v")},
		{Kind: protocol.KindDelete, Key: []byte("p/l")},
		{Kind: protocol.KindAfter, Timer: wrapped{"b", 1}, Delay: time.Second},
		{Kind: protocol.KindStop, Timer: wrapped{"b", 2}},
		{Kind: protocol.KindTruncate, Index: 7},
		{Kind: protocol.KindAppend, Index: 12, Msg: wrapped{"b", "s"}},
	}
	if !reflect.DeepEqual(outer.Out, want) {
		t.Errorf("got\n%+v, want\n%+v", outer.Out, want)
	}
	if got := strings.Join(told, " "); got != "x y" {
		t.Errorf("the application got %q", got)
	}
}

// TestNobodyListens leaves out what may be left out.
func TestNobodyListens(t *testing.T) {
	b := embedding[string]("b", nil)
	outer := protocol.NewEnv[any](nil, 10, nil)
	outer.Begin(0)
	b.Call(outer, func(env *protocol.Env[string]) {
		env.Send(protocol.App, "x")
		env.SendAhead(protocol.App, "x")
		env.Truncate(3)
	})
	if len(outer.Out) != 0 {
		t.Errorf("got %+v", outer.Out)
	}
}

// TestAppCallsBack has the application answer what the inner node tells it: the order of what the
// inner node sent is kept, and the indices of its records are right.
func TestAppCallsBack(t *testing.T) {
	b := embedding[int]("b", nil)
	var got []int
	b.App = func(outer *protocol.Env[any], n int) {
		got = append(got, n)
		if n >= 10 {
			return
		}
		outer.Append("between")
		b.Call(outer, func(env *protocol.Env[int]) {
			if i := env.Append(n); i != outer.NextIndex() {
				t.Errorf("index %d, want %d", i, outer.NextIndex())
			}
			env.Send(protocol.App, 10+n)
		})
	}
	outer := protocol.NewEnv[any](nil, 1, nil)
	for range 2 {
		got = nil
		outer.Begin(0)
		b.Call(outer, func(env *protocol.Env[int]) {
			for n := range 3 {
				env.Send(protocol.App, n)
			}
		})
		if want := []int{0, 1, 2, 10, 11, 12}; !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
		if len(outer.Out) != 6 {
			t.Errorf("the effects are %+v", outer.Out)
		}
	}
}

// TestEmbeddedKeys runs random calls of two nodes side by side in one, one of them with a third one
// in it, against a map for each of them.
func TestEmbeddedKeys(t *testing.T) {
	prefixes := [][]byte{{0}, {'a'}, {'a', 0xff}, {0xff}, {0xff, 0xff}}
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		runner := naiveKeys{}
		env := protocol.NewEnv[any](runner, 1, rnd)
		left, right := []byte{1}, []byte{2}
		if rnd.IntN(2) == 0 {
			left, right = []byte{'x', 0xff}, []byte{0xff, 0xff}
		}
		inner := prefixes[rnd.IntN(len(prefixes))]
		embeds := []*protocol.Embedding[any, any]{embedding[any]("left", left), embedding[any]("right", right),
			embedding[any]("inner", inner)}
		models := []naiveKeys{{}, {}, {}}
		for call := range 20 {
			env.Begin(0)
			for range rnd.IntN(4) {
				work := func(which int) func(env *protocol.Env[any]) {
					return func(env *protocol.Env[any]) {
						for op := range rnd.IntN(8) {
							key := randomKey(rnd)
							if which == 1 {
								key = append([]byte{'r'}, key...) // beside the inner node's
							}
							if rnd.IntN(3) > 0 {
								value := fmt.Sprint(call, ".", op)
								env.Put(key, []byte(value))
								models[which][string(key)] = value
							} else {
								env.Delete(key)
								delete(models[which], string(key))
							}
							if which != 1 {
								compare(t, env, models[which], rnd)
							}
						}
					}
				}
				switch rnd.IntN(3) {
				case 0:
					embeds[0].Call(env, work(0))
				case 1:
					embeds[1].Call(env, work(1))
				case 2:
					embeds[1].Call(env, func(env *protocol.Env[any]) { embeds[2].Call(env, work(2)) })
				}
			}
			carryOut(runner, env.Out)
		}
		want := naiveKeys{}
		for i, at := range [][]byte{left, right, slices.Concat(right, inner)} {
			for k, v := range models[i] {
				want[string(at)+k] = v
			}
		}
		if !reflect.DeepEqual(runner, want) {
			t.Fatalf("seed %d: the keys are %q, want %q", seed, runner, want)
		}
	}
}
