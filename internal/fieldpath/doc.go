// Package fieldpath names places in Protobuf messages, such as "account.id",
// and takes messages apart there: for keys made of a request's fields, and for
// comparisons that leave some out.
package fieldpath
