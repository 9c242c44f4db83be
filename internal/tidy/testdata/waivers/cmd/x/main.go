package main

const a = 1 //tidy:ok there is nothing to waive

var b int //tidy:ok linkers set it
var c int //pure:ok of the wrong kind

var d int //tidy:ok

//tidy:ok the waiver stands above
var f int

var g int //tidy:ok a waiver after code does not cover the next line
var e int

func main() { println(a, b, c, d, e, f, g) }
