// Package storecmd is the command foresay store.
package storecmd

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/storecmd/plancmd"
	"github.com/foresay/foresay/store"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Command returns the command store.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }

func (p *program) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "store",
		Short: "Run and use a transactional store that is replicated across sites",
		Long: `Run and use a transactional key-value store, sharded and replicated across datacentres, whose
clients go on with the first replica's answer while the quorum is still on its way.

A first look:    foresay store dev --wan specrpc
Three processes: foresay store init --dir DIR, then
                 foresay store serve --config DIR/machine-a.json and so on, then
                 foresay store txn put KEY VALUE --client DIR/client.json`,
	}
	command.Group(c)
	c.AddCommand(p.devCommand(), p.initCommand(), p.configCommand(), p.serveCommand(), p.txnCommand(), p.loadCommand(),
		p.benchCommand(), p.exportCommand(), p.importCommand(),
		p.statusCommand(), p.moveCommand(), p.resolveCommand(), plancmd.Command(p.Program))
	return c
}

// addProtocol adds the flags that say how the sites of a new store agree.
func addProtocol(flags *pflag.FlagSet, to, mode, order, speculate *string, readers *int) {
	flags.StringVar(order, "order", "", "in which `order` servers handle requests to prepare: arrival, which is that in\n"+
		"which they should have arrived everywhere; carousel has it (default: as they come)")
	var modes []string
	protocols := catalog.Stores()
	for _, p := range protocols {
		if len(p.Degrees) > 0 {
			flags.Func("speculate", "how far transactions of "+p.Name+" build on what is not final;\n"+
				"`one` of "+strings.Join(p.Degrees, ", ")+" (default: the first one)", func(degree string) error {
				if *speculate = degree; !slices.Contains(p.Degrees, degree) {
					return errors.New("one of " + strings.Join(p.Degrees, ", "))
				}
				return nil
			})
			command.SetChoices(flags.Lookup("speculate"), p.Degrees)
		}
		if p.Readers {
			flags.IntVar(readers, "readers", 0, "how many copies of each shard of "+p.Name+" serve reads: its leader and\n"+
				"those that are nearest to it (default: all)")
		}
		if len(p.Modes) > 0 {
			modes = append(modes, p.Name+": "+strings.Join(p.Modes, ", "))
		}
	}
	flags.StringVar(mode, "mode", "", "which variant of the protocol, for good; `one` of\n"+strings.Join(modes, "\n")+
		"\n(default: the first one)")
	docs := make([]string, 0, len(protocols))
	for _, p := range protocols {
		docs = append(docs, p.Name+": "+p.Doc)
	}
	flags.StringVar(to, "protocol", catalog.StoreNames()[0], "how the sites agree, for good; `one` of\n"+
		strings.Join(docs, "\n"))
	command.SetChoices(flags.Lookup("protocol"), catalog.StoreNames())
}

// validReaders returns an error that names the flag, if not so many copies of each shard can serve
// reads.
func validReaders(name string, readers int, placement [][]string, sites int) error {
	p, err := catalog.Store(name)
	if err != nil {
		return fmt.Errorf("--protocol: %w", err)
	}
	if err := storeconfig.CheckReaders(p, readers, placement, sites); err != nil {
		return fmt.Errorf("--readers: %w", err)
	}
	return nil
}

// validProtocol returns an error that names the flag that is wrong, or nil.
func validProtocol(name, mode, order, speculate string) error {
	p, err := catalog.Store(name)
	if err != nil {
		return fmt.Errorf("--protocol: %w", err)
	}
	if p, err = p.In(mode); err != nil {
		return fmt.Errorf("--mode: %w", err)
	}
	if err := storeconfig.CheckOrder(p, order); err != nil {
		return fmt.Errorf("--order: %w", err)
	}
	if err := storeconfig.CheckSpeculate(p, speculate); err != nil {
		return fmt.Errorf("--speculate: %w", err)
	}
	return nil
}

