package view_test

import (
	"fmt"

	"github.com/foresay/foresay/specfs/view"
)

func Example() {
	_, err := view.New(view.Config{Server: 1, System: view.System{Leases: true, Behind: true}})
	fmt.Println(err)
	// Output:
	// specfs: Config.System: changes behind a lease need an exclusive one, which is not there yet
}
