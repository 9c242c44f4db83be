package fstest_test

import (
	"fmt"

	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/specfs/fstest"
	"github.com/foresay/foresay/specfs/view"
)

func Example() {
	w, err := fstest.New(fstest.Config{
		Seed: 7, Systems: []view.System{view.BlueFS(), view.Callback()}, Ops: 50, Faults: sim.Crash,
	})
	if err == nil {
		err = w.Run()
	}
	fmt.Println(err)
	// Output: <nil>
}
