package tree

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
)

// text shows all records, so that two spaces can be compared.
func text(m *keyspace.Memory) string {
	var b strings.Builder
	for k, v := range m.Scan(nil, nil) {
		fmt.Fprintf(&b, "%x %x\n", k, v)
	}
	return b.String()
}

// noted is a Witness that remembers what it is told.
type noted struct{ saw, changed []specfs.Assumption }

func (n *noted) Saw(a specfs.Assumption) { n.saw = append(n.saw, a) }

func (n *noted) Changed(a specfs.Assumption) { n.changed = append(n.changed, a) }

// world is a file system under random operations.
type world struct {
	*keyspace.Memory
	rnd     *rand.Rand
	serial  specfs.Version
	objects []specfs.ID // all that were ever made
	cred    specfs.Cred
	focus   []specfs.ID // objects that operations have to do with more often than with others
}

func newWorld(seed uint64) *world {
	w := &world{
		Memory: &keyspace.Memory{}, rnd: rand.New(rand.NewPCG(seed, 1)), objects: []specfs.ID{specfs.Root}, serial: 1,
	}
	Format(w.Memory, Call{Serial: 1, Now: 1}, 0o755)
	return w
}

// call returns that of the next operation. The clock of callers goes back now and then.
func (w *world) call(witness Witness) Call {
	w.serial++
	return Call{
		Serial: w.serial, Now: specfs.Time(int64(w.serial)*1000 - w.rnd.Int64N(3000)), Cred: w.cred, Witness: witness,
	}
}

// do executes an operation, and notes what it made.
func (w *world) do(op specfs.Op, witness Witness) specfs.Result {
	result := Do(w.Memory, w.call(witness), op)
	if m, ok := op.(specfs.Make); ok && result.Errno == specfs.OK {
		w.objects = append(w.objects, m.New)
	}
	return result
}

func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

func (w *world) kind(id specfs.ID) specfs.Kind {
	if o := (&tree{space: w.Memory}).object(id); o != nil {
		return o.Kind
	}
	return 0
}

// any returns one of the objects, one of a kind and with a name if that is easy to find.
func (w *world) any(k specfs.Kind) (id specfs.ID) {
	for range 8 {
		if id = pick(w.rnd, w.objects...); len(w.focus) > 0 && w.flip() {
			id = pick(w.rnd, w.focus...)
		}
		if o := (&tree{space: w.Memory}).object(id); o != nil && o.Kind == k && o.Links > 0 {
			break
		}
	}
	return id
}

func (w *world) dir() specfs.ID { return w.any(specfs.Directory) }

func (w *world) file() specfs.ID { return w.any(specfs.File) }

func (w *world) name() string {
	if w.rnd.IntN(40) == 0 {
		return strings.Repeat("n", pick(w.rnd, specfs.MaxNameBytes, specfs.MaxNameBytes+1))
	}
	return pick(w.rnd, "a", "b", "c", "d", "\xff\xfe")
}

// nameIn returns one of the names in a directory, if there are any.
func (w *world) nameIn(dir specfs.ID) string {
	var names []string
	prefix := key(recordName, dir)
	for k := range w.Scan(prefix, end(prefix)) {
		names = append(names, string(k[len(prefix):]))
	}
	return pick(w.rnd, append(names, w.name())...)
}

func (w *world) xattr() string { return pick(w.rnd, "user.a", "user.b", "user.c") }

func (w *world) mode() specfs.Mode {
	return pick[specfs.Mode](w.rnd,
		0o644, 0o755, 0o777, 0o700, 0o1777, 0o2775, 0o4755, 0o2755, 0o2644, 0o000, 0o400, 0o500)
}

func (w *world) flip() bool { return w.rnd.IntN(2) == 0 }

// offset is near the border of a block more often than not.
func (w *world) offset() uint64 {
	if w.rnd.IntN(3) == 0 {
		return 0
	}
	return uint64(max(0, w.rnd.IntN(4)*blockBytes+w.rnd.IntN(5)-2))
}

func (w *world) length() int {
	return pick(w.rnd, 0, 1, 3, 100, blockBytes-1, blockBytes, blockBytes+1, 3*blockBytes)
}

