package kit

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
)

// beatOfTest is the beat of a replica that has nothing to do.
type beatOfTest struct{}

// newTestLull returns the lull of replica 1 of three, which is drowsy, after what replicas 2 and 3
// have said, and what its host knows of all.
func newTestLull(t *testing.T, words ...Drowsy) (*Lull, *protocol.Env[smr.Message], map[protocol.ID]smr.Vouched) {
	t.Helper()
	const began = time.Hour
	hosts := map[protocol.ID]smr.Vouched{1: {Run: 1, At: began}, 2: {Run: 2, At: began}, 3: {Run: 3, At: began}}
	base, err := NewReplica("test", smr.ReplicaConfig{ID: 1, Members: group(1, 2, 3), Machine: &journal{},
		RoundTrip: 100 * time.Millisecond, Vouch: func(id protocol.ID) (smr.Vouched, bool) {
			v, ok := hosts[id]
			return v, ok
		}})
	if err != nil {
		t.Fatal(err)
	}
	base.Admission.admitted = true
	l := newLull(&base, LullRules{Idle: func() (uint64, bool) { return 7, true }, Beat: beatOfTest{},
		Patience: func() time.Duration { return 250 * time.Millisecond }})
	env := protocol.NewEnv[smr.Message](memory{}, 1, rand.New(rand.NewPCG(1, 1)))
	env.Now = began
	mark, _ := l.idle()
	if l.skips(env) {
		t.Error("it is drowsy although it was not idle for long")
	}
	env.Now += 3 * time.Second
	for id := range hosts {
		hosts[id] = smr.Vouched{Run: uint64(id), At: env.Now}
	}
	if !l.skips(env) || l.Is() || !l.Silent() {
		t.Fatal("it is not drowsy although it was idle for long")
	}
	for i, w := range words {
		if w.Mark == 0 {
			w.Mark = mark
		}
		l.onDrowsy(env, protocol.ID(i+2), w)
	}
	return l, env, hosts
}

// TestLullTakesAll: a replica rests when all others have said of the same state that they are
// drowsy, and their hosts are those that they were.
func TestLullTakesAll(t *testing.T) {
	for name, c := range map[string]struct {
		words []Drowsy
		rests bool
	}{
		"all":                {[]Drowsy{{Run: 2}, {Run: 3}}, true},
		"one":                {[]Drowsy{{Run: 2}}, false},
		"of another state":   {[]Drowsy{{Run: 2}, {Run: 3, Mark: 8}}, false},
		"of another run":     {[]Drowsy{{Run: 2}, {Run: 4}}, false},
		"of an earlier host": {[]Drowsy{{Run: 2}, {Run: 2}}, false},
	} {
		l, _, _ := newTestLull(t, c.words...)
		if l.Is() != c.rests {
			t.Errorf("%s: it rests: %v", name, l.Is())
		}
	}
}

// TestLullWaitsForAnswers: a member that is drowsy is silent for as long as the others' words take,
// which is longer than configured where machines are busy. Else hundreds of groups that all begin
// at once would never hear each other in time.
func TestLullWaitsForAnswers(t *testing.T) {
	l, env, _ := newTestLull(t)
	took := 4 * l.replica.Cfg.RoundTrip
	l.said, l.asked = false, 0
	l.replica.Tempo.Saw(env.Now, took)
	env.Begin(env.Now)
	if !l.skips(env) {
		t.Fatal("it is not drowsy")
	}
	i := slices.IndexFunc(env.Out, func(e protocol.Effect[smr.Message]) bool { return e.Kind == protocol.KindAfter })
	if i < 0 || env.Out[i].Timer != (beatOfTest{}) || env.Out[i].Delay <= took {
		t.Errorf("answers take %v, and of its next beat it says %+v", took, env.Out)
	}
}

// TestLullEnds: what ends a rest. The next beat comes at once.
func TestLullEnds(t *testing.T) {
	for name, c := range map[string]struct {
		does func(*Lull, *protocol.Env[smr.Message], map[protocol.ID]smr.Vouched)
		ends bool
	}{
		"a call": {func(l *Lull, env *protocol.Env[smr.Message], _ map[protocol.ID]smr.Vouched) { l.stir(env) }, true},
		"a word": {func(l *Lull, env *protocol.Env[smr.Message], _ map[protocol.ID]smr.Vouched) { l.onHeard(env, 3) }, true},
		"its own word": {func(l *Lull, env *protocol.Env[smr.Message], _ map[protocol.ID]smr.Vouched) {
			l.onHeard(env, 1)
		}, false},
		"drowsy again": {func(l *Lull, env *protocol.Env[smr.Message], _ map[protocol.ID]smr.Vouched) {
			l.onDrowsy(env, 3, Drowsy{Run: 3, Mark: l.mark})
		}, false},
		"drowsy in another state": {func(l *Lull, env *protocol.Env[smr.Message], _ map[protocol.ID]smr.Vouched) {
			l.onDrowsy(env, 3, Drowsy{Run: 3, Mark: 8})
		}, true},
		"a look": {func(l *Lull, env *protocol.Env[smr.Message], _ map[protocol.ID]smr.Vouched) { l.skips(env) }, false},
		"a silent host": {func(l *Lull, env *protocol.Env[smr.Message], hosts map[protocol.ID]smr.Vouched) {
			env.Now += time.Second
			hosts[2] = smr.Vouched{Run: 2, At: env.Now}
			l.skips(env)
		}, true},
		"a host that has begun anew": {func(l *Lull, env *protocol.Env[smr.Message], hosts map[protocol.ID]smr.Vouched) {
			hosts[2] = smr.Vouched{Run: 5, At: env.Now}
			l.skips(env)
		}, true},
	} {
		l, env, hosts := newTestLull(t, Drowsy{Run: 2}, Drowsy{Run: 3})
		if !l.Is() {
			t.Fatalf("%s: it does not rest", name)
		}
		env.Begin(env.Now)
		if c.does(l, env, hosts); l.Is() == c.ends {
			t.Errorf("%s: it rests: %v", name, l.Is())
		}
		if name == "drowsy again" {
			if sent := sentTo(env); len(sent) != 1 || sent[0].to != 3 || !sent[0].msg.(Letter).Msg.(Drowsy).Answer {
				t.Errorf("%s: it says %v; want an answer, as the other one may not have heard all", name, sent)
			}
		}
	}
}
