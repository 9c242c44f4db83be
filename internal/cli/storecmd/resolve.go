package storecmd

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/store/storeconfig"
	"github.com/foresay/foresay/store/storeservice"
)

// resolved is what 'store resolve' has come to, as JSON.
type resolved struct {
	Epoch    uint64 `json:"epoch"`
	Site     string `json:"site"` // that was fenced or replaced
	Replaced bool   `json:"replaced"`
	Done     bool   `json:"done_before"` // an earlier run did all this: Lost is not known any more
	// it did not answer, so that what it alone knew is lost; else it left in order
	Lost   bool     `json:"lost"`
	Online bool     `json:"online"`          // the machines that run know of the epoch; else only files were written
	File   string   `json:"file"`            // of the epoch
	Before string   `json:"before"`          // of the epoch before
	Serve  []string `json:"serve,omitempty"` // the commands that start the machines which do not run
}

type resolveFlags struct {
	dir     string
	site    string
	replace string
	lost    bool
	yes     bool
	json    bool
	timeout time.Duration
	within  time.Duration
}

// fixedSites returns the names of the protocols whose stores keep their sites.
func fixedSites() string {
	var names []string
	for _, p := range catalog.Stores() {
		if p.FixedSites {
			names = append(names, p.Name)
		}
	}
	return strings.Join(names, ", ")
}

func (p *program) resolveCommand() *cobra.Command {
	var f resolveFlags
	c := &cobra.Command{
		Use:   "resolve",
		Short: "Go on without a site, or with another one in its place",
		Long: `Have the store go on in its next epoch, in which a site is fenced: its missing votes count as no,
and what was blocked is decided. With --replace another site, NAME=PEERS/CLIENT[,PEERS/CLIENT...]
as for init, is in its place, and copies what the others have.

A majority of the sites has to agree, while the store runs. A site that is there leaves in order,
and nothing is lost; one that does not answer must be gone for good. With --lost it is so if only
some of its machines are gone: the others end. Run the command again if it was interrupted. If no
machine runs at all, only the files are written.

Stores of these protocols keep their sites: ` + fixedSites() + ".",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case f.dir == "":
				return command.Usagef("store resolve: --dir is missing: the directory with the store's files")
			case f.site == "":
				return command.Usagef("store resolve: --site is missing: the lost site's name")
			case f.timeout <= 0 || f.within <= 0:
				return command.Usagef("store resolve: --timeout or --within is %v; want more than 0", min(f.timeout, f.within))
			}
			return p.resolve(c.Context(), f)
		},
	}
	flags := c.Flags()
	flags.StringVar(&f.dir, "dir", "", "the `directory` that init made")
	flags.StringVar(&f.site, "site", "", "the lost `site`")
	flags.StringVar(&f.replace, "replace", "", "a new `site` in its place")
	flags.BoolVar(&f.lost, "lost", false, "a machine of the site is gone for good: end the site's others")
	flags.BoolVar(&f.yes, "yes", false, "do not ask")
	flags.BoolVar(&f.json, "json", false, "write the result as JSON; what happens meanwhile is told on standard error")
	flags.DurationVar(&f.timeout, "timeout", 3*time.Second, "how long to look for machines that run")
	flags.DurationVar(&f.within, "within", 2*time.Minute,
		"how long the change may take while machines run; it can be gone on with afterwards")
	return c
}

