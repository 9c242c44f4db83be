// Package configfile reads and writes the files that commands are configured by: JSON with
// comments, whose errors name the file, the line and the field, and the certificates that they
// name. What the fields of a command's file are, its own package says.
package configfile
