package etcd_test

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/adapters/etcd"
	"github.com/foresay/foresay/control"
)

// A plan is computed from what the nearest member says, while the cluster is
// asked whether that is right.
func Example() {
	cluster, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://etcd-1.example:2379",
		"http://etcd-2.example:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer cluster.Close()
	nearest, err := clientv3.New(clientv3.Config{Endpoints: []string{"http://etcd-2.example:2379"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer nearest.Close()
	kv, err := etcd.New(etcd.Config{Far: cluster, Near: nearest, Mode: control.ModeOn})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := foresay.Do(context.Background(), func(ctx context.Context) (string, error) {
		resp, err := kv.Get(ctx, "/config/tenant/42")
		if err != nil {
			return "", err
		}
		return fmt.Sprintf("a plan for %d keys", resp.Count), nil // runs ahead; Do returns it when it is right
	})
	fmt.Println(plan, err)
}
