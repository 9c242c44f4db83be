package report

import (
	"strings"
	"testing"
)

// TestLabelsOfAPictureDiffer: calls of methods that begin alike, of a service with a long name,
// have labels of their own.
func TestLabelsOfAPictureDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for _, s := range []string{
		"1 AnalysisService/GetPI", "2 AnalysisService/GetAI", "3 AnalysisService/GetAI",
		"4 VeryLongRecommendationsService/GetPopularForUser",
		"4 VeryLongRecommendationsService/GetPopularForItem", "4 短い名前のサービス短い名前のサービス/取得一", "4 短い名前のサービス短い名前のサービス/取得二",
	} {
		p := &picture{}
		p.label(0, 0, svgLeft-svgMargin-30, s)
		_, text, _ := strings.Cut(p.out.String(), ">")
		if seen[text] {
			t.Errorf("%q is drawn as %q, as another is", s, text)
		}
		seen[text] = true
		if strings.HasPrefix(s, "1 ") && !strings.Contains(text, s) {
			t.Errorf("%q is cut to %q", s, text)
		}
	}
}
