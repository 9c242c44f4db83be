// Package command is what all commands share: how they are run, what they say of wrong usage,
// progress, load and prompts.
package command
