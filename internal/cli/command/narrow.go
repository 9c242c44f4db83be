package command

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// ScreenWidth is how many columns help takes at most.
const ScreenWidth = 120

// Narrow has the help of c, and of the commands below it, fit a screen.
func Narrow(c *cobra.Command) {
	help := c.HelpFunc()
	c.SetHelpFunc(func(c *cobra.Command, args []string) {
		out := c.OutOrStdout()
		var b bytes.Buffer
		c.SetOut(&b)
		help(c, args)
		c.SetOut(out)
		fmt.Fprint(out, Wrapped(b.String()))
	})
}

// described is a line of a list: a name and what is said of it, between which are two spaces, or
// one after a name as long as the column.
var described = regexp.MustCompile(`^ +\S.*?  +`)

// Wrapped breaks long lines: in a list so that what is said of a name stays in its column, in a
// paragraph with the lines that follow.
func Wrapped(text string) string {
	var out strings.Builder
	column := 0 // of the list
	for paragraph := range strings.SplitSeq(text, "\n\n") {
		lines := strings.Split(paragraph, "\n")
		if slices.ContainsFunc(lines, tooLong) && !slices.ContainsFunc(lines, indented) {
			lines = fill(strings.Join(lines, " "), 0)
		}
		for _, line := range lines {
			if m := described.FindString(line); m != "" {
				column = len(m)
			}
			switch {
			case tooLong(line) && indented(line) && column > 0 && line[column-1] == ' ':
				out.WriteString(line[:column] + strings.TrimLeft(strings.Join(fill(line[column:], column), "\n"), " ") + "\n")
			default:
				out.WriteString(line + "\n")
			}
		}
		out.WriteString("\n")
	}
	return strings.TrimSuffix(out.String(), "\n\n")
}

func tooLong(line string) bool  { return len(line) > ScreenWidth }
func indented(line string) bool { return strings.HasPrefix(line, " ") }

// fill breaks a text between words, and indents the lines.
func fill(text string, indent int) (lines []string) {
	line := strings.Repeat(" ", indent)
	for word := range strings.FieldsSeq(text) {
		if len(line) > indent && len(line)+1+len(word) > ScreenWidth {
			lines = append(lines, line)
			line = strings.Repeat(" ", indent)
		}
		if len(line) > indent {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}
