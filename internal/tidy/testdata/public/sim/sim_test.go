package sim_test

func ExampleNew() {}
