package epaxos

func Protocol() int { return 1 }
