package tidy

import "example.com/tidy/bench"
