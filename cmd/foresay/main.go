// Command foresay shows and measures speculative RPC, and runs replicated services: run "foresay
// help".
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/foresay/foresay/internal/cli"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // the second signal ends the process at once
	code := cli.Main(ctx, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr})
	stop()
	os.Exit(code)
}
