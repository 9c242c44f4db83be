package wan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/foresay/foresay/internal/nearest"
)

// A Deployment is a network, and where in it a paper put its replicas.
type Deployment struct {
	Name   string
	Doc    string // one sentence
	Matrix Matrix // of all sites that clients may be at
	// Replicas are the sites of the replicas, one each. The first is that of the leader, in
	// protocols that have one.
	Replicas []Site
}

// Preset returns the deployment of a name. Its error lists the names. See Presets.
func Preset(name string) (Deployment, error) {
	var names []string
	for _, d := range Presets() {
		if d.Name == name {
			return d, nil
		}
		names = append(names, d.Name)
	}
	return Deployment{}, fmt.Errorf("wan: unknown network %q (want %s%s)", name, strings.Join(names, ", "),
		nearest.Hint(name, names))
}

// Presets returns the deployments of the papers, and one of the papers' time. All round trips are
// averages, those of the papers' tables where they have one; none within a site is given, and is 0
// here.
func Presets() []Deployment {
	return []Deployment{
		{"na3", "nine sites in North America, replicas at three [Thesis Table 4.4, §4.5.2]", NorthAmerica(),
			[]Site{"WA", "VA", "QC"}},
		{"na5", "nine sites in North America, replicas at five [Thesis Table 4.4, §4.5.2]", NorthAmerica(),
			[]Site{"WA", "VA", "QC", "CA", "TX"}},
		{"globe3", "six sites on four continents, replicas at three [Thesis Table 4.1, §4.5.2]", Globe(),
			[]Site{"WA", "PR", "NSW"}},
		{"na4", "nine sites in North America, Byzantine replicas at four", NorthAmerica(), []Site{"TX", "WA", "VA", "QC"}},
		{"globe4", "six sites on four continents, Byzantine replicas at four", Globe(), []Site{"SG", "WA", "PR", "NSW"}},
		{"specrpc", "Oregon, Ireland and Seoul, a replica at each [SpecRPC Table 1]", SpecRPC(),
			[]Site{"oregon", "ireland", "seoul"}},
		{"carousel", "five regions of a public cloud [Thesis Table 3.1]", Carousel(),
			[]Site{"us-west", "us-east", "europe", "asia", "australia"}},
		{"ec2", "nine regions of a public cloud as of April 2017, replicas at three", EC2(),
			[]Site{"virginia", "oregon", "ireland"}},
	}
}

// NorthAmerica returns the nine data centres of Domino's evaluation in North America: Virginia,
// Texas, California, Iowa, Washington, Wyoming, Illinois, Quebec City and Toronto [Thesis Table
// 4.4].
func NorthAmerica() Matrix {
	return triangle([]Site{"VA", "TX", "CA", "IA", "WA", "WY", "IL", "QC", "TRT"}, [][]int{
		{27, 59, 31, 67, 46, 26, 38, 29},
		{33, 22, 42, 23, 30, 51, 43},
		{41, 23, 24, 48, 67, 59},
		{36, 14, 8, 32, 22},
		{21, 43, 68, 57},
		{24, 46, 36},
		{23, 14},
		{11},
	})
}

// Globe returns the six data centres of Domino's evaluation all over the world: Virginia,
// Washington, Paris, New South Wales, Singapore and Hong Kong [Thesis Table 4.1].
func Globe() Matrix {
	return triangle([]Site{"VA", "WA", "PR", "NSW", "SG", "HK"}, [][]int{
		{67, 80, 196, 214, 196},
		{136, 175, 163, 141},
		{234, 149, 185},
		{87, 117},
		{35},
	})
}

// Carousel returns the five data centres of Carousel's evaluation: Oregon, Virginia, Frankfurt,
// Tokyo and Sydney [Thesis Table 3.1].
func Carousel() Matrix {
	return triangle([]Site{"us-west", "us-east", "europe", "asia", "australia"}, [][]int{
		{73, 166, 102, 161},
		{88, 172, 205},
		{235, 290},
		{115},
	})
}

// EC2 returns nine regions of a public cloud, with the averages that were measured between them in
// April 2017, when STR was (the paper prints no matrix).
func EC2() Matrix {
	return triangle([]Site{"virginia", "california", "oregon", "ireland", "frankfurt", "tokyo", "seoul", "singapore",
		"sydney"}, [][]int{
		{72, 88, 81, 89, 145, 178, 217, 230},
		{19, 153, 167, 103, 132, 174, 158},
		{137, 160, 89, 118, 161, 162},
		{20, 212, 242, 239, 310},
		{237, 266, 326, 323},
		{31, 74, 104},
		{72, 134},
		{175},
	})
}

// triangle returns a matrix from the upper triangle of its round trips in milliseconds.
func triangle(sites []Site, rtts [][]int) Matrix {
	m := Uniform(0, sites...)
	for i, row := range rtts {
		for j, ms := range row {
			p, rtt := Path{From: sites[i], To: sites[i+1+j]}, time.Duration(ms)*time.Millisecond
			m.links[m.index(p)].Delay = oneWay(rtt, true) // m is nobody else's yet
			m.links[m.index(p.Reverse())].Delay = oneWay(rtt, false)
		}
	}
	return m
}

// Nearest returns the site of some that has the shortest round trip from one; of equals the first.
// It returns "" if there is none to choose from.
func (m Matrix) Nearest(from Site, some []Site) Site {
	if len(some) == 0 {
		return ""
	}
	return slices.MinFunc(some, func(a, b Site) int { return cmp.Compare(m.RTT(from, a), m.RTT(from, b)) })
}

// MaxRTT returns the longest round trip between two of some sites.
func (m Matrix) MaxRTT(some []Site) time.Duration {
	var longest time.Duration
	for _, a := range some {
		for _, b := range some {
			longest = max(longest, m.RTT(a, b))
		}
	}
	return longest
}
