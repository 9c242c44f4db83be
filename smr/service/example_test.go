package service_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/foresay/foresay/smr/service"
)

// A program reads the clients' file, connects, and makes calls. Here it brings a cluster of its own
// along; usually "foresay smr serve" runs it.
func Example() {
	if err := useService(); err != nil {
		fmt.Println(err)
	}
	// Output:
	// greeting is "hello"
	// not set: "greeting" has version 1, not 0
}

func useService() (err error) {
	dir, err := os.MkdirTemp("", "service")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cluster, err := service.OpenCluster(service.ClusterOptions{Dir: dir, Protocol: "raft", Replicas: 3})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()

	cfg, err := service.ReadClientConfig(filepath.Join(dir, service.ClientFile))
	if err != nil {
		return err
	}
	client, err := service.Dial(cfg, service.ClientOptions{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if _, err := client.Put(ctx, "greeting", []byte("hello")); err != nil {
		return err
	}
	item, found, err := client.Get(ctx, "greeting")
	if err != nil || !found {
		return fmt.Errorf("greeting: found: %v: %w", found, err)
	}
	fmt.Printf("%s is %q\n", item.Key, item.Value)

	// A change that is made only if nobody else was faster.
	_, err = client.CompareAndSet(ctx, "greeting", 0, []byte("hi"))
	if conflict, ok := errors.AsType[*service.ConflictError](err); ok {
		fmt.Println("not set:", conflict)
		return nil
	}
	return err
}
