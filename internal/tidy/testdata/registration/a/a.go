package a

import (
	_ "embed"
	"fmt"
	_ "image/jpeg" //tidy:ok to show that a waiver works
	_ "image/png"
)

func init() {
	fmt.Println()
}

type t struct{}

func (t) init() {}
