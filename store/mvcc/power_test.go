package mvcc

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/foresay/foresay/host"
	"github.com/foresay/foresay/host/waldisk"
	"github.com/foresay/foresay/protocol"
	"github.com/foresay/foresay/wal"
	"github.com/foresay/foresay/wal/faultfs"
)

// TestPowerFails runs calls of a store on a disk of the real kind, and looks what is there if the
// power fails after any operation of that disk: all that some number of calls have written, as many
// at least as were told to be durable.
func TestPowerFails(t *testing.T) {
	disk := faultfs.New()
	disk.Trace()
	log, err := wal.Open("/data", wal.Options{FS: disk})
	if err != nil {
		t.Fatal(err)
	}
	d, err := waldisk.New(log, "node")
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	w := newWorld(rnd.IntN)
	models := []*naive{w.model.clone()} // after each call
	durable := []int{0}                 // after how many operations of the disk each is durable
	for range 30 {
		w.env = protocol.NewEnv[any](d.Keys(), 1, nil)
		w.env.Begin(0)
		for range 5 {
			switch key := keys[rnd.IntN(len(keys))]; rnd.IntN(8) {
			case 0:
				w.last += 2
				w.store.RaiseHorizon(w.env, w.last)
				w.model.horizon = max(w.model.horizon, w.last)
				w.collect(3)
			default:
				if v := w.someValue(); w.store.Put(w.env, key, v) == nil {
					w.model.put(key, v)
				}
			}
		}
		var ops []host.Op
		for _, e := range w.env.Out {
			ops = append(ops, host.Op{Kind: e.Kind, Key: e.Key, Value: e.Value})
		}
		done := make(chan error, 1)
		d.Commit(ops, func(err error) { done <- err })
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		models, durable = append(models, w.model.clone()), append(durable, disk.Ops())
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	crashes := 0
	for moment := range disk.Moments() {
		if moment.Ops < durable[0] {
			continue
		}
		crashes++
		if err := w.afterPower(moment.Crash(uint64(crashes)), models, durable, moment.Ops); err != nil {
			t.Fatalf("the power fails after %d operations: %v", moment.Ops, err)
		}
	}
	if crashes < 60 {
		t.Errorf("there were %d crashes only", crashes)
	}
}

// afterPower looks which of the calls a disk has.
func (w *world) afterPower(image *faultfs.Disk, models []*naive, durable []int, ops int) error {
	log, err := wal.Open("/data", wal.Options{FS: image})
	if err != nil {
		return err
	}
	defer log.Close()
	d, err := waldisk.New(log, "node")
	if err != nil {
		return err
	}
	least := 0
	for i, at := range durable {
		if at <= ops {
			least = i
		}
	}
	last := w.last
	for i := least; i < len(models); i++ {
		after := world{store: w.store, env: protocol.NewEnv[any](d.Keys(), 1, nil), model: models[i], last: last}
		if err = after.compare(); err != nil {
			continue
		}
		// What a limit has left is collected now.
		if _, more := after.collect(1 << 20); more {
			return fmt.Errorf("it has more than a million versions")
		}
		return after.compareAll()
	}
	return fmt.Errorf("it has what %d calls have written, or more, and is like none of them: %w", least, err)
}
