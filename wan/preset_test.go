package wan_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/foresay/foresay/wan"
)

func TestPresets(t *testing.T) {
	for _, d := range wan.Presets() {
		got, err := wan.Preset(d.Name)
		if err != nil || got.Name != d.Name || got.Doc == "" || !slices.Equal(got.Replicas, d.Replicas) {
			t.Errorf("%s: %+v, %v", d.Name, got, err)
		}
		sites := d.Matrix.Sites()
		for i, a := range sites {
			if d.Matrix.RTT(a, a) != 0 {
				t.Errorf("%s: within %s it takes %v", d.Name, a, d.Matrix.RTT(a, a))
			}
			for _, b := range sites[:i] {
				if rtt := d.Matrix.RTT(a, b); rtt < 8*time.Millisecond || rtt > 330*time.Millisecond || rtt != d.Matrix.RTT(b, a) {
					t.Errorf("%s: %s to %s and back take %v", d.Name, a, b, rtt)
				}
			}
		}
		for _, r := range d.Replicas {
			if !d.Matrix.Has(r) {
				t.Errorf("%s: there is no site %s", d.Name, r)
			}
		}
	}
	want := `wan: unknown network "na6" (want na3, na5, globe3, na4, globe4, specrpc, carousel, ec2; did you mean na3?)`
	if _, err := wan.Preset("na6"); err == nil || err.Error() != want {
		t.Errorf("error %v", err)
	}
}

// TestTables compares with corners of the tables, and with sums over them that were made from the
// text.
func TestTables(t *testing.T) {
	for _, test := range []struct {
		m    wan.Matrix
		a, b wan.Site
		want int
	}{
		{wan.NorthAmerica(), "VA", "TX", 27}, {wan.NorthAmerica(), "VA", "TRT", 29}, {wan.NorthAmerica(), "QC", "TRT", 11},
		{wan.NorthAmerica(), "CA", "QC", 67}, {wan.NorthAmerica(), "IA", "IL", 8}, {wan.NorthAmerica(), "WA", "WY", 21},
		{wan.NorthAmerica(), "WY", "TRT", 36}, {wan.NorthAmerica(), "IL", "QC", 23}, {wan.NorthAmerica(), "TX", "QC", 51},
		{wan.Globe(), "VA", "WA", 67}, {wan.Globe(), "HK", "VA", 196}, {wan.Globe(), "PR", "NSW", 234},
		{wan.Globe(), "SG", "HK", 35},
		{wan.Globe(), "WA", "NSW", 175}, {wan.Globe(), "NSW", "SG", 87},
	} {
		if got := test.m.RTT(test.a, test.b); got != time.Duration(test.want)*time.Millisecond {
			t.Errorf("%s to %s and back take %v, want %d ms", test.a, test.b, got, test.want)
		}
	}
	for want, m := range map[time.Duration]wan.Matrix{1284 * time.Millisecond: wan.NorthAmerica(),
		2175 * time.Millisecond: wan.Globe()} {
		var sum time.Duration
		for i, a := range m.Sites() {
			for _, b := range m.Sites()[:i] {
				sum += m.RTT(a, b)
			}
		}
		if sum != want {
			t.Errorf("all round trips are %v together, want %v", sum, want)
		}
	}
}

// TestMultiPaxosInTheModel derives what the thesis measured from the table alone: a client's commit
// takes a round trip to the leader, and the leader's to its majority. The thesis measured 107 and
// 134 ms.
func TestMultiPaxosInTheModel(t *testing.T) {
	d, err := wan.Preset("na3")
	if err != nil {
		t.Fatal(err)
	}
	leader := d.Replicas[0]
	nearest := d.Matrix.Nearest(leader, d.Replicas[1:])
	var commits []time.Duration
	for _, client := range d.Matrix.Sites() {
		commits = append(commits, d.Matrix.RTT(client, leader)+d.Matrix.RTT(leader, nearest))
	}
	slices.Sort(commits)
	if p50, max := commits[len(commits)/2], commits[len(commits)-1]; p50 != 109*time.Millisecond ||
		max != 135*time.Millisecond {
		t.Errorf("p50 %v, max %v", p50, max)
	}
}

func TestNearestAndMaxRTT(t *testing.T) {
	m := wan.Globe()
	for from, want := range map[wan.Site]wan.Site{"HK": "NSW", "VA": "WA", "WA": "WA", "nowhere": "WA"} {
		if got := m.Nearest(from, []wan.Site{"WA", "PR", "NSW"}); got != want {
			t.Errorf("the nearest to %s is %s, want %s", from, got, want)
		}
	}
	if got := m.Nearest("HK", nil); got != "" {
		t.Errorf("the nearest of none is %q", got)
	}
	if got := m.MaxRTT([]wan.Site{"WA", "PR", "NSW"}); got != 234*time.Millisecond {
		t.Errorf("got %v", got)
	}
	if got := m.MaxRTT(nil); got != 0 {
		t.Errorf("got %v", got)
	}
}

func ExamplePreset() {
	d, err := wan.Preset("na3")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("replicas at", d.Replicas)
	for _, client := range []wan.Site{"CA", "TRT"} {
		nearest := d.Matrix.Nearest(client, d.Replicas)
		fmt.Println(client, "is nearest to", nearest, "with", d.Matrix.RTT(client, nearest))
	}
	// Output:
	// replicas at [WA VA QC]
	// CA is nearest to WA with 23ms
	// TRT is nearest to QC with 11ms
}
