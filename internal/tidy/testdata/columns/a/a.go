// Package a has comments.
package a

// Wide says more than fits in a line of a hundred columns, which is what anybody reads without moving.
func Wide() {}

// Fits does.
//
//	what is set apart by a tab is code, or a table, and is as wide as it is, be it beyond a hundred columns
func Fits() int { return 1 } // a short remark

// https://example.com/an/address/that/has/no/space/in/it/and/is/longer/than/a/hundred/columns/which/nobody/breaks
var address = ""

func remarks() bool {
	return true // a remark may reach to the end of the line of code, in a hundred and twenty columns
}

func wideRemarks() bool {
	return true // a remark that does not even end in the column in which the widest line of code may, of all lines of code there are
}

func wideCode(one, another, yetAnother, andOneMore, theLast bool) bool {
	return one && another && yetAnother && andOneMore && theLast || one && !another && !yetAnother && !andOneMore && !theLast
}

func fits(one, another, yetAnother, andOneMore, theLast bool) bool {
	return one && another && yetAnother && andOneMore && theLast || one && !another && !yetAnother && !andOneMore && !one
}

var raw = `what stands in a raw string is as wide as it is, since nobody can break it without changing what it says, be it wide`

var word = "a-word-of-a-string-that-is-wider-than-a-line-of-code-can-be-broken-nowhere-either-so-it-is-as-wide-as-it-is-and-stays-so"
