package nearest_test

import (
	"testing"

	"github.com/foresay/foresay/internal/nearest"
)

func TestTo(t *testing.T) {
	known := []string{"chain", "chain-length", "protocol", "predictors", "mode", "share"}
	for word, want := range map[string]string{
		"chian": "chain", "protcol": "protocol", "predictor": "predictors", "Mode": "mode", "mdoe": "mode", "colour": "",
		"x":       "",
		"chain-l": "chain-length", "pro": "protocol", "": "", "sh": "", "protocols": "protocol",
	} {
		if got := nearest.To(word, known); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
	if got := nearest.To("", []string{"1"}); got != "" {
		t.Errorf("nothing is taken for %q", got)
	}
	if got := nearest.Hint("modes", known); got != "; did you mean mode?" {
		t.Errorf("the hint is %q", got)
	}
}

func TestSlip(t *testing.T) {
	known := []string{"UserService", "KVAdmin", "TestKV"}
	for word, want := range map[string]string{
		"TestVK": "TestKV", "UserServise": "UserService", "UsersService": "UserService", "OrderService": "", "KV": "",
		"TestKV": "",
	} {
		if got := nearest.Slip(word, known); got != want {
			t.Errorf("%q is taken for %q, want %q", word, got, want)
		}
	}
}
