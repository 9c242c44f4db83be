package pbft

import (
	"context"
	"fmt"
	"log/slog"
	rand "math/rand/v2"
	"os"
	"sync/atomic"
	"time"
)

type node struct {
	inbox chan int
}

func (n *node) run(ctx context.Context) {
	go n.run(ctx)
	n.inbox <- 1
	<-n.inbox
	for range n.inbox {
	}
	select {}

	_ = time.Now()
	_ = rand.IntN(6)
	fmt.Println()
	_ = time.Second //pure:ok wrong: nothing to waive here
	time.Sleep(0)   //pure:ok to show that a waiver works
}

// shadow has a variable named like a package.
func shadow(time interface{ Now() int }) int {
	r := rand.New(rand.NewPCG(1, 2))
	return time.Now() + r.IntN(6) + len(fmt.Sprint(slog.LevelInfo, os.Args, atomic.Int64{}))
}
