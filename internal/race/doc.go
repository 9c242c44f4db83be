// Package race says whether the program was built with the race detector, under which tests play
// fewer seeds and measure no time.
package race
