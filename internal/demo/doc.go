// Package demo plays the purchases of SpecRPC's Figure 3, plainly and with
// Foresay, over real gRPC connections with the delays of a wide-area network.
//
// A client asks the analysis server for a user's interests (GetPI), for which
// that server asks the data server for the user's history (GetPH); it asks for
// what the users who share these interests buy (GetAI), computes, and buys.
// [SpecRPC §2.2]
package demo
