// Package wan describes wide-area networks as values: sites, the links between them, and what a
// link does to the bytes that cross it.
//
// It knows no clock, socket or goroutine. A [Matrix] says which [Link] leads from each [Site] to
// each other one; a Link says how long bytes take. A [Schedule] says what goes wrong with links,
// and when; [Random] draws one. [Preset] has the networks of the papers by name. What makes bytes
// take that long is elsewhere: package wan/shape for connections, package sim for simulated
// messages.
//
// Chance is a hash of the seed, the link and the time, never a shared stream of random numbers, so
// that what one connection does cannot change the delays of another, and a run can be repeated from
// its seed.
package wan
