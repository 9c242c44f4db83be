package b

import (
	"testing"
	"time"
)

func TestHelped(*testing.T) { time.Sleep(1) }
