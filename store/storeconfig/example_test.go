package storeconfig_test

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/foresay/foresay/store/storeconfig"
)

// A store of three sites with a machine each, and the file that its clients read.
func Example() {
	if err := makeFiles(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// epoch 1 of shop: [oregon ireland seoul]
}

func makeFiles() error {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var sites []storeconfig.Site
	for i, name := range []string{"oregon", "ireland", "seoul"} {
		machine := storeconfig.Machine{Peers: fmt.Sprintf("10.0.%d.1:7500", i), Client: fmt.Sprintf("10.0.%d.1:7501", i)}
		sites = append(sites, storeconfig.Site{Name: name, Machines: []storeconfig.Machine{machine}})
	}
	if _, err := storeconfig.Init(storeconfig.InitOptions{Dir: dir, Cluster: "shop", Shards: 1,
		Sites: sites}); err != nil {
		return err
	}
	cfg, err := storeconfig.ReadClient(filepath.Join(dir, storeconfig.ClientFile), "")
	if err != nil {
		return err
	}
	fmt.Printf("epoch %d of %s: %v\n", cfg.Store.Epoch, cfg.Store.Cluster, cfg.Store.SiteNames())
	return nil
}
