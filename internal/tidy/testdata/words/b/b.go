package b

type CallSite struct{ Lane int }

var firstSite, CALL_SITES = CallSite{}, []CallSite{}
