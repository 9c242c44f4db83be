package dash_test

import (
	"math"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// TestContrast checks the colours of text against those below it, in both themes,
// by the ratio that WCAG 2 wants: 4.5.
func TestContrast(t *testing.T) {
	css, err := os.ReadFile("assets/page.css")
	if err != nil {
		t.Fatal(err)
	}
	colors := make(map[string][2]string)
	for _, m := range regexp.MustCompile(`--([\w-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)`).FindAllStringSubmatch(
		string(css), -1) {
		colors[m[1]] = [2]string{m[2], m[3]}
	}
	for text, grounds := range map[string]string{
		"text": "surface bg sunken", "muted": "surface bg sunken accent-soft", "faint": "surface bg",
		"accent":    "surface accent-soft",
		"confirmed": "surface sunken", "discarded": "surface sunken accent-soft", "adopted": "surface adopted-soft",
		"good": "surface accent-soft", "warn": "surface warn-soft", "bad": "surface bad-soft",
	} {
		for _, ground := range strings.Fields(grounds) {
			for i, theme := range []string{"light", "dark"} {
				a, b := luminance(t, colors[text][i]), luminance(t, colors[ground][i])
				if ratio := (max(a, b) + 0.05) / (min(a, b) + 0.05); ratio < 4.5 {
					t.Errorf("%s: %s %s on %s %s has the contrast %.2f", theme, text, colors[text][i], ground, colors[ground][i],
						ratio)
				}
			}
		}
	}
}

// luminance is the relative luminance of a colour, as WCAG defines it.
func luminance(t *testing.T, color string) (sum float64) {
	t.Helper()
	if color == "" {
		t.Fatal("the style sheet lacks a colour")
	}
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(color[1+2*i:3+2*i], 16, 8)
		if err != nil {
			t.Fatal(err)
		}
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
