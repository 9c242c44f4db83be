package control

import "example.com/tidy/internal/engine"

// Kill ends all tasks.
func Kill() { engine.Do() }
