package main

import (
	"bytes"
	"regexp"
	"testing"
	"testing/synctest"

	"github.com/foresay/foresay/wan/shape"
)

// TestShop: what customers hear, and how long after they have ordered, in virtual time.
func TestShop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := run(&out, shape.NewNetwork(network(), 1)); err != nil {
			t.Fatal(err)
		}
		t.Log("\n" + out.String())
		want := regexp.MustCompile(`^ann orders a book.*
    0 ms  ann: the shop says: your order of a book is placed
    0 ms  ann: \(goes on\)
  200 ms  ann: mail: your book is on its way
ann orders a sofa.*
  200 ms  ann: \(goes on\)
  200 ms  ann: mail: your sofa is on its way
ann and ben order the last lamp.*
(?:    0 ms  (?:ann|ben): (?:the shop says: your order of a lamp is placed|\(goes on\))
){4}  200 ms  ann: mail: your lamp is on its way
  \d\d\d ms  ben: mail: we are sorry, somebody else has got the lamp
ben orders a book.*
  \d\d\d ms  ben: \(goes on\)
  \d\d\d ms  ben: mail: your book is on its way
$`)
		if !want.MatchString(out.String()) {
			t.Errorf("customers hear\n%s", out.String())
		}
	})
}
