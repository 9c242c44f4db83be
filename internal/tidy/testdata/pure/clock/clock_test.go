package clock

import "os"

func args() []string { return os.Args }
