package dash_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// TestScreenshots takes the pictures of docs/dashboard.md, of the page that
// FORESAY_DASH is the address of: see there.
func TestScreenshots(t *testing.T) {
	address, dir := os.Getenv("FORESAY_DASH"), os.Getenv("FORESAY_SHOTS")
	if address == "" || dir == "" {
		t.Skip("FORESAY_DASH does not say what to take a picture of, or FORESAY_SHOTS not where to put it")
	}
	b := startBrowser(t)
	for _, theme := range []string{"light", "dark"} {
		for _, width := range []int{1440, 390} {
			b.shape(width, 900, theme)
			b.open(address)
			b.until(`document.querySelector("#task-view .seg.adopted") && document.querySelector(".sites tbody tr") && document.querySelector(".line-good") && document.querySelector("td.col-calls div").textContent !== "–"`)
			name := fmt.Sprintf("dash-%s-%s.png", map[int]string{1440: "desktop", 390: "phone"}[width], theme)
			height := int(b.eval("document.documentElement.scrollHeight").(float64))
			if err := os.WriteFile(filepath.Join(dir, name), b.picture(width, height), 0o644); err != nil {
				t.Fatal(err)
			}
			t.Logf("%s: %d x %d", name, width, height)
		}
	}
	b.clean()
}