// Exit codes of commands that make transactions, beside 1 for what took no effect and codeUnknown.
const (
	codeBlocked = 4
	codeAborted = 5
)

// clientFlags say how a command reaches a store, and how long it waits for it.
type clientFlags struct {
	client  string
	site    string
	timeout time.Duration
	json    bool
}

func (f *clientFlags) add(flags *pflag.FlagSet, timeout time.Duration) {
	flags.StringVar(&f.client, "client", "", "the clients' `file`, such as init and dev make it")
	flags.StringVar(&f.site, "site", "", "be at this `site`: the clients' file says how machines are reached from there")
	flags.DurationVar(&f.timeout, "timeout", timeout, "how long to wait for the store")
	flags.BoolVar(&f.json, "json", false, "write JSON")
}

// withClient runs do with a client of the store.
func (p *program) withClient(f *clientFlags, do func(*storeservice.Client) error) error {
	return p.withClientBy(f, storeservice.ClientOptions{}, do)
}

func (p *program) withClientBy(
	f *clientFlags, o storeservice.ClientOptions, do func(*storeservice.Client) error,
) error {
	switch {
	case f.timeout <= 0:
		return command.Usagef("store: --timeout is %v; want more than 0", f.timeout)
	case f.client == "":
		return command.Usagef("store: say where the store is, by --client; 'foresay store dev' starts one")
	}
	cfg, err := storeconfig.ReadClient(f.client, f.site)
	if err != nil {
		return err
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(p.Err, nil))
	}
	c, err := storeservice.Dial(cfg, o)
	if err != nil {
		return err
	}
	defer c.Close()
	return do(c)
}

// verdict returns in a word what a transaction's error, or none, says of it, and the exit
// code.
func verdict(err error) (word string, code int) {
	switch {
	case err == nil:
		return "committed", 0
	case errors.As(err, new(*client.AbortedError)):
		return "aborted", codeAborted
	case errors.As(err, new(*client.UnknownError)):
		return "unknown", command.CodeUnknown
	case errors.As(err, new(*client.BlockedError)):
		return "blocked", codeBlocked
	}
	return "failed", 1
}

// plain returns what became of a transaction, for people.
func plain(err error) string {
	if err == nil {
		return "committed"
	}
	if aborted, ok := errors.AsType[*client.AbortedError](err); ok {
		s := "aborted"
		if aborted.Reason != store.NoReason {
			s += fmt.Sprintf(": %v", aborted.Reason)
		} else if aborted.Err != nil {
			s += ": " + aborted.Err.Error()
		}
		if aborted.Attempts > 1 {
			s += fmt.Sprintf(", after %d attempts", aborted.Attempts)
		}
		if hint := aborted.Hint(); hint != "" {
			s += ": " + hint
		}
		return s + "; it took no effect"
	}
	if unknown, ok := errors.AsType[*client.UnknownError](err); ok {
		s := fmt.Sprintf("unknown: transaction %v may have taken effect, or may yet, once", unknown.Txn.ID)
		if len(unknown.Sites) > 0 {
			s += "; no vote of " + command.Joined(unknown.Sites)
		}
		return s
	}
	if blocked, ok := errors.AsType[*client.BlockedError](err); ok {
		return fmt.Sprintf("blocked: transaction %v waits until one of these sites is back or fenced: %s", blocked.Txn.ID,
			command.Joined(blocked.Sites))
	}
	if unavailable, ok := errors.AsType[*client.UnavailableError](err); ok {
		return unavailable.Error() + "; it took no effect"
	}
	if canceled, ok := errors.AsType[*client.CanceledError](err); ok {
		return canceled.Error() + "; it took no effect"
	}
	if rejected, ok := errors.AsType[*client.RejectedError](err); ok {
		return rejected.Error() + "; it took no effect"
	}
	return err.Error()
}

// failure makes what became of a transaction an error of the command.
func failure(err error) error {
	if err == nil {
		return nil
	}
	_, code := verdict(err)
	return command.ExitError{Code: code, Err: fmt.Errorf("store txn: %s", plain(err))}
}
