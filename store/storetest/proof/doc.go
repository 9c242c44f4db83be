// Package proof plays the real client of a store, client.Txn in all its modes, against real
// machines of any of the family's protocols: over gRPC and through hosts, in a synctest bubble,
// with machines that lose their power, links that break and clocks that differ. What applications
// saw must be strictly serializable, what the sites hold in the end must be the same, and nothing
// may be left of any transaction. [Run] does that for many seeds; [Notices] tests that it would
// notice if the client broke a rule.
//
// Package storetest proves the protocols themselves, in the simulator.
package proof
