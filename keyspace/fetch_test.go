package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/foresay/foresay/internal/seed"
)

// fill makes so many random writes.
func (p *program) fill(writes int) {
	p.drop(0)
	p.push()
	for range writes {
		p.write()
	}
	p.merge()
	p.w.end()
}

// all returns the committed contents.
func all(s *State) contents {
	c := contents{}
	for k, v := range s.Committed().Scan(nil, nil) {
		c[string(k)] = string(v)
	}
	return c
}

// transfer is a fetch by one program from another.
type transfer struct {
	from, to *program
	rnd      *rand.Rand
	number   uint64 // of the checkpoint
	fetch    *Fetch
	asked    []Want
	pages    int
}

func (x *transfer) begin() {
	x.number = x.from.n.last
	if n, root, ok := x.to.w.state.Fetching(); ok && x.rnd.IntN(2) == 0 {
		x.number = n // the same again, as after a crash
		if m, there := x.from.w.state.At(n); !there || m.Digest() != root {
			x.to.t.Fatalf("checkpoint %d with the digest %v was being fetched", n, root)
		}
	}
	m, _ := x.from.w.state.At(x.number)
	x.fetch, x.asked = x.to.w.state.Fetch(x.number, m.Digest()), nil
	x.to.n.layers, x.to.n.names = nil, nil
	x.to.w.end()
}

// answer has a random one of the wants answered, or asked for again.
func (x *transfer) answer() {
	i := x.rnd.IntN(len(x.asked))
	w := x.asked[i]
	x.asked = slices.Delete(x.asked, i, i+1)
	if x.rnd.IntN(10) == 0 {
		x.fetch.Again(w)
		return
	}
	m, _ := x.from.w.state.At(x.number)
	size := x.rnd.IntN(3000)
	page, err := m.Page(w, size)
	if err != nil {
		x.to.t.Fatal(err)
	}
	if least := 1 + maxBucket*65; len(page) > max(size, least, nodeBytes) {
		x.to.t.Fatalf("a page of %d bytes, which was to have %d", len(page), size)
	}
	x.pages++
	if err := x.fetch.Take(w, page); err != nil {
		x.to.t.Fatal(err)
	}
	if err := x.fetch.Take(w, page); !errors.Is(err, ErrUnasked) {
		x.to.t.Fatalf("a page is taken twice: %v", err)
	}
}

func (x *transfer) step() {
	x.asked = append(x.asked, x.fetch.Wants(x.rnd.IntN(4))...)
	if len(x.asked) > 0 {
		x.answer()
	}
	switch x.rnd.IntN(60) {
	case 0: // the one that serves goes on
		x.from.fill(x.from.rnd.IntN(50))
		x.from.checkpoint()
		x.from.w.end()
	case 1:
		x.to.crash()
		if !x.fetch.Done() {
			x.begin()
		}
	case 2:
		if !x.fetch.Done() {
			x.begin()
		}
	}
	x.to.w.end()
}

// TestFetch has a state fetch another one, by pages of all sizes and in any order, while that goes
// on, and with crashes.
func TestFetch(t *testing.T) {
	first := seed.First(t, 1)
	for s := first; s < first+uint64(seed.Count(t, 60)); s++ {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			from, to := newProgram(t, s), newProgram(t, s+1<<32)
			from.keys = []int{1, 60, 5000}[from.rnd.IntN(3)]
			to.keys = from.keys
			from.fill(from.rnd.IntN(2 * from.keys))
			if from.rnd.IntN(2) == 0 { // it has lagged; otherwise it has something else
				to.rnd = rand.New(rand.NewPCG(s, 1))
				to.rnd.IntN(3)
				to.rnd.IntN(3)
				to.fill(to.rnd.IntN(2 * to.keys))
			}
			to.fill(to.rnd.IntN(1 + to.keys/10))
			if to.rnd.IntN(2) == 0 {
				to.checkpoint()
			}
			from.checkpoint()
			x := &transfer{from: from, to: to, rnd: rand.New(rand.NewPCG(s, 3))}
			for x.begin(); !x.fetch.Done(); {
				x.step()
			}
			want := from.n.checkpoints[x.number]
			if got := all(to.w.state); !maps.Equal(got, want) {
				t.Fatalf("%d keys were fetched, of which some differ from the %d that were to be", len(got), len(want))
			}
			to.n.base, to.n.last, to.n.checkpoints = maps.Clone(want), x.number, map[uint64]contents{x.number: want}
			for range 50 { // and goes on
				to.step()
			}
			to.moments()
		})
	}
}

// TestFetchOfWhatDiffers: of a large state only what differs is told.
func TestFetchOfWhatDiffers(t *testing.T) {
	from, to := newProgram(t, 1), newProgram(t, 1)
	for _, p := range []*program{from, to} {
		p.keys = 20_000
		p.fill(20_000)
	}
	for range 10 {
		from.fill(1)
	}
	from.checkpoint()
	x := &transfer{from: from, to: to, rnd: rand.New(rand.NewPCG(1, 3))}
	most := 0
	for x.begin(); !x.fetch.Done(); {
		x.asked = append(x.asked, x.fetch.Wants(1)...)
		x.answer()
		most = max(most, len(x.fetch.todo))
	}
	if !maps.Equal(all(to.w.state), from.n.base) {
		t.Fatal("something else was fetched")
	}
	// Each key that differs is three nodes below the root, at most, in a bucket.
	if x.pages > 1+10*4+10 || x.pages < 10 || most > 5*fanOut {
		t.Errorf("ten keys that differ took %d pages, with %d parts in mind at once", x.pages, most)
	}
}

