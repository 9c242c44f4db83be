package service

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// initialized returns a directory with the files of a group.
func initialized(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	_, err := Init(InitOptions{Dir: dir, Protocol: "pbft", Service: "counter", Cluster: "test", RoundTrip: "20ms",
		Addresses: []string{"a:1", "b:1", "c:1", "d:1"}, Clients: 2})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestWrongFiles changes one file of a group, and looks at what is said of it.
func TestWrongFiles(t *testing.T) {
	const replica, client = "replica-1/replica.json", "client-70000/client.json"
	for name, c := range map[string]struct{ file, from, to, want string }{
		"few members": {GroupFile, `(?s),\s+\{\s+"id": 4.*?\}`, ``,
			`group.json:6: members: there are 3; want 4, which survive one that is faulty, to 64`},
		"no key":   {GroupFile, `"key": "\w+"`, `"key": "12"`, `group.json:10: members[0].key: "12" is no public key`},
		"protocol": {GroupFile, `"pbft"`, `"pbf"`, `group.json:3: protocol: unknown protocol "pbf" (want pbft, zyzzyva; did you mean`},
		"service":  {GroupFile, `"counter"`, `"queue"`, `group.json:4: service: unknown service "queue" (want counter`},
		"trip":     {GroupFile, `"20ms"`, `"20"`, `group.json:5: round_trip: "20" is no duration such as 100ms`},
		"cluster":  {GroupFile, `"test"`, `""`, `group.json:2: cluster: it is missing`},
		"member's ID": {GroupFile, `"id": 3`, `"id": 2`,
			`group.json:18: members[2].id: 2 is that of members[1]`},
		"client's ID": {GroupFile, `"id": 70001`, `"id": 5`, `clients[1].id: 5 is no client's; want 65536 to`},
		"address":     {GroupFile, `"b:1"`, `"a:1"`, `members[1].address: "a:1" is that of members[0]`},
		"one key": {GroupFile, `(?s)("id": 2,.*?"key": ")\w+(".*"id": 3,.*?"key": ")\w+`,
			`${1}` + strings.Repeat("ab", 32) + `${2}` + strings.Repeat("ab", 32), `members[2].key: it is that of members[1]`},
		"replica": {replica, `"id": 1`, `"id": 9`,
			`replica.json:3: id: replica 9, which this file is for, is not among the members in`},
		"another's file":   {replica, `"id": 1`, `"id": 2`, `that one is replica 1's there`},
		"no group":         {replica, `../group.json`, `../groups.json`, `replica.json:2: group: open`},
		"group left out":   {replica, `(?m)^.*"group".*$`, ``, `replica.json: group: it is missing: the group's file`},
		"no such key":      {replica, `key.pem`, `none.pem`, `replica.json:4: key: open`},
		"key left out":     {replica, `"key.pem"`, `""`, `replica.json:4: key: it is missing: the file of the private key`},
		"no key in it":     {replica, `key.pem`, `replica.json`, `has no private key in PEM form`},
		"data":             {replica, `"data": "data"`, `"data": ""`, `replica.json:5: data: it is missing`},
		"field":            {replica, `"data"`, `"dada"`, `replica.json:5: dada: there is no such field`},
		"client":           {client, `70000`, `70009`, `client.json:3: id: client 70009, which this file is for, is not among`},
		"another's client": {client, `70000`, `70001`, `that one is client 70000's there`},
	} {
		t.Run(name, func(t *testing.T) {
			dir := initialized(t)
			file := filepath.Join(dir, c.file)
			was, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			changed := regexp.MustCompile(c.from).ReplaceAll(was, []byte(c.to))
			if string(changed) == string(was) {
				t.Fatalf("%s has no %s:\n%s", c.file, c.from, was)
			}
			if err := os.WriteFile(file, changed, 0o644); err != nil {
				t.Fatal(err)
			}
			read := replica
			if c.file == client {
				read = client
			}
			if read == client {
				_, err = ReadClientConfig(filepath.Join(dir, read))
			} else {
				_, err = ReadConfig(filepath.Join(dir, read))
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got  %v\nwant one with %s", err, c.want)
			}
		})
	}
}

// TestAnothersKey: a key of another group is told from one that is at the wrong place.
func TestAnothersKey(t *testing.T) {
	dir, other := initialized(t), initialized(t)
	key, err := os.ReadFile(filepath.Join(other, "replica-1", keyFile))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "replica-1", keyFile), key, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err = ReadConfig(filepath.Join(dir, ConfigFile(1)))
	want := regexp.MustCompile(`replica.json:4: key: \S*key.pem has the key \w{8}, but replica 1's in the group's file ` +
		`\S*group.json is \w{8}; that one is nobody's there$`)
	if err == nil || !want.MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
}

func TestInitOverwritesNothing(t *testing.T) {
	dir := initialized(t)
	o := InitOptions{Dir: dir, Protocol: "pbft", Service: "counter", Cluster: "test", Addresses: []string{"a:1", "b:1"}}
	if _, err := Init(o); err == nil || !strings.Contains(err.Error(), "the directory has a group already") {
		t.Errorf("got %v", err)
	}
	if err := os.Remove(filepath.Join(dir, GroupFile)); err != nil {
		t.Fatal(err)
	}
	if _, err := Init(o); err == nil || !strings.Contains(err.Error(), "key.pem: file exists") {
		t.Errorf("got %v", err)
	}
}

func TestExampleCanBeRead(t *testing.T) {
	dir := initialized(t)
	replica, group := Example()
	for name, text := range map[string]string{ConfigFile(1): replica, "example.json": group} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c, err := ReadConfig(filepath.Join(dir, ConfigFile(1)))
	if err != nil || c.Listen != "0.0.0.0:7400" {
		t.Errorf("the replica's: %+v, %v", c, err)
	}
	if _, err := ReadGroup(filepath.Join(dir, "example.json")); err != nil {
		t.Errorf("the group's: %v", err)
	}
}
