package clock_test

import (
	"fmt"
	"time"

	"github.com/foresay/foresay/clock"
)

// A client predicts when its request arrives, by the replica's clock, and asks for that place in
// the log.
func Example() {
	delay, err := clock.NewDelay(clock.DelayConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	source, err := clock.NewSource(0, 2*time.Second)
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Hour
	for range 20 { // the replica's clock is 3 ms slow, the way there takes 30 ms, the way back 40
		now += 10 * time.Millisecond
		delay.Add(clock.Probe{Sent: now, Peer: now + 30*time.Millisecond - 3*time.Millisecond, Received: now +
			70*time.Millisecond})
	}
	now += 70 * time.Millisecond
	oneWay, _ := delay.OneWay(now)
	stamp, err := source.At(now, clock.Stamp(now+oneWay))
	fmt.Println(oneWay, stamp-clock.Stamp(now), err)
	// Output: 27ms 27ms <nil>
}
