package driver

import "example.com/tidy/internal/engine"

// Perform performs.
func Perform() { engine.Do() }
