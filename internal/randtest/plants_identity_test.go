package randtest

// identityPlants are bugs in what makes two calls the same call.
func identityPlants() []plant {
	return []plant{
		{
			name: "metadata are no part of a call", first: []int{180}, dir: "specgrpc",
			old: "\tmd, ok := metadata.FromOutgoingContext(ctx)\n\tif !ok {",
			new: "\tmd, ok := metadata.FromOutgoingContext(ctx)\n\tif !ok || MUTANT {",
		}, {
			name: "what is looked up in a context is no part of a call", dir: "internal/engine",
			old: "\t\tsame = max(same, CompareContextValues(l.value, ctx.Value(l.key)))\n",
			new: "\t\tif !MUTANT {\nsame = max(same, CompareContextValues(l.value, ctx.Value(l.key)))\n}\n",
		}, {
			name: "options are no part of a call", dir: "internal/engine",
			old: "\tif ok {\n\t\tsame = k.SameCall", new: "\tif ok && !MUTANT {\n\t\tsame = k.SameCall",
		}, {
			name: "a call is the same whatever its code was told", first: []int{396}, dir: "internal/spectree",
			old: "o.useAt(l.uses[i].Call.key))\n\t\tif !same {", new: "o.useAt(l.uses[i].Call.key))\n\t\tif !same && !MUTANT {",
		}, {
			name: "a call is the same whatever the lane that forked its own was told", first: []int{5055, 4032, 6019},
			sketch: "lanes, then a tenant", dir: "internal/spectree",
			old: "\tif l.parent != nil {\n\t\tif same, above", new: "\tif l.parent != nil && !MUTANT {\n\t\tif same, above",
		}, {
			name: "a call is the same whatever its lane waited for", first: []int{2621}, sketch: "lanes, then a tenant",
			dir: "internal/spectree",
			old: "\tif same, final = l.knowsNoOther(o); !same {",
			new: "\tif same, final = l.knowsNoOther(o); !same && !MUTANT {",
		}, {
			name: "a goroutine makes for sure what another one made in its place", slow: true,
			sketch: "tenants that come to one place in turn", dir: "internal/engine",
			old: "s == Different {\n\t\t\tcontinue",
			new: "s == Different && !(MUTANT && c.how == spectree.Sure) {\n\t\t\tcontinue",
		}, {
			name: "a call is the same whatever a future was guessed to be", first: []int{4834}, sketch: "lanes, then a tenant",
			dir: "internal/spectree",
			old: "return x.what == y.what && x.value == y.value }",
			new: "return x.what == y.what && (x.value == y.value || MUTANT) }",
		}, {
			name: "a call is shared before it is known what it sends", dir: "internal/engine",
			old: "\tif certain && !all {", new: "\tif certain && !all && !MUTANT {",
		},
	}
}

// futurePlants are about futures, goroutines that race, and processes that stand still.
func futurePlants() []plant {
	return []plant{
		{
			name: "futures that nobody waits for are given up", sketch: "futures that nobody waits for", dir: "internal/engine",
			old: "\treturn f.computing() && !spare && !f.owner.isLost()\n",
			new: "\treturn f.computing() && !MUTANT && !spare && !f.owner.isLost()\n",
		}, {
			name: "writes of a future that was not needed are given up", sketch: "writes that Any does without",
			dir: "internal/engine",
			old: "\tif l.givenUp() && spec.Effect == spectree.None {\n",
			new: "\tif l.givenUp() && (spec.Effect == spectree.None || MUTANT) {\n",
		}, {
			name: "a replay tells of a time limit that its context does not know of", sketch: "a read that runs out of time",
			dir: "internal/engine",
			old: "\tif ended == nil || byDeadline", new: "\tif MUTANT || ended == nil || byDeadline",
		}, {
			name: "nobody doubts a guess at a call that was cancelled", sketch: "a read that a timer cancels",
			dir: "internal/engine",
			old: "\tif long {\n", new: "\tif long && !MUTANT {\n",
		}, {
			name: "guesses outlive that the code gave the call up", first: []int{2755}, sketch: "a read that a timer cancels",
			dir: "internal/engine",
			old: "\t\tt.tree.Insist(u)\n", new: "\t\tif !MUTANT {\nt.tree.Insist(u)\n}\n",
		}, {
			name: "a Confirm that nobody heard counts", sketch: "staged writes, and a pause", dir: "specgrpc",
			old: "\tcase w == confirmed && unconfirmed:\n", new: "\tcase w == confirmed && unconfirmed && !MUTANT:\n",
		},
	}
}
