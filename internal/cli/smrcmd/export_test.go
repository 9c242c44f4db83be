package smrcmd

// PlanDocument is what --json of smr plan writes.
type PlanDocument = planDocument
