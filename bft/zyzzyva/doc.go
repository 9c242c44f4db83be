// Package zyzzyva is Zyzzyva with the view change that its authors' lacks: replicas execute in the
// primary's order before they agree on it, and clients find out whether they do.
package zyzzyva
