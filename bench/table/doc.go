// Package table holds what experiments measure, row by row, and shows it as a table for people, as
// CSV and as JSON.
package table
