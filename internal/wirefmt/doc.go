// Package wirefmt is how the messages and records of replicated protocols look as bytes: a version,
// a kind, and the fields in order. Numbers are varints; strings and byte strings have their length
// before them; there is no padding, and no field names. Each message has exactly one form as bytes,
// so that these can be signed.
//
// A protocol describes each message once, by a function that takes its fields with a [Coder], which
// writes or reads them, and declares these kinds in a [Format], which is the [protocol.Codec]. A
// decoder gets bytes from the network: it never panics, never takes more memory than in proportion
// to the input, and remembers its first error, so that a message's function takes all fields and
// looks at none. A [Writer] and a [Reader] are for bytes that are made elsewhere than they are
// read.
//
// smr/DESIGN.md compares it with generated code.
package wirefmt
