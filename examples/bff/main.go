// The program bff is an ordinary "backend for frontends": pages over HTTP, made of what four gRPC
// services know. It takes itself up the ladder of docs/adopting.md, under load, and checks every
// answer.
//
//	go run ./examples/bff --ladder        all rungs, one after the other, and a table
//	go run ./examples/bff --rung observe  one rung, and what observing it brought
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/foresay/foresay/wan/shape"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bff:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var cfg config
	var name string
	flags := flag.NewFlagSet("bff", flag.ContinueOnError)
	all := flags.Bool("ladder", false, "climb plain, observe, canary and on, one after the other; the default without "+
		"--rung")
	flags.StringVar(&name, "rung", "", "stay on one rung: "+strings.Join(names(), ", "))
	flags.IntVar(&cfg.requests, "requests", 600, "how many pages are asked for")
	flags.Float64Var(&cfg.rate, "rate", 120, "pages per second")
	flags.Uint64Var(&cfg.seed, "seed", 1, "what data, latencies and requests are drawn from")
	flags.StringVar(&cfg.callSiteFile, "config", "", "the file of sites; if there is none it is written, for the rung")
	flags.StringVar(&cfg.debug, "debug", "", "serve the debug endpoint at this address until interrupted, with --rung")
	flags.StringVar(&cfg.report, "report", "", "write what was observed to this file, with --rung")
	if err := flags.Parse(args); err != nil {
		return err
	}
	switch {
	case flags.NArg() > 0:
		return fmt.Errorf("argument %q: there are flags only", flags.Arg(0))
	case cfg.requests < 1:
		return fmt.Errorf("--requests %d: want at least 1", cfg.requests)
	case !(cfg.rate > 0 && cfg.rate <= 10_000):
		return fmt.Errorf("--rate %v: want a number above 0 and up to 10000", cfg.rate)
	case name == "" && (cfg.callSiteFile != "" || cfg.debug != "" || cfg.report != ""):
		return errors.New("--config, --debug and --report are for one rung: give --rung, too")
	case name != "" && *all:
		return errors.New("--ladder climbs all rungs: leave --rung out")
	case name == "":
		return ladder(ctx, shape.Undelayed{}, cfg, out)
	}
	at := slices.Index(names(), name)
	if at < 0 {
		return fmt.Errorf("--rung %q: want one of %s", name, strings.Join(names(), ", "))
	}
	return one(ctx, rungs()[at], cfg, out)
}

func names() (all []string) {
	for _, r := range rungs() {
		all = append(all, r.name)
	}
	return all
}
