package a

import (
	"testing"
	clock "time"
)

func TestA(t *testing.T) {
	clock.Sleep(1)
	clock.Sleep(1) //tidy:ok to show that a waiver works
	sleep := clock.Sleep
	sleep(1)
	t.Sleep()
}
