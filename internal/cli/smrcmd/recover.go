package smrcmd

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
)

func (p *program) recoverCommand() *cobra.Command {
	var o service.RecoverOptions
	var dead []string
	var asJSON bool
	c := &cobra.Command{
		Use:   "recover",
		Short: "Make a new group from the disk of one replica, after a majority is lost for good",
		Long: `Make a new group of one replica from the disk of a replica that is left, when a majority of the
group is lost for good. The replica must not run. Everything that it had executed is there; what
it had taken and not executed is taken over too. WHAT THE OTHERS HAD ACKNOWLEDGED AND THIS DISK
HAS NOT HEARD OF IS LOST, and nobody can tell what that is. If several disks are left, run it for
each without --accept-loss, and take the one that has applied most.

Without --dead and --accept-loss it tells what it would do, and changes nothing. The old directory
stays as it is. The new group bears the name of this recovery, which the replica's file and the clients'
say: old members and old clients are refused. Then 'foresay smr init --join' and 'foresay smr add'
bring further replicas. NEVER START THE OLD MEMBERS AGAIN: a majority of them goes on as the old
group.

Versions, lease IDs and tokens of locks go on --skip-versions later, so that none of those that are
lost is given a second time: 'cas' with a lost version fails, and 'watch --after' says that the
changes are not kept. The number has to be larger than what is lost; keys keep the versions they
have.

A disk of fastpaxos, domino or domino-direct that an earlier version of the program has written
does not tell what was executed, and is refused: restore a backup.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if o.Config == "" {
				return command.Usagef("smr recover: --config is missing: the file of the replica whose disk is left")
			}
			for _, text := range dead {
				id, err := command.ReplicaID(text)
				if err != nil {
					return command.Usagef("smr recover: --dead: %w", err)
				}
				o.Dead = append(o.Dead, id)
			}
			if o.SkipVersions == 0 {
				return command.Usagef("smr recover: --skip-versions: want 1 at least: versions that are lost would be given again")
			}
			return p.recover(o, asJSON)
		},
	}
	flags := c.Flags()
	flags.StringVar(&o.Config, "config", "", "the `file` of the replica whose disk is left")
	flags.StringVar(&o.Client, "client", "", "the clients' `file`, to be written anew as well")
	flags.StringSliceVar(&dead, "dead", nil, "the `IDs` of all other members, with commas between: they are lost for good")
	flags.BoolVar(&o.AcceptLoss, "accept-loss", false, "accept that what only the others had is lost")
	addSkipVersions(flags, &o.SkipVersions)
	flags.BoolVar(&asJSON, "json", false, "write JSON")
	return c
}

func (p *program) recover(o service.RecoverOptions, asJSON bool) error {
	r, err := service.Recover(o)
	if err != nil && r == nil {
		return fmt.Errorf("smr %w", err)
	}
	var told error
	if asJSON {
		told = p.WriteJSON(r)
	} else {
		told = writeRecovery(p.Out, r)
	}
	switch {
	case errors.Is(err, service.ErrUnconfirmed):
		return errors.Join(command.Usagef("smr %w; to go on: --dead %s --accept-loss", err, idList(r.Others)), told)
	case err != nil:
		return errors.Join(fmt.Errorf("smr %w", err), told)
	}
	return told
}

func writeRecovery(w io.Writer, r *service.Recovery) error {
	others := "there are none"
	if len(r.Others) > 0 {
		others = idList(r.Others)
	}
	of := r.Protocol
	if r.Groups > 1 {
		of += fmt.Sprintf(", sums of %d groups", r.Groups)
	}
	fmt.Fprintf(w, "replica %d of %s: %d keys of %d bytes, executed up to slot %d; the other members: %s\n",
		r.Replica, of, r.Keys, r.Bytes, r.Applied, others)
	fmt.Fprintf(w, "commands that are taken over though this disk does not say that they were decided: %d\n", r.Doubtful)
	fmt.Fprintln(w, "what the others had acknowledged and this disk has not heard of is lost")
	fmt.Fprintf(w, "versions: the newest one here is %d; %d are skipped, as some of them may be lost\n", r.Version,
		r.SkippedVersions)
	if !r.Done {
		return nil
	}
	fmt.Fprintf(w, "recovery %s: %s, on %s (before: %s)\n", r.Recovery, r.Config, r.Data, r.OldConfig)
	if r.Client != "" {
		_, err := fmt.Fprintf(w, "clients: %s (before: %s)\n", r.Client, r.OldClient)
		return err
	}
	_, err := fmt.Fprintf(w, "clients: set \"recovery\": %q, and replica %d as the only member, in their files\n",
		r.Recovery, protocol.ID(r.Replica))
	return err
}
