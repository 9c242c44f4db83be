package good

import "example.com/tidy/internal/wirefmt"

var format = wirefmt.NewFormat("good", 1)
