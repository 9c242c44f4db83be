package quorum

import "time"

func now() time.Time  { return time.Now() } //tidy:ok of the wrong kind
func then() time.Time { return time.Now() } //pure:ok to show that a waiver works
