package quorum

// Traitors returns how many of n members may say different things to different others, so that the
// rest can still agree: f of 3f+1, 3f+2 and 3f+3.
func Traitors(n int) int { return max(n-1, 0) / 3 }

// Byzantine returns the smallest number of n members of which any two sets share one that is no
// traitor: 2f+1 of 3f+1, 4 of 5 and of 6. There are as many without the traitors.
func Byzantine(n int) int { return (n+Traitors(n))/2 + 1 }

// Witness returns the smallest number of n members among which one is no traitor: f+1.
func Witness(n int) int { return Traitors(n) + 1 }
