package smrcmd

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/cli/command"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/smr/service"
)

// routingFlags say how keys are divided among groups.
type routingFlags struct {
	groups int
	by     string
	splits []string
}

func (f *routingFlags) add(flags *pflag.FlagSet, with string) {
	flags.IntVar(&f.groups, "groups", 1, with+"how many groups share the keys")
	flags.StringVar(&f.by, "by", "", with+"what chooses a key's group: its hash, or the range that it is in (default: "+
		"hash, or range with --split)")
	flags.StringSliceVar(&f.splits, "split", nil,
		with+"the `KEY`s with which the second group begins, the third, and so on, with commas between")
}

// routing returns what the flags ask for.
func (f *routingFlags) routing(name string) (service.Routing, error) {
	var r service.Routing
	switch {
	case f.groups < 1 || f.groups > service.MaxGroups:
		return r, command.Usagef("%s: --groups is %d; want 1 to %d", name, f.groups, service.MaxGroups)
	case f.by != "" && f.by != "hash" && f.by != "range":
		return r, command.Usagef("%s: --by is %q; want hash or range", name, f.by)
	case f.by == "hash" && len(f.splits) > 0:
		return r, command.Usagef("%s: --split is for --by range", name)
	case f.by == "range" && len(f.splits) == 0:
		return r, command.Usagef("%s: --by range needs --split, the keys with which groups begin", name)
	case len(f.splits) > 0 && f.groups != 1 && f.groups != len(f.splits)+1:
		return r, command.Usagef("%s: --groups is %d, and --split makes %d", name, f.groups, len(f.splits)+1)
	case len(f.splits) > 0:
		r.Splits = f.splits
	case f.groups > 1:
		r.Groups = f.groups
	}
	return r, nil
}

// writeGroups shows several groups: a line for each, and one for each replica.
func writeGroups(w io.Writer, statuses []service.Status) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "group\tleader\tterm\tcommitted\tkeys\tbehind\tmembers\tlearners")
	leads := map[protocol.ID]int{}
	for _, g := range service.ByGroup(statuses) {
		row := groupRow(g)
		if !row.best.Leaderless {
			leads[row.best.Leader]++
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", row.best.Group, leaderName(row.best), termName(row.best.Term),
			row.best.Committed, row.best.Keys, row.behind,
			idList(row.best.Members), orDash(idList(row.learners)))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintln(t, "replica\taddress\tleads\tstate")
	for _, s := range replicasOf(statuses) {
		state := "up"
		if s.Role == service.Unreachable || s.Role == service.Learner || s.Role == "refused" || s.Role == "removed" {
			state = s.Role
		}
		number := fmt.Sprint(leads[s.Replica])
		if s.Leaderless {
			number = "-"
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\n", s.Replica, s.Address, number, state)
	}
	return t.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// groupStatus is what a line says about a group.
type groupStatus struct {
	best     service.Status // of the replica that knows most
	behind   uint64         // the most that any replica is
	learners []service.Member
}

func groupRow(g []service.Status) groupStatus {
	row := groupStatus{best: g[0]}
	for _, s := range g {
		if s.Role == service.Unreachable {
			continue
		}
		better := s.Term > row.best.Term || s.Term == row.best.Term && s.Leader != 0 && row.best.Leader == 0
		if row.best.Role == service.Unreachable || row.best.Role == service.Learner && s.Role != service.Learner || better &&
			s.Role != service.Learner {
			row.best = s
		}
		row.behind = max(row.behind, uint64(s.Behind))
		for _, l := range s.Learners {
			if !slices.Contains(row.learners, l) {
				row.learners = append(row.learners, l)
			}
		}
	}
	return row
}

// replicasOf returns a status of each replica: the worst one, if they differ.
func replicasOf(statuses []service.Status) []service.Status {
	var out []service.Status
	for _, s := range statuses {
		i := slices.IndexFunc(out, func(o service.Status) bool { return o.Replica == s.Replica })
		switch {
		case i < 0:
			out = append(out, s)
		case s.Role == service.Unreachable || s.Role == service.Learner || s.Role == "refused" || s.Role == "removed":
			out[i] = s
		}
	}
	slices.SortFunc(out, func(a, b service.Status) int { return int(int64(a.Replica) - int64(b.Replica)) })
	return out
}

// errorsOf returns why replicas did not answer, or what they wait for, each once.
func errorsOf(statuses []service.Status) []string {
	var out []string
	for _, s := range statuses {
		why := cmp.Or(s.Error, s.Waits)
		line := fmt.Sprintf("replica %d: %s", s.Replica, why)
		if why != "" && !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out
}

func idList(members []service.Member) string {
	var ids []string
	for _, m := range members {
		ids = append(ids, fmt.Sprint(m.ID))
	}
	return strings.Join(ids, ",")
}
