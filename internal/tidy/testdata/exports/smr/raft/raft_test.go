package raft

type World struct{}
