// Package wirefmt is how the messages and records of replicated protocols look as bytes: a version, a kind, and the fields
// in order. Numbers are varints; strings and byte strings have their length before them; there is no padding, and no field names.
//
// A protocol writes an encoder and a decoder by hand, with a [Writer] and a [Reader], and declares the kinds of its messages in a [Format], which is the
// [protocol.Codec]. A decoder gets bytes from the network: a Reader never panics, never takes more memory than the
// input could fill, and remembers its first error, so that a decoder reads all fields and looks once.
package wirefmt
