package wan

func Example() {}
