package bftcmd

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/bft"
	"github.com/foresay/foresay/bft/service"
	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/internal/cli/configfile"
	"github.com/foresay/foresay/protocol"
)

// changeLong is what all commands that change the members say.
const changeLong = `

The caller must be an administrator, as the group's file says. The change is ordered like any
command, one at a time. What is ordered behind it goes by the members and keys that follow: a new
epoch. The command returns when a quorum is there; if it is interrupted, run it again: a change that
was made already is refused.`

// memberCommands are the commands that change the members.
func (p *program) memberCommands() []*cobra.Command {
	return []*cobra.Command{
		p.changeCommand(bft.Add, "add ID HOST:PORT KEY", "Add a replica to the group",
			`Add a replica to the group. 'foresay bft init --dir DIR --join ID' makes its files and its key, of
which KEY is the public one. Start it before or after this command; it fetches the state.`, 3, 3),
		p.changeCommand(bft.Remove, "remove ID", "Remove a replica from the group",
			`Remove a replica from the group. At least four must be left. Do not stop it before this command has
returned: the others may need what it knows.`, 1, 1),
		p.changeCommand(bft.Replace, "replace ID KEY [HOST:PORT]", "Replace a replica that has lost its disk",
			`Replace a replica that has lost its disk, or is not to be trusted any more, by a new one with the
same ID and another key. 'foresay bft init --dir DIR --join ID' makes its files and its key, of which
KEY is the public one, when the directory of the old one is gone. Until the change is in force the
old one counts as faulty; from there on nobody listens to its key.`, 2, 3),
		p.changeCommand(bft.RotateKeys, "rotate-keys ID KEY", "Give a replica another key",
			`Give a replica, which keeps its disk, another key. First have it made on the replica's machine, by
'foresay bft init --dir DIR --next-key ID', which shows the public key. The replica turns to it by
itself when the change is in force, and removes the old one.`, 2, 2),
	}
}

func (p *program) changeCommand(kind bft.ChangeKind, use, short, long string, least, most int) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: use, Short: short, Long: long + changeLong,
		Args: cobra.RangeArgs(least, most),
		RunE: func(c *cobra.Command, args []string) error {
			change, err := parseChange(kind, args)
			if err != nil {
				return command.Usagef("bft %v: %w", kind, err)
			}
			return p.withClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				if err := p.change(ctx, client, change, f.json); err != nil {
					return fmt.Errorf("bft %v: %w", kind, err)
				}
				return nil
			})
		},
	}
	f.add(c.Flags())
	return c
}

// parseChange returns the change that arguments are: an ID, and a key and an address in the order
// in which the command has them.
func parseChange(kind bft.ChangeKind, args []string) (change bft.Change, err error) {
	change.Kind = kind
	if change.Party.ID, err = command.ReplicaID(args[0]); err != nil || kind == bft.Remove {
		return change, err
	}
	key, address := args[1], ""
	switch {
	case kind == bft.Add:
		address, key = args[1], args[2]
	case len(args) > 2:
		address = args[2]
	}
	if change.Party.Key, err = service.ParseKey(key); err != nil || address == "" {
		return change, err
	}
	change.Party.Address = address
	return change, configfile.CheckAddress("the address", address, false)
}

func (p *program) change(ctx context.Context, c *service.Client, change bft.Change, asJSON bool) error {
	if !service.IsReplica(change.Party.ID) {
		return command.Usagef("%d is no replica's ID", change.Party.ID)
	}
	e, err := c.Change(ctx, change)
	if err == nil {
		err = c.AwaitEpoch(ctx, e)
	}
	if err != nil {
		return err
	}
	members := c.Members()
	if asJSON {
		var ids []protocol.ID
		for _, m := range members.Members {
			ids = append(ids, m.ID)
		}
		return p.WriteJSON(struct {
			Change  string        `json:"change"`
			Replica protocol.ID   `json:"replica"`
			Epoch   bft.Epoch     `json:"epoch"`
			Members []protocol.ID `json:"members"`
		}{change.Kind.String(), change.Party.ID, e, ids})
	}
	_, err = fmt.Fprintf(p.Out, "done: %v replica %d; epoch %d has begun, with %d members\n", change.Kind, change.Party.ID,
		e, len(members.Members))
	return err
}

// initJoin makes the files of one more replica, and shows what to do with them.
func (p *program) initJoin(dir string, id uint32, address string) error {
	c, err := service.InitJoin(dir, protocol.ID(id), address)
	if err != nil {
		return fmt.Errorf("bft init: %w", err)
	}
	file := filepath.Join(dir, service.ConfigFile(c.ID))
	fmt.Fprintf(p.Out, "foresay bft serve --config %s    # %s\n", file, c.Listen)
	client := filepath.Join(dir, service.ClientFile(0))
	if c.Replaces() {
		_, err = fmt.Fprintf(p.Out, "foresay bft replace %d %s %s --config %s\n", c.ID, c.PublicKey(), c.Listen, client)
	} else {
		_, err = fmt.Fprintf(p.Out, "foresay bft add %d %s %s --config %s\n", c.ID, c.Listen, c.PublicKey(), client)
	}
	return err
}

// initNextKey makes the next key of a replica, and shows what to do with it.
func (p *program) initNextKey(dir string, id uint32) error {
	cfg, err := service.ReadConfig(filepath.Join(dir, service.ConfigFile(protocol.ID(id))))
	if err != nil {
		return fmt.Errorf("bft init: %w", err)
	}
	key, err := service.InitNextKey(cfg)
	if err != nil {
		return fmt.Errorf("bft init: %w", err)
	}
	_, err = fmt.Fprintf(p.Out, "foresay bft rotate-keys %d %s --config %s\n", id, key,
		filepath.Join(dir, service.ClientFile(0)))
	return err
}
