// Package report has what happened in a task, and pictures of it.
//
// A [Report] lists a task's runs and calls: what was predicted, held, adopted or abandoned, why,
// and when. foresay.WithReport hands one over when a task ends. It can be written as text
// ([Report.WriteText]), as a timeline ([Timeline]), as a Graphviz graph ([Report.WriteDOT]), as a
// picture ([Report.WriteSVG]) and, by encoding/json, as JSON, which "foresay report" reads.
package report
