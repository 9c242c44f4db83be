// Package plant plants bugs in the source of packages while their tests are compiled, and nowhere
// else, to show which test catches each. What a package's tests are to catch is in its
// plants_test.go.
package plant
