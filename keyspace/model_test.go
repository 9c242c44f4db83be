package keyspace

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/btree"

	"github.com/foresay/foresay/internal/heap"
	"github.com/foresay/foresay/internal/seed"
	"github.com/foresay/foresay/protocol"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }

// world is a node with nothing but a state, and its disk.
type world struct {
	has   btree.Map[string, string] // what is durable
	env   *protocol.Env[any]
	state *State
}

func (w *world) Get(key []byte) ([]byte, bool) {
	v, ok := w.has.Get(string(key))
	return []byte(v), ok
}

func (w *world) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		w.has.Ascend(string(lo), func(k, v string) bool {
			return (hi == nil || k < string(hi)) && yield([]byte(k), []byte(v))
		})
	}
}

func newWorld(t testing.TB) *world {
	t.Helper()
	w := &world{}
	w.restart(t)
	return w
}

// restart loses what the last call did, and opens the state anew.
func (w *world) restart(t testing.TB) {
	t.Helper()
	w.env = protocol.NewEnv[any](w, 1, nil)
	w.env.Begin(0)
	var err error
	if w.state, err = Open(w.env, "p"); err != nil {
		t.Fatal(err)
	}
	w.end()
}

// end ends a call: what it wrote becomes durable.
func (w *world) end() {
	for _, e := range w.env.Out {
		switch e.Kind {
		case protocol.KindPut:
			w.has.Set(string(e.Key), string(e.Value))
		case protocol.KindDelete:
			w.has.Delete(string(e.Key))
		}
	}
	w.env.Begin(0)
}

// contents are a key space, as plain as it can be.
type contents map[string]string

// digest is that of the contents, as DESIGN.md has it.
func (c contents) digest() Digest {
	var all []entry
	for _, k := range slices.Sorted(maps.Keys(c)) {
		all = append(all, entry{hash: sha256.Sum256([]byte(k)), value: sha256.Sum256([]byte(c[k]))})
	}
	slices.SortFunc(all, byHash)
	return naiveSum(all, 0)
}

func naiveSum(all []entry, depth int) Digest {
	if len(all) <= 32 {
		b := []byte{1}
		for _, e := range all {
			b = append(append(b, e.hash[:]...), e.value[:]...)
		}
		return sha256.Sum256(b)
	}
	b := []byte{2}
	for i := range 16 {
		var below []entry
		for _, e := range all {
			if hex.EncodeToString(e.hash[:])[depth] == "0123456789abcdef"[i] {
				below = append(below, e)
			}
		}
		b = binary.BigEndian.AppendUint64(b, uint64(len(below)))
		if len(below) == 0 {
			b = append(b, make([]byte, 32)...)
			continue
		}
		sum := naiveSum(below, depth+1)
		b = append(b, sum[:]...)
	}
	return sha256.Sum256(b)
}

// naive is what a state should be: copies of everything.
type naive struct {
	base        contents
	layers      []contents // what is seen through each
	names       []*Layer
	checkpoints map[uint64]contents
	last        uint64
}

func newNaive() *naive {
	return &naive{base: contents{}, checkpoints: map[uint64]contents{0: {}}}
}

// seen is what is seen through the uppermost of n layers.
func (n *naive) seen(layers int) contents {
	if layers == 0 {
		return n.base
	}
	return n.layers[layers-1]
}

// program plays random operations to a state and to a naive one.
type program struct {
	t   *testing.T
	rnd *rand.Rand
	w   *world
	n   *naive
	// keys of a program are few or many, short or with zeros and prefixes of each other.
	keys int
}

func (p *program) key() string {
	k := p.rnd.IntN(p.keys)
	return []string{fmt.Sprint(k), strings.Repeat("\x00", k%4), strings.Repeat("\xff", k%3), fmt.Sprint(k) + "\x00"}[k%4]
}

func (p *program) reader(layers int) Reader {
	if layers == 0 {
		return p.w.state.Committed()
	}
	return p.n.names[layers-1]
}

func (p *program) bounds() (lo, hi []byte) {
	lo, hi = []byte(p.key()), []byte(p.key())
	switch p.rnd.IntN(4) {
	case 0:
		return nil, hi
	case 1:
		return lo, nil
	}
	return lo, hi
}

// between returns the first key from lo on, or behind it, that is below hi.
func between(c contents, lo string, behind bool, hi []byte) (string, bool) {
	for _, k := range slices.Sorted(maps.Keys(c)) {
		if (k > lo || !behind && k == lo) && (hi == nil || k < string(hi)) {
			return k, true
		}
	}
	return "", false
}

// scan goes through a range of what is seen through a layer, and perhaps writes meanwhile.
func (p *program) scan(layers int, write bool) {
	lo, hi := p.bounds()
	c, at, behind, left := p.n.seen(layers), string(lo), false, p.rnd.IntN(40)
	for k, v := range p.reader(layers).Scan(lo, hi) {
		want, ok := between(c, at, behind, hi)
		if !ok || want != string(k) || c[want] != string(v) {
			p.t.Fatalf("a scan of %q to %q finds %q %q behind %q, want %q %q (%v)", lo, hi, k, v, at, want, c[want], ok)
		}
		if at, behind = want, true; write && p.rnd.IntN(2) == 0 {
			p.write()
		}
		if left--; left < 0 {
			return
		}
	}
	if k, ok := between(c, at, behind, hi); ok {
		p.t.Fatalf("a scan of %q to %q ends before %q", lo, hi, k)
	}
}

