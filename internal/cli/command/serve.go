package command

import (
	"context"

	"github.com/spf13/cobra"
)

// A Server is what a family's command serve says and runs.
type Server struct {
	Short, Long string
	File        string // what --config names, for its help
	Missing     string // the mistake of a command line without it
	Run         func(ctx context.Context, file string) error
}

// ServeCommand returns the command serve of a family, which runs one process of it until it is
// told to end.
func (p *Program) ServeCommand(s Server) *cobra.Command {
	var file string
	var leashed bool
	c := &cobra.Command{
		Use:   "serve",
		Short: s.Short,
		Long:  s.Long,
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if file == "" {
				return Usagef("%s", s.Missing)
			}
			if leashed {
				p.EndWithParent()
			}
			return s.Run(c.Context(), file)
		},
	}
	c.Flags().StringVar(&file, "config", "", s.File)
	LeashFlag(c.Flags(), &leashed)
	return c
}
