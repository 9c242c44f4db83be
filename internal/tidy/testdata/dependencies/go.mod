module example.com/tidy // not example.com/elsewhere

go 1.26

require example.com/alone v1.0.0

require (
	example.com/given v1.0.0
	example.com/missing v1.0.0
	example.com/carried v1.0.0 // indirect
)
