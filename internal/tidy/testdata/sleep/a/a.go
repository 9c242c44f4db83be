package a

import "time"

func a() { time.Sleep(1) }
