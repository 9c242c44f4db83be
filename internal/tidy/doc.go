// Package tidy is the repository's law as tests: what every package here must
// keep to and no compiler or linter checks. Run go test ./internal/tidy.
//
// A line that must break a rule says so and why: //tidy:ok reason, at its end
// or alone on the line above. The rule "pure" has a waiver of its own,
// //pure:ok reason. A waiver without a reason, or one that waives nothing, is a
// problem itself.
//
// Generated files, testdata and directories whose names begin with "." or "_"
// are not looked at.
package tidy
