// Package figure draws rows as SVG pictures. A system looks alike in all of them, and is told from
// others without colours too.
package figure
