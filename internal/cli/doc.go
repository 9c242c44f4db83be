// Package cli holds the subcommands of the foresay command.
//
// Exit codes: 0 for success, 1 for a failure, 2 for a command line that makes no sense, 3 for a
// change of which nobody could tell whether it was made.
package cli
