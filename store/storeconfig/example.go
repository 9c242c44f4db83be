package storeconfig

// Example returns a store's file, with comments.
func Example() string { return storeExample }

// MachineExample returns a machine's file, with comments.
func MachineExample() string { return machineExample }

// ClientExample returns the file of clients, with comments.
func ClientExample() string { return clientExample }

const storeExample = `// A store's file, store.json: the same for all of its machines and clients. It is JSON; lines that begin with // are comments.
// 'foresay store init' writes one, with those of machines and clients and with certificates.
{
  // Machines of different clusters do not talk.
  "cluster": "shop",
  // Tells this store from others of the same name. 'foresay store init' makes it up at random; it stays as it is. It may be left out.
  "id": "q3ld5mxk7tz2hnrw4ybcfgj6va",
  // 1, and one more with each change of the sites. Machines of different epochs do not talk. 'foresay store resolve' has those that
  // run agree on the next one, and writes it.
  "epoch": 1,
  // How the sites agree: replicatedcommit; layered, which is two-phase commit over Raft groups; carousel, which does both at once, in the
  // mode basic or, with "mode", in fast or direct; tapir, which has no leaders and is serializable, not strictly; or str, whose
  // transactions build on what is not final yet, and are of strong session snapshot isolation. Protocol and mode cannot be changed
  // later. Left out: replicatedcommit.
  "protocol": "replicatedcommit",
  // How many parts each site's copy has. It cannot be changed later.
  "shards": 3,
  // The sites that have a copy of each shard, the one that leads it first in front: of protocols with leaders, such as layered. With
  // fewer than three copies a shard is away while one of its sites is. Left out: all sites have all. 'foresay store move' changes it
  // while the store runs, and notes what was moved, in "moves".
  //   "placement": [["oregon", "ireland", "seoul"], ["ireland", "seoul", "oregon"], ["seoul", "oregon", "ireland"]],
  // In mode direct carousel has groups that only coordinate transactions, one that is led at each site, at the sites that are listed.
  // 'foresay store init' writes them. Let each have the sites that are nearest before the store is first started. Later 'foresay store
  // move' changes it.
  //   "coordinating": [["oregon", "seoul", "ireland"], ["ireland", "oregon", "seoul"], ["seoul", "oregon", "ireland"]],
  // Each site has a whole copy. A majority of the sites commits a transaction. Order and numbers of sites stay as they are.
  // 'foresay store resolve' sets "fenced" in a site that is lost, and "since", the epoch, in one that takes a lost one's place.
  "sites": [
    {"name": "oregon", "number": 1, "machines": [
      // Where other machines find it, and where clients do. The site's shards are dealt to its machines in turn; with
      // "shards": [0, 2] a machine says which are its own, and so must all others of the site.
      {"name": "oregon", "peers": "10.1.0.1:7400", "client": "10.1.0.1:7401"}
    ]},
    {"name": "ireland", "number": 2, "machines": [{"name": "ireland", "peers": "10.2.0.1:7400", "client": "10.2.0.1:7401"}]},
    {"name": "seoul", "number": 3, "machines": [{"name": "seoul", "peers": "10.3.0.1:7400", "client": "10.3.0.1:7401"}]}
  ],
  // Carousel's servers handle requests to prepare in the order in which they should have arrived everywhere, with "order": "arrival", so
  // that they agree more often on which of two came first. Clocks should be within a few milliseconds. It may be changed: restart the
  // machines, one after the other. Left out: as they come.
  //   "order": "arrival",
  // How far transactions of str, in its mode internal, build on what is not final: not at all, with "off"; they read it, with "reads"; and
  // with "1" to "8" clients go on at local commits, in chains of that length. With "tuned" the store finds out at what most are committed.
  // Machines that are told otherwise work together. Left out: tuned.
  //   "speculate": "tuned",
  // How many copies of each shard of str serve reads: its leader and those that are nearest to it. Commits wait for these, and for a
  // majority of all. It may be changed: restart the machines, one after the other. Left out: all.
  //   "readers": 3,
  // The round-trip time between the sites that are farthest from each other, 1ms to 1m: timeouts follow from it. Left out: 250ms.
  "round_trip": "250ms",
  // How long decided transactions are remembered for clients that ask. Left out: 1m.
  "retain": "1m",
  // How far a client's clock may be ahead. Left out: 1m.
  "max_ahead": "1m",
  // How far the clocks of any two machines may be apart, for the protocol carousel, which relies on it: commits wait until their time has
  // passed on all clocks. At most four times round_trip. Left out: 10ms.
  //   "max_offset": "10ms",
  // How many transactions a shard remembers; with as many it takes no more. Left out: 1000000.
  "max_txns": 1000000,
  // Machines whose sites were replaced, as 'foresay store resolve' notes: their names are not used again.
  "left": ["singapore"]
}
`

const machineExample = `// A machine's file, for 'foresay store serve --config FILE'. Names of files and directories are relative to this file.
{
  "store": "store.json",
  // This machine's name in it.
  "machine": "oregon",
  // Where it listens. Left out: the addresses in the store's file.
  "listen": {"peers": "0.0.0.0:7400", "client": "0.0.0.0:7401"},
  // The directory of its shards. What they voted is there: never copy it, never restore it from a backup, never start it twice.
  "data": "data-oregon",
  // Certificates of one authority, which is this store's alone. A machine's has the DNS names replica-N of its nodes, and the host
  // of its client address. Without tls, "insecure": true is needed, and whoever reaches a machine is whoever it says.
  "tls": {"ca": "ca.pem", "cert": "machine-oregon.pem", "key": "machine-oregon-key.pem"},
  // Where /metrics (Prometheus' text) and /ready are served by HTTP. Left out: nowhere.
  "metrics": "127.0.0.1:7480",
  // How many bytes of what is on the disk are also kept in memory. Left out: 64 MiB.
  "cache_bytes": 67108864,
  "log": {"level": "info", "format": "text"}
}
`

const clientExample = `// The file of clients, for 'foresay store txn --client FILE'. Names of files are relative to this file.
{
  "store": "store.json",
  // Files of the store with other addresses, for clients at a site: --site oregon takes that one. Left out: there are none.
  "views": {"oregon": "store-oregon.json"},
  "tls": {"ca": "ca.pem", "cert": "client.pem", "key": "client-key.pem"}
}
`
