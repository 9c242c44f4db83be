package spectree

import "slices"

// Withdraw tells that the prediction with this index is not offered any more:
// whoever made it stood on a wrong guess. It may still turn out right, but runs
// that stand on it are not worth their place.
func (t *Tree) Withdraw(c *Call, idx int) {
	if c.answered || c.dead || t.over || slices.Contains(c.withdrawn, idx) {
		return
	}
	c.withdrawn = append(c.withdrawn, idx)
	var gone []loss
	for _, r := range t.runs {
		if got, ok := r.assumes(c); ok && got == idx {
			gone = append(gone, loss{r, r.madeBefore(c)})
		}
	}
	t.replace(gone, c)
}

// offered returns the first prediction from index i on that is still offered,
// or c.predictions.
func (c *Call) offered(i int) int {
	for i < c.predictions && slices.Contains(c.withdrawn, i) {
		i++
	}
	return i
}
