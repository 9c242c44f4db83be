package replica_test

import (
	"context"
	"fmt"
	"time"

	"github.com/foresay/foresay"
	"github.com/foresay/foresay/control"
	"github.com/foresay/foresay/replica"
)

type plan struct {
	Name    string
	Version int
}

// The leader is 50 ms away, and its follower is behind for one of the keys.
func Example() {
	leader := func(ctx context.Context, key string) (plan, error) {
		select {
		case <-time.After(50 * time.Millisecond):
			return map[string]plan{"ann": {"gold", 7}, "bob": {"basic", 9}}[key], nil
		case <-ctx.Done():
			return plan{}, ctx.Err()
		}
	}
	follower := func(_ context.Context, key string) (plan, error) {
		return map[string]plan{"ann": {"gold", 7}, "bob": {"trial", 8}}[key], nil
	}

	cfg := replica.NearFar(follower, leader)
	cfg.Name, cfg.Mode = "plans.Get", control.ModeOn
	cfg.Equal = replica.SameVersion(func(p plan) int { return p.Version })
	plans, err := replica.New(cfg)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range []string{"ann", "bob"} {
		line, err := foresay.Do(context.Background(), func(ctx context.Context) (string, error) {
			p, err := plans.Read(ctx, key)
			if err != nil {
				return "", err
			}
			return key + " has " + p.Name, nil // runs at once with what the follower says
		})
		fmt.Println(line, err)
	}
	stats := plans.CallSite().Stats()
	fmt.Println(stats.Right, "right,", stats.Wrong, "wrong")
	// Output:
	// ann has gold <nil>
	// bob has basic <nil>
	// 1 right, 1 wrong
}
