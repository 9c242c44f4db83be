// Package plant plants bugs in the source of packages while their tests are compiled, and nowhere
// else, to show which test catches each. What a package's tests are to catch is in its
// plants_test.go: a text of the source, what stands in its place, and the test that must fail.
// Where the text is not found any more the table fails, so that it follows the code.
package plant
