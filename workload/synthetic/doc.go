// Package synthetic is the synthetic benchmark of STR: a transaction reads 10 keys and then updates
// them, most of them from a hotspot whose size sets how much transactions contend [STR §8.1].
//
// Each partition has one million keys for the clients of its own server and one million for clients
// of other sites, so contention among neighbours and contention across the wide area are set apart:
//
//	parameter          unit       Paper                    source
//	Keys               keys       10; Table 1: 10 to 200   [STR §8.1]
//	LocalPercent       % of keys  80                       its authors' scripts
//	HotPercent         % of keys  90                       [STR §8.1]
//	Population         keys       1,000,000 for each use   [STR §8.1]
//	LocalHot           keys       30,000 low, 1,000 high   its authors' scripts
//	RemoteHot          keys       15,000 low, 500 high     its authors' scripts
//	ValueBytes         bytes      8                        chosen here
//
// A key's name says which partition it belongs to; Home reads it. Within a transaction the keys are
// distinct, which in the original they need not be. A key that was never written counts as one that
// was never updated, so nothing has to be loaded. Each value counts the updates of its key, and
// Check compares the counts with the transactions that committed: a lost update shows.
package synthetic
