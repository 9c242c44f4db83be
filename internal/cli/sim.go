package cli

import (
	"encoding/json"
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/sim"
)

func (p *program) simCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run replicated protocols in the simulator, under faults",
		Long: "Run a replicated protocol in the simulator: virtual time, faults drawn from a seed, every run repeatable.\n" +
			"What the conformance suite plays, and the command that a failing test prints, is 'foresay sim run'.",
	}
	group(c)
	c.AddCommand(p.simRunCommand(), p.simListCommand())
	return c
}

// named is a line of a list.
type named struct {
	Name string `json:"name"`
	Doc  string `json:"doc"`
}

func (p *program) simListCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Name the protocols and the faults",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var protocols []named
			for _, proto := range catalog.Protocols() {
				protocols = append(protocols, named{proto.Name, proto.Doc})
			}
			if asJSON {
				return p.writeJSON(struct {
					Protocols []named `json:"protocols"`
					Faults    []named `json:"faults"`
				}{protocols, faultList()})
			}
			t := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "protocols")
			for _, n := range protocols {
				fmt.Fprintf(t, "  %s\t%s\n", n.Name, n.Doc)
			}
			fmt.Fprintln(t, "faults, for --faults")
			for _, n := range faultList() {
				fmt.Fprintf(t, "  %s\t%s\n", n.Name, n.Doc)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON instead of a table")
	return c
}

// faultList returns what --faults can hold.
func faultList() []named {
	docs := map[sim.Faults]string{
		sim.Crash: "a node crashes, between two calls or within one, and comes back", sim.Power: "all nodes crash at once, and come back one by one",
		sim.LostDisk: "a node crashes for good, with its disk", sim.SlowDisk: "a disk takes long", sim.Pause: "a node stands still",
		sim.Skew: "a clock is off, and drifts", sim.Jump: "a clock jumps", sim.Partition: "the nodes fall into two groups",
		sim.OneWay: "a node is not heard by some others, or does not hear them", sim.Partial: "two nodes do not reach each other, others reach both",
		sim.Reset: "a connection is lost with what is under way", sim.Slow: "a link takes longer, and carries less",
		sim.Jitter: "all messages take a random time longer", sim.Loss: "single messages are lost, or late on links like TCP's",
		sim.Duplicate: "messages arrive twice; makes links carry datagrams", sim.Reorder: "messages overtake others; makes links carry datagrams",
	}
	var out []named
	for f := sim.Faults(1); sim.AllFaults.Has(f); f <<= 1 {
		out = append(out, named{f.String(), docs[f]})
	}
	return append(out,
		named{"all", "all of them"}, named{"stream", "those that leave links in order"}, named{"none", "none of them"},
		named{swarmName, "some of all, by the seed, as the conformance suite has it"})
}

// writeJSON writes a value as every --json does.
func (p *program) writeJSON(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeJSONLine is writeJSON on one line, for what comes one by one.
func (p *program) writeJSONLine(v any) error {
	e := json.NewEncoder(p.Out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
