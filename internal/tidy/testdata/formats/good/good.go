package good

import "example.com/tidy/internal/wirefmt"

var format = wirefmt.NewFormat("good", 1)

var layout = wirefmt.NewLayout("good", fields)
