package a

// TODO: all of it.

const a = "XXX"

const b = "XXX" //tidy:ok to show that a waiver works

const mastodon, toDo, prefixme = 1, 2, 3
