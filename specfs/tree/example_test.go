package tree_test

import (
	"fmt"

	"github.com/foresay/foresay/keyspace"
	"github.com/foresay/foresay/specfs"
	"github.com/foresay/foresay/specfs/tree"
)

// print prints what an operation depends on.
type print struct{}

func (print) Saw(a specfs.Assumption) { fmt.Println("depends on", a) }

func (print) Changed(specfs.Assumption) {}

func Example() {
	files := &keyspace.Memory{}
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
