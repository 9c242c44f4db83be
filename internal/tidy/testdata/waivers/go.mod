module example.com/tidy
