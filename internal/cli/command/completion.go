package command

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/sim"
	"github.com/foresay/foresay/smr"
	"github.com/foresay/foresay/store/client"
	"github.com/foresay/foresay/wan"
)

// choices is the annotation of a flag with values of its own.
const choices = "choices"

// SetChoices says which names a flag can have as its value, where that is not what flags of its
// name can have elsewhere.
func SetChoices(f *pflag.Flag, names []string) {
	f.Annotations = map[string][]string{choices: names}
}

// ChoicesOf returns the values that a flag can have, if these are names.
func ChoicesOf(f *pflag.Flag) []string {
	if names := f.Annotations[choices]; names != nil {
		return names
	}
	return Choices(f.Name)
}

// Choices returns the values that flags of a name can have where SetChoices says nothing else.
func Choices(flag string) []string {
	switch flag {
	case "protocol":
		return catalog.Names()
	case "wan":
		return Presets()
	case "faults":
		var names []string
		for _, f := range FaultList() {
			names = append(names, f.Name)
		}
		return names
	case "mode":
		return []string{client.Spec.String(), client.Predicated.String(), client.Auto.String(), client.Off.String(),
			client.GRPC.String()}
	case "ack":
		return []string{smr.AckDurable.String(), smr.AckOrdered.String(), smr.AckExecuted.String()}
	case "by":
		var names []string
		for _, ack := range []string{"durable", "executed"} {
			for _, share := range []string{"p50", "p95", "worst"} {
				names = append(names, ack+"-"+share)
			}
		}
		return names
	}
	return nil
}

// Presets are the names of the networks of the papers.
func Presets() (names []string) {
	for _, d := range wan.Presets() {
		names = append(names, d.Name)
	}
	return names
}

// Complete has shells complete the values of flags, of c and of the commands below it: names, files
// and directories; nothing where any value would do.
func Complete(c *cobra.Command) {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if _, known := c.GetFlagCompletionFunc(f.Name); known {
			return
		}
		kind, _ := pflag.UnquoteUsage(f)
		several := f.Value.Type() == "stringSlice" || f.Name == "faults"
		_ = c.RegisterFlagCompletionFunc(f.Name, func(_ *cobra.Command, _ []string, begun string) ([]string,
			cobra.ShellCompDirective) {
			names := ChoicesOf(f)
			switch {
			case names != nil && several:
				return continued(begun, names), cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
			case kind == "file":
				return begins(begun, names), cobra.ShellCompDirectiveDefault
			case kind == "directory":
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
			return begins(begun, names), cobra.ShellCompDirectiveNoFileComp
		})
	})
	for _, sub := range c.Commands() {
		Complete(sub)
	}
}

func begins(begun string, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, begun) })
}

// continued completes the last of some names with commas between.
func continued(begun string, names []string) []string {
	at := strings.LastIndexByte(begun, ',') + 1
	given := strings.Split(begun[:at], ",")
	out := begins(begun[at:], slices.DeleteFunc(slices.Clone(names), func(n string) bool {
		return slices.Contains(given, n)
	}))
	for i, n := range out {
		out[i] = begun[:at] + n
	}
	return out
}

// Named is a line of a list.
type Named struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

// FaultList returns what --faults can hold.
func FaultList() []Named {
	docs := map[sim.Faults]string{
		sim.Crash:    "a node crashes, between two calls or within one, and comes back",
		sim.Power:    "all nodes crash at once, and come back one by one",
		sim.LostDisk: "a node crashes for good, with its disk", sim.SlowDisk: "a disk takes long",
		sim.Pause: "a node stands still",
		sim.Skew:  "a clock is off, and drifts", sim.Jump: "a clock jumps", sim.Partition: "the nodes fall into two groups",
		sim.OneWay:  "a node is not heard by some others, or does not hear them",
		sim.Partial: "two nodes do not reach each other, others reach both",
		sim.Reset:   "a connection is lost with what is under way", sim.Slow: "a link takes longer, and carries less",
		sim.Jitter:    "all messages take a random time longer",
		sim.Loss:      "single messages are lost, or late on links like TCP's",
		sim.Duplicate: "messages arrive twice; makes links carry datagrams",
		sim.Reorder:   "messages overtake others; makes links carry datagrams",
	}
	var out []Named
	for f := sim.Faults(1); sim.AllFaults.Has(f); f <<= 1 {
		out = append(out, Named{f.String(), docs[f]})
	}
	return append(out,
		Named{"all", "all of them"}, Named{"stream", "those that leave links in order"}, Named{"none", "none of them"},
		Named{SwarmName, "some of all, by the seed, as the conformance suite has it"})
}

// SwarmName is the --faults of which the seed chooses some.
const SwarmName = "swarm"
