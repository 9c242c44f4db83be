package foresay

import (
	"example.com/tidy/driver"
	"example.com/tidy/internal/engine"
)

// Do is the author's.
func Do() { engine.Do() }

// Perform is a transport's.
func Perform() { driver.Perform() }

// Mode is an operator's.
type Mode int

// Operators set these.
const (
	ModeOff Mode = iota
	modeNone
)

// String is a method.
func (Mode) String() string { return "" }
