package cli

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/catalog"
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
