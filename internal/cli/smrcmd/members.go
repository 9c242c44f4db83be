package smrcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/smr/service"
)

func (p *program) addCommand() *cobra.Command {
	var f clientFlags
	var learner bool
	c := &cobra.Command{
		Use:   "add ID HOST:PORT",
		Short: "Add a replica to the cluster",
		Long: `Add a replica to the cluster. It must run already, with an empty disk, an ID that none has had,
and "join": true in its file; 'foresay smr init --dir DIR --join ID' writes that. From its start
on it is a learner: it gets the state and what is decided, and does not count. This command waits
until it is up to date, as long as it answers, and then makes it a member, of all groups; with
--learner it leaves it a learner, for 'foresay smr promote'. If the command is interrupted, run it
again. One replica is added or removed at a time.`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			m, err := parseMember(args[0] + "=" + args[1])
			if err != nil {
				return command.Usagef("smr add: %w", err)
			}
			return p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				return p.addReplica(ctx, client, &f, m, learner)
			})
		},
	}
	f.add(c.Flags())
	c.Flags().BoolVar(&learner, "learner", false, "wait until it is up to date, and leave it a learner")
	return c
}

func (p *program) addReplica(
	ctx context.Context, client *service.Client, f *clientFlags, m service.Member, keep bool,
) error {
	learning, err := p.awaitLearner(ctx, client, f, m.ID)
	switch {
	case errors.Is(err, service.ErrNoLearners) && !keep:
		if learning, err = awaitJoiner(ctx, client, f, m.ID); err != nil {
			return fmt.Errorf("smr add: %w", err)
		}
	case errors.Is(err, errMember) && !keep:
	case errors.Is(err, errMember):
		return fmt.Errorf("smr add: replica %d is a member already", m.ID)
	case err != nil:
		return fmt.Errorf("smr add: %w", err)
	}
	if at := learning.Address; at != "" && at != m.Address {
		return fmt.Errorf("smr add: replica %d says that it is at %s, not at %s: add it there, or have its file advertise "+
			"the other address and start it again", m.ID, at, m.Address)
	}
	if keep {
		if f.json {
			return p.WriteJSON(struct {
				Learner protocol.ID `json:"learner"`
				Address string      `json:"address"`
				Behind  smr.Slot    `json:"behind"`
			}{m.ID, learning.Address, learning.Behind})
		}
		_, err := fmt.Fprintf(p.Out, "replica %d at %s is a learner, %d slots behind; 'foresay smr promote %d' makes it a "+
			"member\n", m.ID, learning.Address, learning.Behind, m.ID)
		return err
	}
	return p.change(ctx, client, f, smr.Change{Add: smr.Member{ID: m.ID, Address: m.Address}})
}

// errMember says that a replica to be added is a member.
var errMember = errors.New("it is a member already")

// awaitLearner waits until a replica has the state: as long as it answers, and for the time limit
// if it does not.
func (p *program) awaitLearner(
	ctx context.Context, client *service.Client, f *clientFlags, id protocol.ID,
) (service.Learning, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	limit := time.AfterFunc(f.timeout, func() { stop(context.DeadlineExceeded) })
	defer limit.Stop()
	is, err := isMember(ctx, client, id)
	if err != nil {
		return service.Learning{}, err
	}
	if is {
		return service.Learning{}, errMember
	}
	told := time.Now()
	return client.AwaitLearner(ctx, id, func(l service.Learning) {
		if l.Heard {
			limit.Reset(f.timeout)
		}
		if time.Since(told) >= learnReport {
			told = time.Now()
			fmt.Fprintf(p.Err, "smr add: replica %d has the state of %d of %d groups\n", id, l.Groups, client.Groups())
		}
	})
}

// awaitJoiner waits until a replica of a protocol without learners has said that it is there.
func awaitJoiner(
	ctx context.Context, client *service.Client, f *clientFlags, id protocol.ID,
) (service.Learning, error) {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	for {
		l, found, err := client.Learner(ctx, id)
		if err != nil || found {
			return l, err
		}
		select {
		case <-ctx.Done():
			return l, fmt.Errorf("replica %d has not said that it is there: start it with \"join\": true in its file: %w", id,
				ctx.Err())
		case <-time.After(joinPause):
		}
	}
}

// joinPause is the time between two questions after a replica that is to be added.
const joinPause = 100 * time.Millisecond

// learnReport is the time between two words about a replica that is brought up to date.
const learnReport = 5 * time.Second

// isMember reports whether a replica is a member of all groups.
func isMember(ctx context.Context, client *service.Client, id protocol.ID) (bool, error) {
	brief, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	statuses, err := client.Status(brief)
	if err != nil {
		return false, err
	}
	for _, g := range service.ByGroup(statuses) {
		in := false
		for _, s := range g {
			for _, m := range s.Members {
				in = in || m.ID == id
			}
		}
		if !in {
			return false, nil
		}
	}
	return len(statuses) > 0, nil
}

func (p *program) change(ctx context.Context, client *service.Client, f *clientFlags, change smr.Change) error {
	ctx, cancel := context.WithTimeout(ctx, f.timeout)
	defer cancel()
	if err := client.Change(ctx, change); err != nil {
		return fmt.Errorf("smr: %v: %w", change, err)
	}
	if f.json {
		return p.WriteJSON(struct {
			Added   protocol.ID `json:"added,omitempty"`
			Removed protocol.ID `json:"removed,omitempty"`
		}{change.Add.ID, change.Remove})
	}
	_, err := fmt.Fprintf(p.Out, "done: %v\n", change)
	return err
}

func (p *program) promoteCommand() *cobra.Command {
	return p.memberCommand("promote ID", "Make a learner a member",
		"Make a learner a member of all groups, where it says that it is. If it is not up to date, the command waits for "+
			"that until --timeout. Run again, it does nothing more.",
		func(ctx context.Context, client *service.Client, f *clientFlags, id protocol.ID) error {
			asked, cancel := context.WithTimeout(ctx, f.timeout)
			defer cancel()
			m, err := client.Promote(asked, id)
			if err != nil {
				return fmt.Errorf("smr promote: %w", err)
			}
			if f.json {
				return p.WriteJSON(struct {
					Added   protocol.ID `json:"added"`
					Address string      `json:"address"`
				}{m.ID, m.Address})
			}
			_, err = fmt.Fprintf(p.Out, "replica %d at %s is a member\n", m.ID, m.Address)
			return err
		})
}

func (p *program) removeCommand() *cobra.Command {
	return p.memberCommand("remove ID", "Remove a replica from the cluster",
		"Remove a replica from the cluster, from all groups. It need not be there any more. It does not come back under "+
			"its ID. If the command is interrupted, run it again.",
		func(ctx context.Context, client *service.Client, f *clientFlags, id protocol.ID) error {
			return p.change(ctx, client, f, smr.Change{Remove: id})
		})
}

// memberCommand is a command about one replica.
func (p *program) memberCommand(
	use, short, long string, do func(context.Context, *service.Client, *clientFlags, protocol.ID) error,
) *cobra.Command {
	var f clientFlags
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			id, err := command.ReplicaID(args[0])
			if err != nil {
				return command.Usagef("smr: %w", err)
			}
			return p.withLastingClient(c.Context(), &f, func(ctx context.Context, client *service.Client) error {
				return do(ctx, client, &f, id)
			})
		},
	}
	f.add(c.Flags())
	return c
}
