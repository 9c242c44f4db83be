package b

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestB(t *testing.T) {
	synctest.Test(t, func(*testing.T) { time.Sleep(1) })
}
