// Package tpcc is TPC-C, the benchmark of an order-entry system, for key-value stores: its five
// transactions are functions that read and write keys, so they run on any store that has Get and
// Put [TPC-C 5.11].
//
// No transaction scans. Order numbers are dense, so a district says which orders exist and which of
// them are delivered, and there is a key for each customer's latest order and one for the customers
// of each last name. What is added to again and again (what a warehouse and a district have taken,
// what a customer owes) has keys of its own, as in the experiments with STR [STR §8.2].
//
// A Terminal enters transactions, by a Mix. Its parameters, and what they are where:
//
//	parameter            unit            specification       STR's experiments
//	Terminal.Mix         % of kinds      Standard            A, B and C of MixOf [STR §8.2]
//	Terminal.SetRemote   % of lines,     specification: 1,   authors: 20, 20 (its authors' scripts)
//	                     % of payments   15 [§2.4, §2.5]
//	Layout.PerServer     warehouses      -                   5 (its authors' scripts)
//	Scale.Customers      each district   3,000 [§1.2]        3,000
//	Scale.Items          items           100,000 [§1.2]      100,000
//
// Txn says how long a clerk types before a transaction, 18, 3 and 2 s for new order, payment and
// order status, and thinks afterwards, exponentially with means of 12, 12 and 10 s [TPC-C §5.2.5].
//
// The tables need not be loaded: Scale.Initial says what a key holds at the beginning, so a
// simulated store can make rows up when they are read. Scale.Rows lists them all for a store that
// is loaded. Check reports whether what a store holds can have come about by these transactions.
package tpcc
