package calls

import (
	"os"
	"testing"

	"github.com/foresay/foresay/internal/heap"
)

func TestMain(m *testing.M) { os.Exit(heap.RunTests(m)) }
