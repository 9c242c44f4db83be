package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/storeconfig"
	"github.com/foresay/foresay/internal/cli/storeservice"
)

type resolveFlags struct {
	dir     string
	site    string
	replace string
	yes     bool
	timeout time.Duration
}

func (p *program) storeResolveCommand() *cobra.Command {
	var f resolveFlags
	c := &cobra.Command{
		Use:   "resolve",
		Short: "Go on without a site that is lost, or with another one in its place",
		Long: "Write the files of the next epoch, in which a lost site is fenced: its missing votes count as no, and what was blocked is decided. With\n" +
			"--replace another site, NAME=PEERS/CLIENT[,PEERS/CLIENT...] as for init, is in its place, and copies what the others have.\n\n" +
			"All machines of all sites must be stopped before, and none may start with the old files afterwards: the command refuses while a\n" +
			"machine answers. Then copy store.json to all machines and clients, and start the machines again.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case f.dir == "":
				return usagef("store resolve: --dir is missing: the directory with the store's files")
			case f.site == "":
				return usagef("store resolve: --site is missing: the lost site's name")
			case f.timeout <= 0:
				return usagef("store resolve: --timeout is %v; want more than 0", f.timeout)
			}
			return p.resolve(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.dir, "dir", "", "the `directory` that init made")
	flags.StringVar(&f.site, "site", "", "the lost `site`")
	flags.StringVar(&f.replace, "replace", "", "a new `site` in its place")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Second, "how long to look for machines that still run")
	return c
}

func (p *program) resolve(ctx context.Context, f resolveFlags) error {
	s, err := storeconfig.ReadStore(filepath.Join(f.dir, storeconfig.StoreFile))
	if err != nil {
		return fmt.Errorf("store resolve: %w", err)
	}
	next, err := nextEpoch(s, f)
	if err != nil {
		return err
	}
	if err := p.allStopped(ctx, f, s); err != nil {
		return err
	}
	fmt.Fprint(p.Out, resolveWarning(s, f.site))
	if !f.yes {
		if err := p.confirm(ctx, f.site); err != nil {
			return err
		}
	}
	kept, err := storeconfig.Advance(f.dir, next)
	if err != nil {
		return fmt.Errorf("store resolve: %w", err)
	}
	fmt.Fprintf(p.Out, "%s is of epoch %d now (the one before is %s).\nCopy it to all machines and clients, then start the machines:\n",
		filepath.Join(f.dir, storeconfig.StoreFile), next.Epoch, kept)
	for _, site := range next.Sites {
		for _, m := range site.Machines {
			if !site.Fenced {
				fmt.Fprintf(p.Out, "foresay store serve --config %s    # at %s\n", filepath.Join(f.dir, storeconfig.MachineFile(m.Name)), site.Name)
			}
		}
	}
	if f.replace != "" {
		fmt.Fprintf(p.Out, "A machine of the new site needs its own file, its certificate and key, and ca.pem too. It copies what the other sites have; until\n"+
			"'foresay store status --wait' says that it is admitted, no other site may be lost.\n")
	}
	return nil
}

// nextEpoch returns the store without the site, or with another one in its place.
func nextEpoch(s *storeconfig.Store, f resolveFlags) (*storeconfig.Store, error) {
	if f.replace == "" {
		next, err := s.Fenced(f.site)
		if err != nil {
			return nil, fmt.Errorf("store resolve: %w", err)
		}
		return next, nil
	}
	by, err := storeconfig.ParseSite(f.replace)
	if err == nil && len(by.Machines) == 0 {
		err = fmt.Errorf("%q has no addresses; want NAME=PEERS/CLIENT", f.replace)
	}
	if err != nil {
		return nil, usagef("store resolve: --replace: %w", err)
	}
	next, err := s.Replaced(f.site, by)
	if err != nil {
		return nil, fmt.Errorf("store resolve: %w", err)
	}
	return next, nil
}

// allStopped returns an error if a machine answers.
func (p *program) allStopped(ctx context.Context, f resolveFlags, s *storeconfig.Store) error {
	cfg, err := storeconfig.ReadClient(filepath.Join(f.dir, storeconfig.ClientFile), "")
	if err != nil {
		return fmt.Errorf("store resolve: %w", err)
	}
	cfg.Store = s
	c, err := storeservice.Dial(cfg, storeservice.ClientOptions{})
	if err != nil {
		return fmt.Errorf("store resolve: %w", err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	var running []string
	for _, status := range c.Status(ctx) {
		if status.State == storeservice.Unreachable || status.State == storeservice.Fenced {
			continue
		}
		if status.Site == f.site {
			return fmt.Errorf("store resolve: machine %s of site %s answers: the site is not lost", status.Machine, f.site)
		}
		running = append(running, status.Machine)
	}
	if len(running) > 0 {
		return fmt.Errorf("store resolve: these machines still run: %s; stop all of them first", joined(running))
	}
	return nil
}

// resolveWarning says what it means to fence a site. See store/replicatedcommit/DESIGN.md, "Blocking".
func resolveWarning(s *storeconfig.Store, site string) string {
	var others []string
	for _, name := range s.SiteNames() {
		if name != site {
			others = append(others, name)
		}
	}
	return fmt.Sprintf("Site %s will not take part any more, for good: its machines must never start again, whatever is on their disks.\n"+
		"No machine of %s answered. One that only cannot be reached from here must be stopped too.\n"+
		"What this can lose: a transaction whose client was told that it had committed, if %s and one other site voted for it, the rest did not, and\n"+
		"word of the decision reached no disk of the other sites before %s was lost. Such a transaction counts as aborted then. All else stays.\n",
		site, joined(others), site, site)
}

// confirm has a person type the site's name.
func (p *program) confirm(ctx context.Context, site string) error {
	if !p.atTerminal() {
		return usagef("store resolve: there is nobody to ask; --yes goes on without")
	}
	fmt.Fprintf(p.Out, "Type %s to go on: ", site)
	typed := make(chan string, 1)
	go func() { // which may stay in a read until the process ends
		line, _ := bufio.NewReader(p.In).ReadString('\n')
		typed <- strings.TrimSpace(line)
	}()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case line := <-typed:
		if line != site {
			return errors.New("store resolve: nothing was changed")
		}
	}
	return nil
}