func (p *program) resolve(ctx context.Context, f resolveFlags) error {
	s, err := storeconfig.ReadStore(filepath.Join(f.dir, storeconfig.StoreFile))
	if err != nil {
		return fmt.Errorf("store resolve: %w", err)
	}
	say := p.Out
	if f.json {
		say = p.Err
	}
	next, err := nextEpoch(s, f)
	done := ""
	if err != nil {
		if done = doneBefore(s, f); done == "" {
			return err
		}
	} else if err := storeconfig.CheckAdvance(f.dir, next); err != nil {
		return fmt.Errorf("store resolve: %w; nothing was changed", err)
	}
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
	runs := whatRuns(ctx, c, f, s.Epoch)
	if done != "" {
		fmt.Fprintf(say, "%s is of epoch %d, in which that is done already (the one before is %s).\n",
			filepath.Join(f.dir, storeconfig.StoreFile), s.Epoch, done)
		return p.tellResolved(say, f, s, resolved{Epoch: s.Epoch, Site: f.site, Replaced: f.replace != "", Done: true,
			Online: runs.online, Before: done})
	}
	lost, err := runs.lost(f)
	if err != nil {
		return err
	}
	switch {
	case runs.begun:
		fmt.Fprintf(say, "The machines know of a later epoch than %d, which %s is of: a change was begun, and is "+
			"completed now.\n", s.Epoch, filepath.Join(f.dir, storeconfig.StoreFile))
	case lost:
		fmt.Fprint(say, resolveWarning(f.site, runs.there))
	default:
		fmt.Fprintf(say, "Site %s is there. It leaves when all that it voted for is carried out at the other sites, so "+
			"nothing is lost; its machines end then.\n", f.site)
	}
	if !f.yes {
		if err := p.confirm(ctx, say, f.site); err != nil {
			return err
		}
	}
	if runs.online {
		if next, err = p.changeOnline(ctx, say, f, c, next, lost); err != nil {
			return err
		}
	}
	return p.advance(say, f, next, resolved{Epoch: next.Epoch, Site: f.site, Replaced: f.replace != "", Lost: lost,
		Online: runs.online})
}

// whatAnswers is which machines run.
type whatAnswers struct {
	online bool     // there are some, which have to agree
	begun  bool     // some are of a later epoch than the file
	there  []string // machines of the site that leaves
	away   []string // those of them that do not answer
}

func whatRuns(ctx context.Context, c *storeservice.Client, f resolveFlags, epoch uint64) (r whatAnswers) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	for _, status := range c.Status(ctx) {
		there := status.State != storeservice.Unreachable && status.State != storeservice.Fenced
		r.online = r.online || there
		r.begun = r.begun || there && status.Epoch > epoch
		switch {
		case status.Site != f.site:
		case there:
			r.there = append(r.there, status.Machine)
		case status.State == storeservice.Unreachable:
			r.away = append(r.away, status.Machine)
		}
	}
	return r
}

// lost reports whether the site is gone for good: none of its machines answers, or the operator
// says so of those that do not.
func (r whatAnswers) lost(f resolveFlags) (bool, error) {
	switch {
	case f.lost && len(r.there) > 0 && len(r.away) == 0:
		return false, fmt.Errorf("store resolve: --lost, and all machines of site %s answer: without it the site leaves "+
			"in order, and nothing is lost; or stop what must not go on", f.site)
	case len(r.there) > 0 && len(r.away) > 0 && !f.lost && !r.begun:
		return false, fmt.Errorf("store resolve: of site %s %s answers, and %s does not: start that, so that the site "+
			"leaves in order; or if it is gone for good, disk and all, run this again with --lost; nothing was changed",
			f.site, strings.Join(r.there, ", "), strings.Join(r.away, ", "))
	}
	return len(r.there) == 0 || f.lost, nil
}

// changeOnline has the machines agree, and returns what they agree on. If that is another change,
// which this one has completed, it is written, and an error says so.
func (p *program) changeOnline(
	ctx context.Context, say io.Writer, f resolveFlags, c *storeservice.Client, next *storeconfig.Store, lost bool,
) (*storeconfig.Store, error) {
	ctx, cancel := context.WithTimeout(ctx, f.within)
	defer cancel()
	gone := ""
	if lost {
		gone = f.site
	}
	chosen, err := c.Change(ctx, next, gone, func(format string, a ...any) { fmt.Fprintf(say, format+"\n", a...) })
	if err != nil {
		return nil, fmt.Errorf("store resolve: %w", err)
	}
	want, err := next.Encode()
	if err != nil {
		return nil, err
	}
	got, err := chosen.Encode()
	if err != nil {
		return nil, err
	}
	if bytes.Equal(want, got) {
		return chosen, nil
	}
	if _, err := storeconfig.Advance(f.dir, chosen); err != nil {
		return nil, fmt.Errorf("store resolve: another change was under way, and is what epoch %d is: take the store.json "+
			"of the operator who made it, and try again; here it cannot be written: %w", chosen.Epoch, err)
	}
	return nil, fmt.Errorf("store resolve: another change was under way, and is complete now: in epoch %d the sites "+
		"are %s, and %s says so; try again if there is something left to do", chosen.Epoch, chosen.SiteNames(),
		filepath.Join(f.dir, storeconfig.StoreFile))
}

