module example.com/tidy/adapters/one

go 1.26.0

require (
	example.com/tidy v0.0.0
	example.com/other v1.0.0
)

replace example.com/tidy => ../..
