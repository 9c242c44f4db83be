package sim

// Not a package comment.
