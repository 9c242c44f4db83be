package storeservice

import (
	"errors"
	"net"
	"testing"
	"time"
)

// TestPortStaysOpen: who connects between two epochs is not refused, and the next epoch has it.
func TestPortStaysOpen(t *testing.T) {
	p, err := openPort("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer p.listener.Close()
	first, err := p.turn()
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() {
		_, err := first.Accept()
		ended <- err
	}()
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("who accepts is told %v", err)
	}
	conn, err := net.DialTimeout("tcp", first.Addr().String(), 5*time.Second)
	if err != nil {
		t.Fatalf("between two epochs: %v", err)
	}
	defer conn.Close()
	second, err := p.turn()
	if err != nil {
		t.Fatal(err)
	}
	got, err := second.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer got.Close()
	if got.RemoteAddr().String() != conn.LocalAddr().String() {
		t.Errorf("the next epoch has %v, want %v", got.RemoteAddr(), conn.LocalAddr())
	}
	if err := errors.Join(second.Close(), first.Close()); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the second time it is closed: %v", err)
	}
}
