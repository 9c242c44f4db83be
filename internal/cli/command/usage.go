package command

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/foresay/foresay/internal/nearest"
)

// A UsageError is a command line that makes no sense.
type UsageError struct{ error }

func (e UsageError) Unwrap() error { return e.error }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Group makes c a command that only holds others. With none of them it shows its help if it is the
// root, and else is an error that says what to do; with a name that none has it says which one may
// have been meant.
func Group(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		var known []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				known = append(known, sub.Name())
			}
		}
		switch {
		case len(args) == 0 && !c.HasParent():
			return c.Help()
		case len(args) == 0:
			return Usagef("%s: say what to do; '%s --help' shows it", commandName(c), c.CommandPath())
		}
		hint := nearest.Hint(args[0], known)
		if hint == "" {
			hint = fmt.Sprintf("; '%s --help' shows all", c.CommandPath())
		}
		return Usagef("%sunknown command %q%s", prefix(c), args[0], hint)
	}
}

// Helpful has the command help say that there is no such command, where cobra shows the help of
// another one.
func Helpful(root *cobra.Command) {
	root.InitDefaultHelpCmd()
	help, _, err := root.Find([]string{"help"})
	if err != nil {
		return
	}
	help.Run = nil
	help.RunE = func(_ *cobra.Command, args []string) error {
		about, rest, err := root.Find(args)
		switch {
		case err != nil:
			return err
		case len(rest) > 0 && about.HasSubCommands():
			return about.RunE(about, rest)
		case len(rest) > 0:
			return Usagef("%sunexpected argument %q; want 'foresay help %s'", prefix(about), rest[0], commandName(about))
		}
		about.InitDefaultHelpFlag()
		return about.Help()
	}
}

// commandName is a command's path without the program's name, and prefix what its errors begin
// with.
func commandName(c *cobra.Command) string {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	return name
}

func prefix(c *cobra.Command) string {
	if name := commandName(c); name != "" {
		return name + ": "
	}
	return ""
}

// Complaint says what is wrong, beginning with the name of the command that was run: what several
// commands share does not know which of them it works for.
func Complaint(c *cobra.Command, err error) string {
	name, said := commandName(c), err.Error()
	if name == "" || strings.HasPrefix(said, name+": ") {
		return said
	}
	for p := c.Parent(); p != nil && p.HasParent(); p = p.Parent() {
		said = strings.TrimPrefix(said, commandName(p)+": ")
	}
	return name + ": " + said
}

// OneStyle has all of a command's complaints about its flags and arguments, and those of the
// commands below it, read alike: what is wrong, then what is wanted.
func OneStyle(c *cobra.Command) {
	c.SetFlagErrorFunc(flagError)
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			err := check(c, args)
			if usage := (UsageError{}); err == nil || errors.As(err, &usage) {
				return err
			}
			want := strings.TrimSuffix(c.UseLine(), " [flags]")
			if want == c.CommandPath() {
				return Usagef("%sunexpected argument %q; want '%s'", prefix(c), args[0], want)
			}
			return Usagef("%s%s; want '%s'", prefix(c), Counted(len(args), "argument"), want)
		}
	}
	for _, sub := range c.Commands() {
		OneStyle(sub)
	}
}

// flagError says what is wrong with a flag.
func flagError(c *cobra.Command, err error) error {
	var (
		unknown *pflag.NotExistError
		missing *pflag.ValueRequiredError
		invalid *pflag.InvalidValueError
		syntax  *pflag.InvalidSyntaxError
	)
	switch {
	case c.HasSubCommands() && c.Flags().NArg() > 0:
		return c.RunE(c, c.Flags().Args()) // the name of the command is wrong, and so no flag is known
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return Usagef("%sunknown flag -%s; flags begin with two dashes", prefix(c), unknown.GetSpecifiedShortnames())
	case errors.As(err, &unknown):
		name := unknown.GetSpecifiedName()
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				known = append(known, f.Name)
			}
		})
		hint := ""
		if k := nearest.To(name, known); k != "" { // of the names: the dashes are alike always
			hint = "; did you mean --" + k + "?"
		}
		return Usagef("%sunknown flag --%s%s", prefix(c), name, hint)
	case errors.As(err, &missing):
		return Usagef("%s--%s has no value; want %s", prefix(c), missing.GetFlag().Name, wanted(missing.GetFlag(), nil))
	case errors.As(err, &invalid):
		f := invalid.GetFlag()
		return Usagef("%s--%s is %q; want %s", prefix(c), f.Name, invalid.GetValue(), wanted(f, invalid.Unwrap())+
			nearest.Hint(invalid.GetValue(), ChoicesOf(f)))
	case errors.As(err, &syntax):
		return Usagef("%s%q is no flag; want --NAME or --NAME=VALUE", prefix(c), syntax.GetSpecifiedFlag())
	}
	return Usagef("%s%w", prefix(c), err)
}

// wanted says what a flag's value must be. A flag with values of its own kind says so in its cause.
func wanted(f *pflag.Flag, cause error) string {
	switch f.Value.Type() {
	case "bool":
		return "true or false"
	case "int":
		return "a whole number"
	case "uint64":
		return "a whole number of 0 or more"
	case "uint32":
		return "a whole number from 0 to 4294967295"
	case "float64":
		return "a number"
	case "duration":
		return "a time such as 500ms or 2s"
	}
	if cause != nil {
		return cause.Error()
	}
	if name, _ := pflag.UnquoteUsage(f); name != "" && name != f.Value.Type() {
		return "a " + name
	}
	return "a value"
}
