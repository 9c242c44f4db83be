package mencius

type World struct{}
