package multipaxos

// votes is a sequence that grows at its end and is forgotten from its beginning, in parts of one
// size: what is there is never copied. A log that is one slice took a tenth of a leader's time.
type votes struct {
	parts [][]Vote
	gone  int // at the beginning of the first part
	n     int
}

// votesPart is how many votes are in a part.
const votesPart = 128

func (v *votes) at(i int) *Vote {
	i += v.gone
	return &v.parts[i/votesPart][i%votesPart]
}

func (v *votes) add(x Vote) {
	if v.gone+v.n == len(v.parts)*votesPart {
		v.parts = append(v.parts, make([]Vote, votesPart))
	}
	v.n++
	*v.at(v.n - 1) = x
}

// drop forgets the first n, commands included.
func (v *votes) drop(n int) {
	for i := range n {
		*v.at(i) = Vote{}
	}
	v.gone, v.n = v.gone+n, v.n-n
	whole := v.gone / votesPart
	clear(v.parts[:whole])
	v.parts, v.gone = v.parts[whole:], v.gone%votesPart
}
