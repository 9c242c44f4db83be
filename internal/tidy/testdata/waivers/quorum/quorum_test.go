package quorum

func Example() {}
