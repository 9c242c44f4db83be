package plancmd

// PlanDocument is what --json of smr plan writes.
type PlanDocument = document
