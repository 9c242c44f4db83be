package storeservice_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
	"github.com/foresay/foresay/wan"
)

// A program reads the clients' file, connects, and makes transactions. Here it brings a store of
// its own along; usually "foresay store serve" runs it.
func Example() {
	if err := useStore(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// greeting is "hello"
}

func useStore() (err error) {
	dir, err := os.MkdirTemp("", "store")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sites := []wan.Site{"a", "b", "c"}
	store, err := storeservice.OpenCluster(storeservice.ClusterOptions{
		Dir: dir, Shards: 1, WAN: wan.Uniform(10*time.Millisecond, sites...), Sites: sites,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	cfg, err := storeconfig.ReadClient(filepath.Join(dir, storeconfig.ClientFile), "")
	if err != nil {
		return err
	}
	conn, err := storeservice.Dial(cfg, storeservice.ClientOptions{})
	if err != nil {
		return err
	}
	defer conn.Close()
	transactions, err := conn.Transactions(client.Spec, 0)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	err = transactions.Txn(ctx, func(_ context.Context, tx *client.Tx) error {
		return tx.Put("greeting", []byte("hello"))
	})
	if err != nil {
		return err
	}
	value, err := client.Run(ctx, transactions, func(ctx context.Context, tx *client.Tx) (string, error) {
		v, _, err := tx.Get(ctx, "greeting")
		return string(v), err
	})
	if err != nil {
		return err
	}
	fmt.Printf("greeting is %q\n", value)
	return nil
}