func (w *world) data() []byte {
	b := make([]byte, w.length())
	for i := range b {
		b[i] = byte('a' + w.rnd.IntN(26))
	}
	return b
}

// change returns an operation that may change something.
func (w *world) change() specfs.Op {
	switch w.rnd.IntN(14) {
	case 0, 1, 2, 3:
		m := specfs.Make{
			Parent: w.dir(), Name: w.name(), New: w.objects[len(w.objects)-1] + 1, Mode: w.mode(),
			Kind: pick(w.rnd, specfs.File, specfs.File, specfs.Directory, specfs.Directory, specfs.Symlink, specfs.Fifo,
				specfs.Socket),
		}
		if m.Kind == specfs.Symlink {
			m.Target = pick(w.rnd, "x", "/y/z", strings.Repeat("t", 300))
		}
		return m
	case 4:
		return specfs.Link{ID: w.any(pick(w.rnd, specfs.File, specfs.File, specfs.Symlink)), Parent: w.dir(), Name: w.name()}
	case 5:
		return specfs.Unlink{Parent: w.dir(), Name: w.name()}
	case 6:
		return specfs.RemoveDir{Parent: w.dir(), Name: w.name()}
	case 7, 8:
		op := specfs.Rename{From: w.dir(), Name: w.name(), To: w.dir(), NewName: w.name(), Exchange: w.rnd.IntN(4) == 0}
		if w.flip() {
			op.To = op.From
		}
		op.Replace = !op.Exchange && w.rnd.IntN(5) > 0
		return op
	case 9:
		return w.setAttr()
	case 10, 11:
		return specfs.WriteAt{ID: w.file(), Offset: w.offset(), Append: w.rnd.IntN(3) == 0, Data: w.data()}
	case 12:
		op := specfs.Allocate{ID: w.file(), Offset: w.offset(), Length: uint64(w.length()), Keep: w.flip()}
		op.Punch = op.Keep && w.flip()
		return op
	}
	if w.rnd.IntN(3) == 0 {
		return specfs.RemoveXattr{ID: pick(w.rnd, w.objects...), Name: w.xattr()}
	}
	op := specfs.SetXattr{ID: pick(w.rnd, w.objects...), Name: w.xattr(), Value: []byte(w.name())}
	op.Create = w.rnd.IntN(3) == 0
	op.Replace = !op.Create && w.rnd.IntN(3) == 0
	return op
}

func (w *world) setAttr() specfs.Op {
	op := specfs.SetAttr{ID: pick(w.rnd, w.objects...)}
	switch w.rnd.IntN(4) {
	case 0:
		op.Set, op.Mode = specfs.SetMode, w.mode()
	case 1:
		op.Set = pick(w.rnd, specfs.SetOwner, specfs.SetGroup, specfs.SetOwner|specfs.SetGroup)
		op.UID, op.GID = w.user(), w.user()
	case 2:
		op.ID, op.Set, op.Size = w.file(), specfs.SetSize, w.offset()
	case 3:
		op.Set = pick(w.rnd, specfs.SetAccessed, specfs.SetModified, specfs.SetAccessed|specfs.SetModified)
		if w.flip() {
			op.Set |= specfs.SetAccessed | specfs.SetModified | specfs.SetAccessedNow | specfs.SetModifiedNow
		}
		op.Times = specfs.Times{Accessed: specfs.Time(w.rnd.Int64N(1e6)), Modified: specfs.Time(w.rnd.Int64N(1e6))}
	}
	return op
}

func (w *world) user() uint32 { return pick[uint32](w.rnd, 0, 1001, 1002) }

// read returns an operation that changes nothing.
func (w *world) read() specfs.Op {
	switch w.rnd.IntN(10) {
	case 0, 1:
		return specfs.Lookup{Parent: w.dir(), Name: w.name()}
	case 2:
		return specfs.GetAttr{ID: pick(w.rnd, w.objects...)}
	case 3:
		return specfs.Check{ID: pick(w.rnd, w.objects...), Access: specfs.Access(1 + w.rnd.IntN(7))}
	case 4:
		return specfs.List{ID: w.dir(), Most: pick(w.rnd, 1, 2, 100)}
	case 5:
		return specfs.ParentOf{ID: w.dir()}
	case 6, 7:
		return specfs.ReadAt{ID: w.file(), Offset: w.offset(), Length: w.length()}
	case 8:
		return specfs.ReadLink{ID: w.any(specfs.Symlink)}
	}
	if w.flip() {
		return specfs.ListXattrs{ID: pick(w.rnd, w.objects...)}
	}
	return specfs.GetXattr{ID: pick(w.rnd, w.objects...), Name: w.xattr()}
}