// TestHostilePages: a page that is not what the digest vouches for is refused, and changes nothing.
func TestHostilePages(t *testing.T) {
	from, to := newProgram(t, 5), newProgram(t, 6)
	from.keys, to.keys = 2000, 2000
	from.fill(2000)
	to.fill(300)
	from.checkpoint()
	rnd := rand.New(rand.NewPCG(1, 1))
	x := &transfer{from: from, to: to, rnd: rnd}
	x.begin()
	m, _ := from.w.state.At(x.number)
	var others [][]byte
	for !x.fetch.Done() {
		wants := x.fetch.Wants(3)
		to.w.end()
		for _, w := range wants {
			page, err := m.Page(w, 500)
			if err != nil {
				t.Fatal(err)
			}
			for _, bad := range hostile(rnd, page, others) {
				err := x.fetch.Take(w, bad)
				if err == nil || len(to.w.env.Out) > 0 {
					t.Fatalf("for %v %x is taken in place of %x, with %d effects", w, bad, page, len(to.w.env.Out))
				}
			}
			others = append(others, page)
			if err := x.fetch.Take(w, page); err != nil {
				t.Fatal(err)
			}
			to.w.end()
		}
	}
	if got := all(to.w.state); !maps.Equal(got, from.n.base) {
		t.Fatal("something else was fetched")
	}
	if err := x.fetch.Take("", nil); !errors.Is(err, ErrUnasked) {
		t.Errorf("a page is taken when all was fetched: %v", err)
	}
}

// hostile returns pages that are nearly right, and others that were.
func hostile(rnd *rand.Rand, page []byte, others [][]byte) [][]byte {
	bad := [][]byte{nil, {}, {0}, page[:len(page)-1], append(bytes.Clone(page), 0), append(bytes.Clone(page), page...),
		append(bytes.Clone(page), page[1:]...), bytes.Repeat(page, 100), page[:1]}
	for range 5 {
		flipped := bytes.Clone(page)
		flipped[rnd.IntN(len(page))] ^= 1 << rnd.IntN(8)
		bad = append(bad, flipped)
	}
	if len(others) > 0 {
		bad = append(bad, others[rnd.IntN(len(others))])
	}
	return slices.DeleteFunc(bad, func(b []byte) bool { return bytes.Equal(b, page) })
}

// TestHostileWants: wants that no Fetch makes are refused.
func TestHostileWants(t *testing.T) {
	p := newProgram(t, 1)
	p.keys = 400
	p.fill(400)
	p.checkpoint()
	m, _ := p.w.state.At(p.n.last)
	for _, w := range []Want{"", "\x01", "\x01\xff", "\x02\x00\x00", "\x41" + Want(make([]byte, 33)), "\xff",
		"\x40" + Want(make([]byte, 32))} {
		if page, err := m.Page(w, 1000); err == nil {
			t.Errorf("the want %q (%v) is answered with %d bytes", string(w), w, len(page))
		}
	}
	if page, err := m.Page("\x05\x00\x00\x00", 1000); err != nil || len(page) != 1 {
		t.Errorf("where no keys are: %x, %v", page, err)
	}
}

func FuzzPage(f *testing.F) {
	p := &program{rnd: rand.New(rand.NewPCG(1, 1)), w: newWorld(f), n: newNaive(), keys: 400}
	p.fill(400)
	p.checkpoint()
	m, _ := p.w.state.At(p.n.last)
	for _, w := range []Want{"\x00", "\x01\x00", "\x01\x10", "\x02\x00"} {
		for _, size := range []int{0, 10_000} {
			page, err := m.Page(w, size)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(w), page)
		}
	}
	f.Fuzz(func(t *testing.T, w string, page []byte) {
		_, _ = m.Page(Want(w), len(page))
		to := newWorld(t)
		fetch := to.state.Fetch(p.n.last, m.Digest())
		fetch.Wants(1)
		if fetch.Take("\x00", page) == nil {
			if want, _ := m.Page("\x00", 0); !bytes.Equal(page, want) {
				t.Errorf("%x is taken for the root %x", page, want)
			}
		}
		for _, at := range []path{{}, {depth: maxDepth}, pathTo(Digest{0xff}, 3)} {
			if got, err := decodeRecord(at, page); err == nil {
				if again := got.record(); !bytes.Equal(again, page) {
					t.Errorf("%x is read and written as %x", page, again)
				}
			}
			if items, err := readBucket(at, Digest{}, page); err == nil {
				t.Errorf("a bucket of %d keys has the sum 0", len(items))
			}
		}
	})
}
