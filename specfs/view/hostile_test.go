package view

import (
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// lied is a view of a server that says what a test wants.
func lied(t *testing.T, system System) (*View, *Env) {
	t.Helper()
	v, err := New(Config{Server: 1, System: system, Token: 1})
	if err != nil {
		t.Fatal(err)
	}
	env := protocol.NewEnv[specfs.Message](nil, 1, nil)
	env.Begin(0)
	v.Start(env, nil)
	return v, env
}

// hellos counts the Hellos that a view has sent in this call.
func hellos(env *Env) (n int) {
	for _, e := range env.Out {
		if _, ok := e.Msg.(specfs.Hello); ok {
			n++
		}
	}
	return n
}

// TestRecordsOfLiars: records that are none are not believed, and nothing panics.
func TestRecordsOfLiars(t *testing.T) {
	for _, p := range []specfs.Part{{ID: specfs.Root}, {ID: 5}} {
		for i, w := range tree.Records(p) {
			for _, suffix := range []string{"", "x", "a/b", "12345678"} {
				v, env := lied(t, BlueFSSync())
				v.Receive(env, 1, specfs.Welcome{Token: 1, Session: 1, Trusted: true})
				key := append(append([]byte{}, w.Lo...), suffix...)
				v.Receive(env, 1, specfs.Fetched{Facts: []specfs.Fact{{
					Lo: w.Lo, Hi: w.Hi, Records: []specfs.Record{{Key: key, Value: []byte("nonsense")}},
				}}})
				if _, known := v.cache.records.Get(string(key)); known && i < 3 { // any xattr is one
					t.Errorf("key %q is believed", key)
				}
				v.Receive(env, protocol.App, Do{Op: specfs.GetAttr{ID: p.ID}})
				v.Receive(env, protocol.App, Do{Op: specfs.List{ID: p.ID, Most: 10}})
			}
		}
	}
}

// TestOneHello: however many messages a server does not know what to do with, one Hello answers.
func TestOneHello(t *testing.T) {
	v, env := lied(t, BlueFSSync())
	v.Receive(env, 1, specfs.Welcome{Token: 1, Session: 1, Trusted: true})
	env.Begin(time.Second)
	for range 9 {
		v.Receive(env, 1, specfs.Unknown{})
	}
	if n := hellos(env); n != 1 {
		t.Errorf("%d hellos", n)
	}
	env.Begin(4 * time.Second)
	v.Receive(env, 1, specfs.Notice{}) // which keeps nobody from saying it again
	v.Expire(env, retry{})
	if n := hellos(env); n != 1 {
		t.Errorf("%d hellos when the first was lost", n)
	}
}

// TestLeaseOfNothing: a lease of no time keeps nobody busy.
func TestLeaseOfNothing(t *testing.T) {
	v, env := lied(t, Callback())
	v.Receive(env, 1, specfs.Welcome{Token: 1, Session: 1, Trusted: true})
	env.Begin(time.Second)
	v.Expire(env, retry{})
	for _, e := range env.Out {
		if e.Kind == protocol.KindAfter && e.Delay <= 0 {
			t.Errorf("the timer is set to %v", e.Delay)
		}
	}
}

// TestLeaseCountsFromItsHello: a lease that a late Welcome brings counts from the Hello that it
// answers, not from a later one.
func TestLeaseCountsFromItsHello(t *testing.T) {
	v, env := lied(t, Callback())
	env.Begin(3 * time.Second)
	v.Expire(env, retry{})
	if n := hellos(env); n != 1 {
		t.Fatalf("%d hellos when the first is not answered", n)
	}
	v.Receive(env, 1, specfs.Welcome{Token: 1, Session: 1, At: 0, Lease: 8 * time.Second})
	if v.lease.until != 7*time.Second {
		t.Errorf("it is believed until %v", v.lease.until)
	}
}
