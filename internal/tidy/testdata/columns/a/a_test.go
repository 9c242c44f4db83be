package a

import "fmt"

// Wide says more than fits in a line of a hundred columns, which is what anybody reads without moving.
func Example() {
	fmt.Println("wide")
	// Output: what an example prints is as wide as it is, and nobody may break it in the middle of the line
}
