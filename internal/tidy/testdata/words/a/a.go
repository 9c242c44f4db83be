package a

type Site struct {
	CallSite string
	lane     int // for short
}

type Thing interface {
	TaskOfSite() Site
	LanesOf(Site) int
}

func laneOf(s Site) int {
	laneOfS := s.lane
	return laneOfS
}
