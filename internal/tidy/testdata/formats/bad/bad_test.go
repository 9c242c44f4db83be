package bad

import (
	"testing"

	check "example.com/tidy/internal/wirefmt/wiretest"
)

func TestCodec(t *testing.T) { check.Codec(t, nil, 0, nil) }
