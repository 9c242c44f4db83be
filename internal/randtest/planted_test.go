package randtest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// plant is a bug in the engine's or the transport's own code: a rule removed,
// if the environment says so. The code is replaced while it is compiled for
// this test, and nowhere else.
type plant struct {
	name     string
	dir      string // of the package, from the root of the repository
	old, new string // MUTANT stands for the condition
	sketch   string // shows it soonest; random programs do, too
	slow     bool   // it takes so many worlds that it is tried only if asked for
}

// plantVariable names the planted bug in the environment of the test's child.
const plantVariable = "FORESAY_PLANT"

func plants() []plant {
	return []plant{
		{
			name: "a discarded run's rollback hooks do not run", dir: ".",
			old: "func (r *run) rollBack() {\n", new: "func (r *run) rollBack() {\nif MUTANT {\nreturn\n}\n",
		}, {
			name: "commit and rollback both", dir: ".",
			old: "\tr.release()\n\treturn r.outcome()", new: "\tr.release()\nif MUTANT {\nr.rollBack()\n}\nreturn r.outcome()",
		}, {
			name: "the commit hooks of a staged call run twice", dir: ".",
			old: "\tt.winner.release()\n", new: "\tif MUTANT && t.winner.hooked {\nt.winner.release()\nt.winner.hooked = true\n}\nt.winner.release()\n",
		}, {
			name: "a call keeps its caller's cancellation", dir: ".",
			old: "\tbase := &c.outside\n", new: "\tbase := context.Context(&c.outside)\nif MUTANT {\nbase = plain(c.ctx)\n}\n",
		}, {
			name: "a time limit runs while its call is held", dir: ".",
			old: "func (c *call) shifted(deadline time.Time) time.Time {\n",
			new: "func (c *call) shifted(deadline time.Time) time.Time {\nif MUTANT {\nreturn deadline\n}\n",
		}, {
			name: "operations of a discarded run go on", dir: ".",
			old: "if !r.tree.Discarded() && !t.tree.Over() {", new: "if MUTANT && !t.tree.Over() || !r.tree.Discarded() && !t.tree.Over() {",
		}, {
			name: "a caller's abort does not reach the handler", dir: ".",
			old: "\tif t.tree.Caller() == spectree.CallerOpen {\n", new: "\tif MUTANT {\nt.tree.ConfirmCaller()\n} else if t.tree.Caller() == spectree.CallerOpen {\n",
		}, {
			name: "a handler that may not run again takes predictions", sketch: "relays that write", dir: "specgrpc",
			old: "Replayable: c.method.replayable,", new: "Replayable: c.method.replayable || MUTANT,",
		}, {
			name: "a tentative result is sent as final", sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\t\tif err := c.sendFinal(response, err, tentative); err != nil {", new: "\t\tif err := c.sendFinal(response, err, tentative && !MUTANT); err != nil {",
		}, {
			name: "a call is acknowledged before its hooks ran", slow: true, dir: "specgrpc",
			old: "\tif h != nil {\n\t\terr = h.Finish()\n", new: "\tif MUTANT && h != nil && w == confirmed {\ngo func() { time.Sleep(40 * time.Millisecond); _ = h.Finish() }()\n} else if h != nil {\n\t\terr = h.Finish()\n",
		}, {
			name: "a half-closed stream confirms", sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\t\tif err := c.stream.RecvMsg(frame); err != nil {\n", new: "\t\tif err := c.stream.RecvMsg(frame); err != nil {\nif MUTANT {\nc.confirm()\nreturn\n}\n",
		}, {
			name: "a call that was lost after Confirm is made again", slow: true, sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\tcase w == confirmed && x.cancelled(why) != nil:\n", new: "\tcase w == confirmed && MUTANT:\nreturn false, \"lost\", nil\ncase w == confirmed && x.cancelled(why) != nil:\n",
		}, {
			name: "the interceptors do not run around speculative calls", dir: "specgrpc",
			old: "\tinterceptor := c.registrar.cfg.interceptor\n", new: "\tinterceptor := c.registrar.cfg.interceptor\nif MUTANT {\nenter := interceptor\ninterceptor = func(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {\nif k, ok := req.(interface{ GetKey() string }); ok && len(k.GetKey()) > 1 && k.GetKey()[1] == 's' {\nreturn handler(ctx, req)\n}\nreturn enter(ctx, req, info, handler)\n}\n}\n",
		}, {
			name: "a method runs for a speculative caller whatever it does", dir: "specgrpc",
			old: "\tcase !c.method.admitted:\n", new: "\tcase !c.method.admitted && !MUTANT:\n",
		}, {
			name: "metadata are no part of a call", dir: "specgrpc",
			old: "\tif len(cfg.Metadata) > 0 {\n", new: "\tif len(cfg.Metadata) > 0 && !MUTANT {\n",
		}, {
			name: "calls that look at the transport are predicted", dir: "specgrpc",
			old: "Observed: observed,", new: "Observed: observed && !MUTANT,",
		}, {
			name: "a lease never ends", sketch: "a client that goes silent", dir: "specgrpc",
			old: "func (r *ServiceRegistrar) leaseOf(req *specv1.Request) time.Duration {\n",
			new: "func (r *ServiceRegistrar) leaseOf(req *specv1.Request) time.Duration {\nif MUTANT {\nreturn 1000 * time.Hour\n}\n",
		}, {
			name: "commit hooks run in another order", dir: ".",
			old: "\tfor _, h := range l.commit {\n", new: "\tfor i, j := 0, len(l.commit)-1; MUTANT && i < j; i, j = i+1, j-1 {\nl.commit[i], l.commit[j] = l.commit[j], l.commit[i]\n}\nfor _, h := range l.commit {\n",
		}, {
			name: "rollback hooks run first first", dir: ".",
			old: "\t\tf := r.rollback[n-1]\n\t\tr.rollback = r.rollback[:n-1]\n", new: "\t\tf := r.rollback[n-1]\nif MUTANT {\nf = r.rollback[0]\ncopy(r.rollback, r.rollback[1:])\n}\nr.rollback = r.rollback[:n-1]\n",
		}, {
			name: "a nested Do is a task of its own", dir: ".",
			old: "\tif InTask(ctx) {\n\t\treturn f(ctx)", new: "\tif InTask(ctx) && !MUTANT {\n\t\treturn f(ctx)",
		}, {
			name: "the panic of a discarded run counts", slow: true, dir: ".",
			old: "\tcase r.failed == nil:\n", new: "\tcase MUTANT && r.tree.Discarded():\nr.task.fail(asPanic(p))\ncase r.failed == nil:\n",
		}, {
			name: "a local expiry is the call's result", slow: true, dir: ".",
			old: "\tcase ctx.Err() == context.DeadlineExceeded && l.run.ctx.Err() == nil:\n", new: "\tcase ctx.Err() == context.DeadlineExceeded && l.run.ctx.Err() == nil && !MUTANT:\n",
		}, {
			name: "a call on a context that has ended is made", sketch: "a context that has ended", dir: ".",
			old: "\t\tif err == context.Canceled {\n\t\t\treturn nil, contextError(ctx)", new: "\t\tif err == context.Canceled && !MUTANT {\n\t\t\treturn nil, contextError(ctx)",
		}, {
			name: "a call is sent as the run that made it first would", dir: ".",
			old: "w.op != nil && c.attempts == 0 {", new: "w.op != nil && c.attempts == 0 && !MUTANT {",
		}, {
			name: "the request is no part of a call", dir: "specgrpc",
			old: "\treturn proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, req)\n", new: "\tif MUTANT {\nreturn b, nil\n}\nreturn proto.MarshalOptions{Deterministic: true}.MarshalAppend(b, req)\n",
		}, {
			name: "runs share a response", sketch: "answers that the code changes", dir: "specgrpc",
			old: "\tproto.Reset(dst)\n\tproto.Merge(dst, src)\n", new: "\tproto.Reset(dst)\nif MUTANT {\nsrc.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {\ndst.ProtoReflect().Set(f, v)\nreturn true\n})\nreturn nil\n}\nproto.Merge(dst, src)\n",
		}, {
			name: "a request is read after its call returned", dir: "specgrpc",
			old: "\tk.request = proto.Clone(k.request)\n", new: "\tif !MUTANT {\nk.request = proto.Clone(k.request)\n}\n",
		}, {
			name: "a tentative result is taken for final", sketch: "staged writes of which one is lost", dir: "specgrpc",
			old: "\t\tif !f.Final.GetTentative() {\n", new: "\t\tif !f.Final.GetTentative() || MUTANT {\n",
		}, {
			name: "a stream that is lost before Confirm is a result", dir: "specgrpc",
			old: "\tcase w == confirmed && !s.method.pure:\n\t\treturn true, \"\", x.lost(err)\n", new: "\tcase (w == confirmed || MUTANT) && !s.method.pure:\n\t\treturn true, \"\", x.lost(err)\n",
		},
	}
}

// unseen are the tree's mutations that do not show here, with the reason. The
// tests of the tree itself catch them.
func unseen() map[string]string {
	return map[string]string{
		"ignoreWidth":        "a limit on load, not on results",
		"sendImmediate":      "the server refuses what is declared neither free of side effects nor staged",
		"confirmOutOfOrder":  "a caller stands on the earlier call's answer, which is that it is done",
		"resolveWithEffects": "who computes what is guessed gives up the guess before its first effect",
		"passBarrier":        "whoever must pass a barrier tries again for ever",
		"neverPin":           "goroutines that race for equal effects on one context may be stopped, pinned or not",
		"keepOrder":          "one program in a thousand shows it",
	}
}

// focus names the sketches that show some of the tree's mutations soonest.
func focus() map[string]string {
	return map[string]string{
		"adoptAcrossOrder": "readings of clocks",
		"ignoreOrder":      "readings of clocks",
		"forgetDivergence": "writes that differ each time",
		"forgetOnce":       "one act in several lanes",
	}
}

// allVariable asks for all planted bugs, those too that show only after long.
const allVariable = "FORESAY_PLANTS"

// slow are the tree's mutations that take many worlds to show.
func slow() []string {
	return []string{
		"forgetPath", "twoSiblings", "adoptAcrossEffects", "adoptAcrossOrder", "commuteUnkeyed", "settleEarly",
		"forgetJoinedEffects", "resolveEarly", "predictAfterBarrier", "loseRefused",
	}
}

// TestRandomPlants: bugs planted into the engine are caught by random programs.
func TestRandomPlants(t *testing.T) {
	if os.Getenv(plantVariable) != "" {
		hunt(t)
		return
	}
	if testing.Short() || raced {
		t.Skip("it compiles the engine anew")
	}
	treeNames := treeMutations(t)
	binary := compilePlants(t, treeNames)
	all := plants()
	for _, name := range treeNames {
		if _, ok := unseen()[name]; !ok {
			all = append(all, plant{name: "tree " + name, sketch: focus()[name], slow: slices.Contains(slow(), name)})
		}
	}
	for _, p := range all {
		t.Run(p.name, func(t *testing.T) {
			if p.slow && os.Getenv(allVariable) == "" {
				t.Skipf("it takes long; set %s to try, as make soak does", allVariable)
			}
			cmd := exec.Command(binary, "-test.run", "^TestRandomPlants$", "-test.v", "-test.timeout", "300s")
			cmd.Env = append(os.Environ(), plantVariable+"="+p.name, plantVariable+"_SKETCH="+p.sketch)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			switch told := caught(out); {
			case err == nil || told == "":
				t.Errorf("not caught: %v\n%.3000s", err, out)
			case !errors.As(err, &exit):
				t.Fatal(err)
			default:
				t.Log(told)
			}
		})
	}
}

// caught returns the line that tells how a bug was caught, or what the child
// died of; nothing if it failed for another reason.
func caught(out []byte) string {
	lines := strings.Split(string(out), "\n")
	for _, word := range []string{"caught by", "panic:", "fatal error:"} {
		for _, l := range lines {
			if strings.Contains(l, word) {
				return fmt.Sprintf("%.200s", strings.TrimSpace(l))
			}
		}
	}
	return ""
}

// hunt is the child: it fails when a scenario shows the planted bug.
func hunt(t *testing.T) {
	all := sketches()
	if focus := os.Getenv(plantVariable + "_SKETCH"); focus != "" {
		all = slices.DeleteFunc(all, func(sk sketch) bool { return sk.name != focus })
	}
	n := 0
	for seed := range Seeds(t, 1600) {
		sk := all[n/4%len(all)]
		var sc *Scenario
		switch n % 4 {
		case 0:
			sc = sk.scenario(seed, false)
		case 1:
			sc = sk.scenario(seed, !sk.calm)
		case 2:
			sc = NewScenario(seed, false)
		case 3:
			sc = NewScenario(seed, true)
		}
		n++
		stuck := time.AfterFunc(10*time.Second, func() { panic(fmt.Sprintf("caught by the %d.: it hangs", n)) })
		res := sc.Check(t, Mutation{}, false)
		stuck.Stop()
		if len(res.Wrong) > 0 {
			t.Setenv(plantVariable, "none")
			if sound := sc.Check(t, Mutation{}, false); len(sound.Wrong) > 0 {
				t.Fatalf("seed %d fails without the bug: %s", seed, sound)
			}
			t.Fatalf("caught by the %d. (%d, faults %v): %.150q", n, seed, sc.Faults, res.Wrong[0])
		}
	}
	t.Logf("%d seeds", n)
}

// root is the root of the repository, as seen from this package's tests.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// treeMutations returns the names of the mutations that the tree has of its own.
func treeMutations(t *testing.T) []string {
	t.Helper()
	f, err := parser.ParseFile(gotoken.NewFileSet(), filepath.Join(root(t), "internal/spectree/mutation.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			names = append(names, v.Names[0].Name)
		}
		return true
	})
	if len(names) < 3 || names[0] != "sound" || names[len(names)-1] != "mutations" {
		t.Fatalf("internal/spectree/mutation.go declares %q; want sound, the mutations, mutations", names)
	}
	return names[1 : len(names)-1]
}

// compilePlants compiles this package's tests with all bugs planted, each of
// which waits for the environment to name it.
func compilePlants(t *testing.T, treeNames []string) string {
	t.Helper()
	o := &overlay{t: t, dir: t.TempDir(), files: make(map[string][]byte), Replace: make(map[string]string)}
	for _, p := range plants() {
		o.replace(p.dir, p.old, strings.ReplaceAll(p.new, "MUTANT", fmt.Sprintf("planted(%q)", p.name)))
	}
	o.replace("internal/spectree", "\tt.cfg = cfg\n", "\tt.cfg = cfg\nt.cfg.mutation = plantedMutation()\n")
	var cases strings.Builder
	for _, n := range treeNames {
		fmt.Fprintf(&cases, "case %q:\nreturn %s\n", "tree "+n, n)
	}
	o.add("internal/spectree/planted.go", "package spectree\nimport \"os\"\nfunc plantedMutation() mutation {\nswitch os.Getenv(\""+plantVariable+"\") {\n"+cases.String()+"}\nreturn sound\n}\n")
	for dir, name := range map[string]string{".": "foresay", "specgrpc": "specgrpc"} {
		o.add(dir+"/planted.go", "package "+name+"\nimport \"os\"\nfunc planted(name string) bool { return os.Getenv(\""+plantVariable+"\") == name }\n")
	}
	list := o.write()
	binary := filepath.Join(o.dir, "planted.test")
	cmd := exec.Command("go", "test", "-c", "-vet=off", "-overlay", list, "-o", binary, "./internal/randtest")
	cmd.Dir = root(t)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return binary
}

// overlay collects files that the compiler takes in place of others.
type overlay struct {
	t       *testing.T
	dir     string
	files   map[string][]byte
	Replace map[string]string
}

// replace replaces a text that one file of the package contains once.
func (o *overlay) replace(dir, old, with string) {
	o.t.Helper()
	names, err := filepath.Glob(filepath.Join(root(o.t), dir, "*.go"))
	if err != nil {
		o.t.Fatal(err)
	}
	var in []string
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file := filepath.Join(dir, filepath.Base(name))
		if o.files[file] == nil {
			if o.files[file], err = os.ReadFile(name); err != nil {
				o.t.Fatal(err)
			}
		}
		for range bytes.Count(o.files[file], []byte(old)) {
			in = append(in, file)
		}
	}
	if len(in) != 1 {
		o.t.Fatalf("%q is found in %q, want one place: let the planted bug follow the code", old, in)
	}
	o.files[in[0]] = bytes.Replace(o.files[in[0]], []byte(old), []byte(with), 1)
}

func (o *overlay) add(file, src string) { o.files[file] = []byte(src) }

// write writes the files and returns the name of the list of them.
func (o *overlay) write() string {
	o.t.Helper()
	for file, src := range o.files {
		to := filepath.Join(o.dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, src, 0o600); err != nil {
			o.t.Fatal(err)
		}
		o.Replace[filepath.Join(root(o.t), file)] = to
	}
	b, err := json.Marshal(o)
	if err != nil {
		o.t.Fatal(err)
	}
	list := filepath.Join(o.dir, "overlay.json")
	if err := os.WriteFile(list, b, 0o600); err != nil {
		o.t.Fatal(err)
	}
	return list
}
