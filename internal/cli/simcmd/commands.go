package simcmd

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/foresay/foresay/internal/catalog"
	"github.com/foresay/foresay/internal/cli/command"
)

func (p *program) command() *cobra.Command {
	c := &cobra.Command{
		Use:   "sim",
		Short: "Run replicated protocols in the simulator, under faults",
		Long: `Run a replicated protocol in the simulator: virtual time, faults drawn from a seed, every run
repeatable. What the conformance suite plays, and the command that a failing test prints, is
'foresay sim run'.`,
	}
	command.Group(c)
	c.AddCommand(p.runCommand(), p.listCommand())
	return c
}

func (p *program) listCommand() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "list",
		Short: "Name the protocols and the faults",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			var protocols []command.Named
			for _, proto := range catalog.Protocols() {
				protocols = append(protocols, command.Named{Name: proto.Name, Doc: proto.Doc})
			}
			var byzantine, clients []command.Named
			for _, name := range catalog.ByzantineNames() {
				proto, err := catalog.Byzantine(name)
				if err != nil {
					return err
				}
				byzantine = append(byzantine, command.Named{Name: name, Doc: command.Joined(proto.Strategies)})
				clients = append(clients, command.Named{Name: name, Doc: command.Joined(proto.ClientStrategies)})
			}
			if asJSON {
				return p.WriteJSON(struct {
					Protocols []command.Named `json:"protocols"`
					Byzantine []command.Named `json:"byzantine"`
					Clients   []command.Named `json:"clients"`
					Faults    []command.Named `json:"faults"`
				}{protocols, byzantine, clients, command.FaultList()})
			}
			t := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
			fmt.Fprintln(t, "protocols")
			for _, n := range protocols {
				fmt.Fprintf(t, "  %s\t%s\n", n.Name, n.Doc)
			}
			fmt.Fprintln(t, "protocols whose replicas may lie, and strategies, for --traitors")
			for _, n := range byzantine {
				fmt.Fprintf(t, "  %s\t%s\n", n.Name, n.Doc)
			}
			fmt.Fprintf(t, "what their clients may do, for --traitors, from the ID %d on\n", firstClient)
			for _, n := range clients {
				fmt.Fprintf(t, "  %s\t%s\n", n.Name, n.Doc)
			}
			fmt.Fprintln(t, "faults, for --faults")
			for _, n := range command.FaultList() {
				fmt.Fprintf(t, "  %s\t%s\n", n.Name, n.Doc)
			}
			return t.Flush()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "write JSON instead of a table")
	return c
}

// A program is one run of the command line, with the commands of this package.
type program struct{ *command.Program }

// Command returns the command sim.
func Command(p *command.Program) *cobra.Command { return (&program{p}).command() }