func (p *program) write() {
	n := len(p.n.names)
	if n == 0 {
		return
	}
	key := p.key()
	if p.rnd.IntN(3) == 0 {
		p.n.names[n-1].Delete([]byte(key))
		delete(p.n.layers[n-1], key)
		return
	}
	value := fmt.Sprint(p.rnd.IntN(1000))
	p.n.names[n-1].Put([]byte(key), []byte(value))
	p.n.layers[n-1][key] = value
}

func (p *program) push() {
	p.n.layers = append(p.n.layers, maps.Clone(p.n.seen(len(p.n.layers))))
	p.n.names = append(p.n.names, p.w.state.Push())
}

func (p *program) merge() {
	if len(p.n.names) > 0 {
		p.w.state.Merge()
		p.n.base, p.n.layers, p.n.names = p.n.layers[0], p.n.layers[1:], p.n.names[1:]
	}
}

func (p *program) drop(i int) {
	if i < len(p.n.names) {
		p.w.state.Drop(p.n.names[i])
		p.n.layers, p.n.names = p.n.layers[:i], p.n.names[:i]
	}
}

func (p *program) checkpoint() {
	p.n.last += 1 + uint64(p.rnd.IntN(300))
	p.n.checkpoints[p.n.last] = maps.Clone(p.n.base)
	if got, want := p.w.state.Checkpoint(p.n.last), p.n.base.digest(); got != want {
		p.t.Fatalf("checkpoint %d has the digest %v, want %v of %d keys", p.n.last, got, want, len(p.n.base))
	}
}

func (p *program) release() {
	numbers := slices.Sorted(maps.Keys(p.n.checkpoints))
	before := numbers[p.rnd.IntN(len(numbers))] + uint64(p.rnd.IntN(2))
	p.w.state.Release(before)
	for _, n := range numbers[:len(numbers)-1] {
		if n < before {
			delete(p.n.checkpoints, n)
		}
	}
}

func (p *program) moments() {
	if got, want := p.w.state.Checkpoints(), slices.Sorted(maps.Keys(p.n.checkpoints)); !slices.Equal(got, want) {
		p.t.Fatalf("checkpoints %d, want %d", got, want)
	}
	for _, n := range p.w.state.Checkpoints() {
		m, ok := p.w.state.At(n)
		c := p.n.checkpoints[n]
		if !ok || m.Keys() != uint64(len(c)) {
			p.t.Fatalf("checkpoint %d has %d keys, want %d", n, m.Keys(), len(c))
		}
		if m.Digest() != c.digest() {
			p.t.Fatalf("checkpoint %d has another digest now", n)
		}
		for range 5 {
			key := p.key()
			v, ok := m.Get([]byte(key))
			if want, there := c[key]; ok != there || string(v) != want {
				p.t.Fatalf("in checkpoint %d %q is %q (%v), want %q (%v)", n, key, v, ok, want, there)
			}
		}
	}
	if _, ok := p.w.state.At(p.n.last + 1); ok {
		p.t.Fatal("there is a checkpoint that nobody made")
	}
}

// crash restarts the node between two calls.
func (p *program) crash() {
	p.w.end()
	p.w.restart(p.t)
	p.n.layers, p.n.names = nil, nil
}

// step makes a random operation.
func (p *program) step() {
	layers := p.rnd.IntN(len(p.n.layers) + 1)
	switch p.rnd.IntN(20) {
	case 0, 1, 2, 3, 4, 5:
		p.write()
	case 6, 7:
		key := p.key()
		v, ok := p.reader(layers).Get([]byte(key))
		if want, there := p.n.seen(layers)[key]; ok != there || string(v) != want {
			p.t.Fatalf("through %d layers %q is %q (%v), want %q (%v)", layers, key, v, ok, want, there)
		}
	case 8:
		p.scan(layers, false)
	case 9:
		p.scan(len(p.n.layers), true)
	case 10, 11, 12:
		p.push()
	case 13, 14, 15:
		p.merge()
	case 16:
		p.drop(layers)
	case 17:
		p.checkpoint()
	case 18:
		p.release()
	case 19:
		p.moments()
	}
	switch p.rnd.IntN(20) {
	case 0, 1, 2, 3, 4:
		p.w.end()
	case 5:
		if p.rnd.IntN(4) == 0 {
			p.crash()
		}
	}
}

func newProgram(t *testing.T, s uint64) *program {
	rnd := rand.New(rand.NewPCG(s, 1))
	return &program{t: t, rnd: rnd, w: newWorld(t), n: newNaive(), keys: []int{5, 100, 400}[rnd.IntN(3)]}
}

// TestModel plays random programs, in which the node crashes after some calls, to a state and to
// copies of everything.
func TestModel(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 100)); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			p := newProgram(t, s)
			for range 800 {
				p.step()
			}
			p.moments()
		})
	}
}

// TestHistoryDoesNotMatter: keys that come one by one and go again leave the digest of those that
// are there.
func TestHistoryDoesNotMatter(t *testing.T) {
	p := newProgram(t, 1)
	change := func(f func(l *Layer)) {
		l := p.w.state.Push()
		f(l)
		p.w.state.Merge()
		p.n.base = all(p.w.state)
		p.checkpoint()
		p.w.end()
	}
	for i := range 3 * maxBucket {
		change(func(l *Layer) { l.Put(fmt.Append(nil, i), nil) })
	}
	for i := range 3 * maxBucket {
		change(func(l *Layer) { l.Delete(fmt.Append(nil, i)) })
	}
	if m, _ := p.w.state.At(p.n.last); m.Digest() != Empty() {
		t.Errorf("without keys the digest is %v", m.Digest())
	}
}