// tidy returns an operation that changes where directories are, or who may do what in them.
func (w *world) tidy() specfs.Op {
	switch w.rnd.IntN(5) {
	case 0, 1:
		from := w.dir()
		return specfs.Rename{From: from, Name: w.nameIn(from), To: w.dir(), NewName: w.name(), Replace: w.flip()}
	case 2:
		return specfs.Make{
			Parent: w.dir(), Name: w.name(), New: w.objects[len(w.objects)-1] + 1, Kind: specfs.Directory, Mode: 0o777,
		}
	case 3:
		from := w.dir()
		return specfs.RemoveDir{Parent: from, Name: w.nameIn(from)}
	}
	op := specfs.SetAttr{ID: w.dir(), Set: specfs.SetMode | specfs.SetOwner, Mode: w.mode(), UID: w.user()}
	if w.flip() {
		op.ID = w.file()
	}
	return op
}

// become makes somebody the next caller.
func (w *world) become() { w.cred = specfs.Cred{UID: pick[uint32](w.rnd, 0, 0, 0, 1001, 1002)} }

func (w *world) op() specfs.Op {
	if w.flip() {
		return w.read()
	}
	return w.change()
}

// check looks for broken invariants: each object has as many names as it says, a directory is where
// it says, blocks do not reach beyond a file's size, and nothing belongs to nobody.
func (w *world) check(t *testing.T) {
	t.Helper()
	tr := &tree{space: w.Memory}
	names, within := map[specfs.ID]uint32{specfs.Root: 1}, map[specfs.ID]uint32{}
	for k, v := range w.Scan([]byte{recordName}, []byte{recordName + 1}) {
		dir, e := idOf(k), mustDecode(entryLayout.Decode(v))
		o := tr.object(e.ID)
		if o == nil || o.Kind != e.Kind || o.Links == 0 {
			t.Fatalf("name %q of %d stands for %+v: %+v", k[9:], dir, e, o)
		}
		if names[e.ID]++; e.Kind == specfs.Directory {
			if within[dir]++; o.Parent != dir {
				t.Fatalf("directory %d says that it is in %d, not in %d", e.ID, o.Parent, dir)
			}
		}
	}
	for k := range w.Scan([]byte{recordObject}, []byte{recordObject + 1}) {
		o := tr.object(idOf(k))
		switch {
		case o.Links == 0 && (names[o.ID] != 0 || !IsOrphan(w.Memory, o.ID)):
			t.Fatalf("%d has no links and %d names", o.ID, names[o.ID])
		case o.Links > 0 && o.Kind == specfs.Directory && (names[o.ID] != 1 || o.Links != 2+within[o.ID]):
			t.Fatalf("directory %d has %d names, %d directories and %d links", o.ID, names[o.ID], within[o.ID], o.Links)
		case o.Links > 0 && o.Kind != specfs.Directory && names[o.ID] != o.Links:
			t.Fatalf("%d has %d names and %d links", o.ID, names[o.ID], o.Links)
		}
	}
	for k, v := range w.Scan([]byte{recordBlock}, []byte{recordBlock + 1}) {
		o, content, number := tr.object(idOf(k)), numberOf(k, 9), numberOf(k, 17)
		if o == nil || content == o.Content && number*blockBytes+uint64(len(v)) > o.Size {
			t.Fatalf("block %d of %d, %d bytes, of %+v", number, idOf(k), len(v), o)
		}
	}
}

func idOf(k []byte) specfs.ID { return specfs.ID(numberOf(k, 1)) }

func numberOf(k []byte, at int) (n uint64) {
	for _, b := range k[at : at+8] {
		n = n<<8 | uint64(b)
	}
	return n
}
