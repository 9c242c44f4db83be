// Package shape gives connections the delays of a wide-area network.
package shape
