// Package experiments has the list of all experiments.
package experiments
