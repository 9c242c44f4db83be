package engine

// PublicDigester is driver.PublicDigester.
type PublicDigester interface {
	Digester
	PublicDigest() uint64
}

// sharing is what a call would have been predicted if all callers got the same
// response.
type sharing struct {
	asked  uint64 // the request's digest
	digest uint64 // of the last response
	known  bool   // there was one
	right  bool
}

// ask looks for the last response to the same request.
func (g *sharing) ask(op *Operation) {
	if d, ok := op.Transport.(PublicDigester); ok {
		g.asked = d.PublicDigest()
		g.digest, g.known = op.CallSite.Engine().Shared().Last(g.asked)
	}
}

// compare finds out whether it would have been right.
func (g *sharing) compare(op *Operation, v any) (answered uint64, told bool) {
	d, ok := op.Transport.(PublicDigester)
	if !ok || g.asked == 0 {
		return 0, false
	}
	answered, told = d.ResponseDigest(v)
	g.right = told && g.known && answered == g.digest
	return answered, told
}
