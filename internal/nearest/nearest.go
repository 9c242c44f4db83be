// Package nearest finds the name that a misspelling was meant to be.
package nearest

import "strings"

// To returns the known name that is most like word, or "" if none is like it: one that begins with
// word, or else the one with the fewest letters to be put in, left out, exchanged or swapped with
// the next, where one in three may be wrong.
func To(word string, known []string) string {
	word = strings.ToLower(word)
	if word == "" {
		return ""
	}
	best, least := "", max(1, len(word)/3)+1
	for _, k := range known {
		if len(word) >= 3 && strings.HasPrefix(strings.ToLower(k), word) {
			return k // cut short
		}
		if d := distance(word, strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// Hint returns "; did you mean NAME?" with the name that is most like word, or "".
func Hint(word string, known []string) string {
	if k := To(word, known); k != "" {
		return "; did you mean " + k + "?"
	}
	return ""
}

// Slip returns the known name from which word differs by one letter that was put in, left out,
// exchanged or swapped with the next, or "" if there is none: where a name that is only alike may
// well be another one.
func Slip(word string, known []string) string {
	for _, k := range known {
		if distance(strings.ToLower(word), strings.ToLower(k)) == 1 {
			return k
		}
	}
	return ""
}

// distance is the optimal string alignment distance, over bytes.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range len(a) {
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}
