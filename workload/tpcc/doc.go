// Package tpcc is TPC-C, the benchmark of an order-entry system, for key-value stores: its five
// transactions are functions that read and write keys, so they run on any store that has Get and
// Put [TPC-C 5.11].
//
// No transaction scans. Order numbers are dense, so a district says which orders exist and which of
// them are delivered, and there is a key for each customer's latest order and one for the customers
// of each last name. What is added to again and again (what a warehouse and a district have taken,
// what a customer owes) has keys of its own, as in the experiments with STR [STR §8.3].
//
// The tables need not be loaded: Scale.Initial says what a key holds at the beginning, so a
// simulated store can make rows up when they are read. Scale.Rows lists them all for a store that
// is loaded. Check reports whether what a store holds can have come about by these transactions.
package tpcc
