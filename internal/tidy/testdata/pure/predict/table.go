package predict

import "os"

type Table struct {
	rows map[string]int
}

func (t *Table) Rows() map[string]int {
	println(os.Args)
	return t.rows
}
