package protocol_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
)

func TestEffects(t *testing.T) {
	type timer struct{ n int }
	env := protocol.NewEnv[string](nil, 5, nil)
	env.Begin(time.Minute)
	if env.Now != time.Minute || env.NextIndex() != 5 || len(env.Out) != 0 {
		t.Errorf("now %v, next %d, out %v", env.Now, env.NextIndex(), env.Out)
	}
	if i, j := env.Append("a"), env.Append("b"); i != 5 || j != 6 || env.NextIndex() != 7 {
		t.Errorf("indices %d, %d, next %d", i, j, env.NextIndex())
	}
	env.Truncate(7) // all of it
	env.Put([]byte("k"), []byte("v"))
	env.Delete([]byte("k"))
	env.Send(2, "m")
	env.SendAhead(protocol.App, "n")
	env.After(-time.Second, timer{1})
	env.After(time.Second, timer{2})
	env.Stop(timer{1})
	want := []protocol.Effect[string]{
		{Kind: protocol.KindAppend, Index: 5, Msg: "a"},
		{Kind: protocol.KindAppend, Index: 6, Msg: "b"},
		{Kind: protocol.KindTruncate, Index: 7},
		{Kind: protocol.KindPut, Key: []byte("k"), Value: []byte("v")},
		{Kind: protocol.KindDelete, Key: []byte("k")},
		{Kind: protocol.KindSend, To: 2, Msg: "m"},
		{Kind: protocol.KindSendAhead, To: protocol.App, Msg: "n"},
		{Kind: protocol.KindAfter, Timer: timer{1}},
		{Kind: protocol.KindAfter, Timer: timer{2}, Delay: time.Second},
		{Kind: protocol.KindStop, Timer: timer{1}},
	}
	if !reflect.DeepEqual(env.Out, want) {
		t.Errorf("got\n%+v, want\n%+v", env.Out, want)
	}
	for i, e := range env.Out {
		if e.Kind.Durable() != (i < 5) {
			t.Errorf("effect %d: durable is %v", i, e.Kind.Durable())
		}
	}
	kept := env.Out[:1]
	env.Begin(0)
	if len(env.Out) != 0 || env.NextIndex() != 7 {
		t.Errorf("the next call begins with %v, index %d", env.Out, env.NextIndex())
	}
	if kept[0].Msg != "" {
		t.Error("what was sent is kept alive")
	}
	if got := protocol.NewEnv[string](nil, 0, nil).NextIndex(); got != 1 {
		t.Errorf("a new log begins at %d", got)
	}
}

func TestTruncateBeyondTheEndPanics(t *testing.T) {
	env := protocol.NewEnv[string](nil, 1, nil)
	env.Begin(0)
	env.Append("a")
	defer func() {
		if r := recover(); r != "protocol: truncate before 3, beyond the log's end at 2" {
			t.Errorf("recovered %v", r)
		}
	}()
	env.Truncate(3)
}
