// Package rubis is RUBiS, the benchmark of an auction site, for key-value stores: users go from
// page to page by chance, and a page is a transaction that reads and writes keys, so it runs on any
// store that has Get and Put [STR §8.2].
//
// A Client's Session makes transactions one after the other. There are 27 states. Home is a page
// alone; of the other 26, eight are forms that read nothing, and five update: registering a user,
// registering an item, and storing a bid, a purchase or a comment. A session goes from state to
// state by RUBiS's default transition table, with pages to go back to and an end. What the table
// gives for a state adds up to more than 1 for most, and what comes last in the order of the states
// gets less than its entry: nobody ends a session at a search or at a view. Updates come out as
// 9.2 % of the states and 11.7 % of those with a transaction, not the 15 % that the paper says. A
// session has 51 states, at 5.3 s each, and nobody comes to put-comment-auth.
//
// No transaction scans. Numbers are dense, a key says which was given last, and lists have the
// newest items of a category and a region, and what a user has bid for, bought and sold. All that
// is kept by shard: whoever adds something gets its number from a key of the own shard, not from
// one for all, as in the experiments with STR. Still all who register an item in a shard meet.
//
// An auction is over when it is sold out, and not by time, as runs take minutes and auctions days.
// Items can be bought at once whether they have a price for it or not, because the table lets users
// do so. Lists of users are empty at the beginning, and list what came since.
//
//	parameter                unit       default           source
//	Shards                              -                 a server has one [STR §8.2]
//	Users, OldItems          per shard  1,000,000         RUBiS's properties, as its loader has them
//	OpenItems                per shard  33,000            RUBiS's paper
//	Regions, Categories                 62, 20            RUBiS's properties
//	BidsPerItem              at most    20                RUBiS's properties
//	CommentsPerUser          at most    20                RUBiS's properties
//	DescriptionBytes         bytes      8192              RUBiS's properties
//	CommentBytes             bytes      2048, at most     RUBiS's properties
//	ReduceFactor                        10                STR's properties: divides users, items, bytes
//	Listed                   ids        20                a page of RUBiS's
//	Client.RemotePercent     %          0                 a setting of STR's authors, not printed
//	Client.Prices                       false             false: STR's authors; true: RUBiS
//	State.Wait               s          2 to 10           RUBiS's table
//	reserve price            % of items 40                RUBiS's properties
//	price to buy at once     % of items 10                RUBiS's properties
//	unique, else 1 to 10     % of items 80                RUBiS's properties
//
// The tables need not be loaded: Tables.Initial says what a key holds at the beginning. Tables.Rows
// lists them all for a store that is loaded. Tables.Check reports whether what a store holds can
// have come about by these transactions: no auction sells more than it has, and numbers of bids,
// maximum bids and ratings are those of the bids and the comments. Shard says which shard a key
// belongs to.
package rubis
