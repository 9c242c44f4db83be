package shape_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/foresay/foresay/wan"
	"github.com/foresay/foresay/wan/shape"
)

// stream sends random bytes both ways in writes of random sizes, while the links change, and
// compares what arrives.
func stream(t *testing.T, n *shape.Network, seed uint64, sizeBytes int) {
	a, b := pair(t, n)
	failed := make(chan error)
	for i, ends := range [...][2]net.Conn{{a, b}, {b, a}} {
		rng := rand.New(rand.NewPCG(seed, uint64(i)))
		sent := make([]byte, sizeBytes)
		rand.NewChaCha8([32]byte{byte(seed), byte(i)}).Read(sent) // never fails
		go func() {
			for rest := sent; len(rest) > 0; {
				k := min(len(rest), 1+int(rng.ExpFloat64()*3000))
				if k, err := ends[0].Write(rest[:k]); err != nil {
					failed <- err
					return
				} else {
					rest = rest[k:]
				}
				if rng.IntN(8) == 0 {
					wait(t, time.Duration(rng.IntN(2000))*time.Microsecond)
				}
			}
			failed <- nil
		}()
		reads := rand.New(rand.NewPCG(seed, uint64(i)+2))
		go func() {
			var got []byte
			for len(got) < len(sent) {
				p := make([]byte, 1+reads.IntN(10_000))
				k, err := ends[1].Read(p)
				got = append(got, p[:k]...)
				if err != nil {
					failed <- err
					return
				}
			}
			if !bytes.Equal(got, sent) {
				failed <- errors.New("what arrived is not what was sent")
				return
			}
			failed <- nil
		}()
	}
	faults := rand.New(rand.NewPCG(seed, 4))
	for range 10 {
		wait(t, time.Duration(faults.IntN(3000))*time.Microsecond)
		from, to := wan.Site("a"), wan.Site("b")
		if faults.IntN(2) == 0 {
			from, to = to, from
		}
		n.SetLink(from, to, wan.Link{
			Delay:          time.Duration(faults.IntN(3000)) * time.Microsecond,
			Jitter:         time.Duration(faults.IntN(3000)) * time.Microsecond,
			Loss:           float64(faults.IntN(2)) * 0.01,
			RTO:            5 * time.Millisecond,
			BytesPerSecond: int64(faults.IntN(2)) * 20_000_000,
			Down:           faults.IntN(3) == 0,
		})
	}
	n.SetDown("a", "b", false)
	n.SetDown("b", "a", false)
	for range 4 {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	for _, ends := range [...][2]net.Conn{{a, b}, {b, a}} {
		ends[0].Close()
		if rest, err := io.ReadAll(ends[1]); len(rest) > 0 || err != nil && !errors.Is(err, net.ErrClosed) {
			t.Errorf("after Close: %d bytes, %v", len(rest), err)
		}
	}
}

func FuzzStream(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed, 200_000)
	}
	f.Fuzz(func(t *testing.T, seed uint64, sizeBytes int) {
		sizeBytes = max(0, min(sizeBytes, 1<<20))
		synctest.Test(t, func(t *testing.T) {
			n := shape.NewNetwork(wan.Uniform(time.Millisecond, "a", "b"), seed)
			stream(t, n, seed, sizeBytes)
			n.Close()
		})
	})
}

func TestStreamOverLoopback(t *testing.T) {
	for seed := range uint64(2) {
		n := shape.NewLoopback(wan.Uniform(time.Millisecond, "a", "b"), seed)
		stream(t, n, seed, 500_000)
		n.Close()
	}
}
