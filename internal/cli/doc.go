// Package cli holds the subcommands of the foresay command.
//
// Exit codes: 0 for success, 1 for a failure, 2 for a usage error, 3 for a change whose outcome is
// unknown.
package cli