// advance writes the files of the next epoch, and says what is left to do.
func (p *program) advance(say io.Writer, f resolveFlags, next *storeconfig.Store, r resolved) error {
	var err error
	if r.Before, err = storeconfig.Advance(f.dir, next); err != nil {
		return fmt.Errorf("store resolve: %w", err)
	}
	fmt.Fprintf(say, "%s is of epoch %d now (the one before is %s).\n", filepath.Join(f.dir, storeconfig.StoreFile),
		next.Epoch, r.Before)
	return p.tellResolved(say, f, next, r)
}

// tellResolved says what is left to do in an epoch whose files are written.
func (p *program) tellResolved(say io.Writer, f resolveFlags, next *storeconfig.Store, r resolved) error {
	what := "Copy it to all machines and clients, then start the machines:"
	if r.Online {
		what = "The machines know it, and clients that run learn of it from them. Copy it to clients for their next start."
	}
	r.File = filepath.Join(f.dir, storeconfig.StoreFile)
	fmt.Fprintln(say, what)
	for _, site := range next.Sites {
		for _, m := range site.Machines {
			if !site.Fenced && (!r.Online || site.Since == next.Epoch) {
				command := "foresay store serve --config " + filepath.Join(f.dir, storeconfig.MachineFile(m.Name))
				r.Serve = append(r.Serve, command)
				fmt.Fprintf(say, "%s    # at %s\n", command, site.Name)
			}
		}
	}
	if r.Replaced {
		fmt.Fprintf(say, "A machine of the new site needs its own file, its certificate and key, and ca.pem too. It "+
			"copies what the other sites have; until\n"+
			"'foresay store status --wait' says that it is admitted, no other site may be lost.\n")
	}
	if f.json {
		return p.WriteJSON(r)
	}
	return nil
}

// doneBefore returns the file of the epoch before a store's own if that is what the command would
// make of it: the command was interrupted at its end. Otherwise it is empty.
func doneBefore(s *storeconfig.Store, f resolveFlags) string {
	before, name, err := storeconfig.ReadKept(f.dir, s.Epoch-1)
	if err != nil {
		return ""
	}
	next, err := nextEpoch(before, f)
	if err != nil {
		return ""
	}
	want, err := next.Encode()
	if err != nil {
		return ""
	}
	if got, err := s.Encode(); err != nil || !bytes.Equal(want, got) {
		return ""
	}
	return name
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
		return nil, command.Usagef("store resolve: --replace: %w", err)
	}
	err = storeconfig.NameMachines(f.dir, s.Epoch, &by)
	if err == nil {
		var next *storeconfig.Store
		if next, err = s.Replaced(f.site, by); err == nil {
			return next, nil
		}
	}
	return nil, fmt.Errorf("store resolve: %w", err)
}

// resolveWarning says what it means to fence a site. See store/replicatedcommit/DESIGN.md,
// "Blocking".
func resolveWarning(site string, there []string) string {
	answered := "No machine of " + site + " answered."
	if len(there) > 0 {
		answered = "Of its machines " + strings.Join(there, ", ") + " answered, and will be ended."
	}
	return fmt.Sprintf("Site %s will not take part any more, for good: its machines must never start again, whatever "+
		"is on their disks.\n"+
		"%s One that only cannot be reached from here must be stopped.\n"+
		"What this can lose: a transaction whose client was told that it had committed, if %s and one other site voted "+
		"for it, the rest did not, and\n"+
		"word of the decision reached no disk of the other sites before %s was lost. Such a transaction counts as aborted "+
		"then. All else stays.\n",
		site, answered, site, site)
}

// confirm has a person type the site's name.
func (p *program) confirm(ctx context.Context, say io.Writer, site string) error {
	if !p.atTerminal() {
		return command.Usagef("store resolve: there is nobody to ask; --yes goes on without")
	}
	fmt.Fprintf(say, "Type %s to go on: ", site)
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
