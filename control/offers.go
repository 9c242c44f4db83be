package control

import "sync/atomic"

// offers is what is known of whether a call site's servers predict, see
// CallSiteConfig.ServerPredictions. To be asked costs a call a stream with messages of its
// own, about as much again as the call. Lost updates do not matter.
type offers struct {
	silent  atomic.Int32 // so many calls in a row, at most silence, were offered nothing
	skipped atomic.Int32
}

// silence is after how many calls without a prediction only each so many-th asks.
const silence = 64

// Wanted reports whether a call should ask for predictions.
func (o *offers) Wanted() bool {
	return o.silent.Load() < silence || o.skipped.Add(1)%silence == 0
}

// Heard notes whether a call that asked was offered a prediction.
func (o *offers) Heard(prediction bool) {
	switch n := o.silent.Load(); {
	case prediction && n > 0:
		o.silent.Store(0)
	case !prediction && n < silence:
		o.silent.Add(1)
	}
}
