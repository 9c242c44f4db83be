package specfs_test

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/foresay/foresay/specfs"
)

func Example() {
	r := specfs.Result{Errno: specfs.ENOENT}
	fmt.Println(r.Errno, errors.Is(r.Errno, fs.ErrNotExist))
	fmt.Println(specfs.ValidName("a/b"), specfs.ValidName("caf\xe9"))
	fmt.Println(specfs.Assumption{Part: specfs.Part{ID: 7, Aspect: specfs.Name, Name: "main.go"}, Version: 3})
	// Output:
	// no such file or directory true
	// invalid argument no error
	// 7/"main.go"@3
}
