package msgtext_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/foresay/foresay/internal/msgtext"
)

type number uint64

func (n number) String() string { return fmt.Sprintf("%d.%d", uint64(n)/10, uint64(n)%10) }

type head struct {
	Era number
	ID  uint32
}

type item struct {
	At   uint64
	Body []byte
}

type message struct {
	head
	Head   *item
	Sure   bool
	Wait   time.Duration
	Items  []item
	Err    error
	Reason string
	Off    int
	small  int
	IDs    [2]uint8
	raw    []byte
	Sorts  []sort
}

// sort is as small as a byte and is none.
type sort uint8

// foreign is a message of another module.
type foreign struct{ *time.Location }

func (foreign) Text(f msgtext.Format) string { return "Foreign " + f.Fields(item{At: 9}) }

func TestOf(t *testing.T) {
	named := msgtext.Format(func(v any) (string, bool) {
		i, ok := v.(item)
		return fmt.Sprintf("#%d", i.At), ok
	})
	for _, test := range []struct {
		msg  any
		want string
	}{
		{nil, "nil"},
		{number(12), "1.2"},
		{7, "int 7"},
		{[]string{"a"}, `["a"]`},
		{message{}, "Message"},
		{message{Sorts: []sort{1, 2}}, "Message sorts=[1, 2]"},
		{foreign{time.UTC}, "Foreign at=9"},
		{message{head: head{12, 3}, Sure: true, Wait: time.Second, small: 4}, "Message era=1.2 id=3 sure wait=1s small=4"},
		{&message{Reason: "why", Off: -1, Err: errors.New("broken"), IDs: [2]uint8{1, 2}},
			`Message err=broken reason="why" off=-1 ids=0102`},
		{message{Items: []item{{1, []byte("x")}, {2, []byte{0, 1}}}}, "Message items=[{at=1 body=\"x\"}, {at=2 body=0001}]"},
		{message{Head: &item{At: 1, Body: make([]byte, 40)}}, "Message head={at=1 body=40 bytes, 0000000000000000...}"},
		{message{raw: []byte("y")}, "Message raw=\"y\""},
		{message{Items: make([]item, 10)}, "Message items=[10 times {}]"},
		{[]int{1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 9}, "[1, 2, 2, 3, 4, 5, 6, 7, 8, and 2 more]"},
	} {
		if got := msgtext.Format(nil).Of(test.msg); got != test.want {
			t.Errorf("%#v is %q, want %q", test.msg, got, test.want)
		}
	}
	if got := named.Of(message{Items: []item{{At: 3}}, Head: &item{At: 4}}); got != "Message head=#4 items=[#3]" {
		t.Errorf("with a format of its own it is %q", got)
	}
}
