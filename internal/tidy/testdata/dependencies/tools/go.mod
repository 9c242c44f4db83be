module example.com/tidy/tools

require (
	example.com/lint v1.0.0 // indirect
	example.com/lint/more v1.0.0 // indirect
)

tool example.com/lint/more/cmd/lint
