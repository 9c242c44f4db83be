package a

var update bool
