package tree_test

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// space is a key space in memory.
type space map[string][]byte

func (s space) Get(key []byte) ([]byte, bool) { v, ok := s[string(key)]; return v, ok }

func (s space) Put(key, value []byte) { s[string(key)] = value }

func (s space) Delete(key []byte) { delete(s, string(key)) }

func (s space) Scan(lo, hi []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func([]byte, []byte) bool) {
		for _, k := range slices.Sorted(maps.Keys(s)) {
			if k >= string(lo) && (hi == nil || k < string(hi)) && !yield([]byte(k), s[k]) {
				return
			}
		}
	}
}

// print prints what an operation depends on.
type print struct{}

func (print) Saw(a specfs.Assumption) { fmt.Println("depends on", a) }

func (print) Changed(specfs.Assumption) {}

func Example() {
	files := space{}
	tree.Format(files, tree.Call{Serial: 1}, 0o755)
	tree.Do(files, tree.Call{Serial: 2}, specfs.Make{
		Parent: specfs.Root, Name: "hello", New: 2, Kind: specfs.File, Mode: 0o644,
	})
	tree.Do(files, tree.Call{Serial: 3}, specfs.WriteAt{ID: 2, Data: []byte("hello, world")})
	fmt.Printf("%s\n", tree.Do(files, tree.Call{Witness: print{}}, specfs.ReadAt{ID: 2, Length: 5}).Data)
	fmt.Println(tree.Do(files, tree.Call{Witness: print{}}, specfs.Lookup{Parent: specfs.Root, Name: "nobody"}).Errno)
	// Output:
	// depends on 2.meta@2
	// depends on 2.data@3
	// hello
	// depends on 1.meta@1
	// depends on 1/"nobody"@0
	// no such file or directory
}
