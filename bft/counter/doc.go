// Package counter is a service for measurements, that of §6.2 of the paper on client speculation:
// one number that all clients increment. Each reply has a token that its client's next request must
// show, so a client's requests depend on each other, and nobody can have two under way without a
// guess.
package counter
