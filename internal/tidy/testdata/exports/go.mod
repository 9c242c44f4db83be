module example.com/tidy

go 1.26
