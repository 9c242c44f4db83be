package carousel

import "github.com/foresay/foresay/internal/plant"

// findPlants leave out how clients find agents, and agents and servers leaders.
func findPlants() []plant.Bug {
	return []plant.Bug{
		{
			Name: "an agent that waits is taken to be away", Test: "TestLateAgentIsNotBlamed",
			Old: "\t\t\tc.Silent(o.Site, declareTries*c.cfg.RoundTrip)\n\t\t\tc.look(env)\n",
			New: "\t\t\tc.Silent(o.Site, declareTries*c.cfg.RoundTrip)\n\t\t\tif !MUTANT {\n\t\t\t\tc.look(env)\n\t\t\t}\n",
		},
		{
			Name: "an agent that does not commit is taken to be away", Test: "TestLateAgentIsNotBlamed",
			Old: "c.look(env) // as for", New: "if !MUTANT {\n\t\t\t\tc.look(env)\n\t\t\t} // as for",
		},
		{
			Name: "what is declared does not wait for who is near", Test: "TestLateAgentIsNotBlamed",
			Old: "!c.looks {\n\t\tc.begin(", New: "(!c.looks || MUTANT) {\n\t\tc.begin(",
		},
		{
			Name: "an agent asks a silent leader alone", Test: "TestAgentFindsLeader",
			Old: "		a.missed(c)\n", New: "		if !MUTANT {\n\t\t\ta.missed(c)\n\t\t}\n",
		},
		{
			Name: "an agent tells a new leader of one transaction", Test: "TestAgentFindsLeader",
			Old: "			a.askLeader(env, a.calls[id], m.Shard)\n",
			New: "			if !MUTANT || id == m.ID {\n\t\t\t\ta.askLeader(env, a.calls[id], m.Shard)\n\t\t\t}\n",
		},
		{
			Name: "an agent does not ask again where nobody leads", Test: "TestAgentAsksWhereNobodyLeads",
			Old: "	case m.Leader == 0 && c.ended == nil:\n", New: "	case m.Leader == 0 && c.ended == nil && !MUTANT:\n",
		},
		{
			Name: "what went to the wrong coordinator is lost", Test: "TestVoteFindsTheCoordinator",
			Old: "	case from != s.where.leader(m.Shard):\n", New: "	case from != s.where.leader(m.Shard) && !MUTANT:\n",
		},
		{
			Name: "a client that only declares goes by any site", Test: "TestClientThatOnlyDeclaresFindsItsHome",
			Old: "	if !c.Lost() &&", New: "	if MUTANT || !c.Lost() &&",
		},
	}
}
