package good

import (
	"testing"

	"example.com/tidy/internal/wirefmt/wiretest"
)

func TestCodec(t *testing.T) { wiretest.Codec(t, format, 0, nil) }

func FuzzCodec(f *testing.F) { wiretest.Fuzz(f, format, nil) }

func TestLayouts(t *testing.T) { wiretest.Layouts(t) }
