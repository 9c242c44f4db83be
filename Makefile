# make check is exactly what CI runs, after .ci/run has set a machine up.

# The packages in which goroutines meet: they are tested with the race detector.
CONCURRENT = . ./control ./internal/engine ./internal/randtest ./predict ./replica ./observe ./telemetry ./dash ./specgrpc/... ./wan/... \
	./host/... ./transport/... ./wal/... ./smr/client ./store/client ./store/front ./store/machine

# Tools are pinned in a module of their own: go tool -modfile builds them.
STATICCHECK = go tool -modfile=tools/go.mod staticcheck

# Adapters, and tests that need much, are modules of their own, which ./... of the root does not reach.
MODULES = $(patsubst %/go.mod,%,$(wildcard */*/go.mod))

STEPS = lint tidy gen-check mod-check test race demo

# How long fuzz-short fuzzes each target, and how long soak goes on.
FUZZTIME ?= 10s
SOAK_SECONDS ?= $(or $(SECONDS),600)

# The packages whose tests soak runs, seed after seed.
SEEDED = ./internal/engine ./internal/spectree ./internal/randtest ./predict ./observe ./specgrpc/... ./wan/... ./sim ./smr/... ./store/...

# What bench runs.
EXPERIMENT ?= chain

SHELL = bash
.SHELLFLAGS = -euo pipefail -c
.PHONY: check test race lint tidy gen gen-check mod-check fuzz-short soak random examples demo bench

check:
	@for step in $(STEPS); do \
		echo "==> $$step"; start=$$SECONDS; \
		$(MAKE) --no-print-directory $$step; \
		echo "==> $$step took $$((SECONDS - start)) s"; \
	done

# What is compiled does not depend on where the clone is, so all clones and worktrees share it.
export GOFLAGS += -trimpath

# lint has vetted all packages, and nobody debugs these binaries, which link sooner so. A test that has passed before runs
# all the same.
test race: export GOFLAGS += -vet=off -ldflags=-w -count=1

test:
	go test ./...
	for dir in $(MODULES); do (cd $$dir && go test ./...); done

# Of history, the recorders alone have goroutines. Of the separate modules, one has metrics read while they are written;
# the others have no goroutines of their own.
race:
	GOGC=400 go build -race $(CONCURRENT)
	go test -race $(CONCURRENT)
	go test -race -run Recorder ./history
	cd telemetry/oteltest && go test -race ./...

# The compiler and the linter make much garbage, and need a fifth less time if it is collected less often. Tests must not
# be told so: some measure memory.
lint: export GOGC = 400
lint:
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then \
		echo "not formatted by gofmt:"; echo "$$unformatted"; exit 1; \
	fi
	go vet ./...
	cd tools && go vet ./...
	$(STATICCHECK) ./...
	for dir in $(MODULES); do (cd $$dir && go vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...); done

# The repository's law (not go mod tidy, which mod-check checks).
tidy:
	go test -count=1 ./internal/tidy

gen:
	cd tools && go run ./protogen

gen-check:
	cd tools && go run ./protogen -check

mod-check:
	go mod tidy -diff
	cd tools && go mod tidy -diff
	for dir in $(MODULES); do (cd $$dir && go mod tidy -diff); done

# Each fuzz target for a short while, one after the other.
fuzz-short:
	@for file in $$(grep -rlE '^func Fuzz' --include='*_test.go' . || true); do \
		for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*)\(.*/\1/p' $$file); do \
			echo "==> $$target in $$(dirname $$file)"; \
			go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$(dirname $$file); \
		done; \
	done

# The randomised tests with one seed after the other, and all planted bugs, for SECONDS. They
# play all their seeds, up to 200 in the conformance suites, from FORESAY_SEED on; FORESAY_SEEDS says
# how many each test plays instead. The crash grids of wal have no seed: all of their
# places are tried once.
SOAK = go test -count=1 -run 'Random|Conformance|Couriers' $(SEEDED)
soak:
	FORESAY_PLANTS=all go test -count=1 ./wal
	FORESAY_PLANTS=all go test -count=1 -run TestTuning ./bench/geostore/simulated
	@seed=$${FORESAY_SEED:-$$(date +%s)}; end=$$((SECONDS + $(SOAK_SECONDS))); \
	while [ $$SECONDS -lt $$end ]; do \
		echo "==> FORESAY_SEED=$$seed"; \
		FORESAY_PLANTS=all FORESAY_SEED=$$seed $(SOAK) || \
			{ echo "replay: FORESAY_PLANTS=all FORESAY_SEED=$$seed $(SOAK)"; exit 1; }; \
		FORESAY_SEED=$$seed go test -count=1 -run '^(TestSeeds|TestTraitors|TestTwins)$$' ./bft/... || \
			{ echo "replay: FORESAY_SEED=$$seed go test -run '^(TestSeeds|TestTraitors|TestTwins)$$' ./bft/..."; exit 1; }; \
		seed=$$((seed + 200)); \
	done

# Random programs alone, for SECONDS, with new seeds in each turn, and another number of processors, which decides what
# happens first of what happens at one instant. A finding is printed and counted, with what replays it, and the next turn begins.
PROGRAMS = ./internal/engine ./internal/spectree ./specgrpc ./observe
PROGRAM_TESTS = '^(TestRandom|TestAllWays|TestGoOn)' -test.skip '^TestRandomMutations$$'
random:
	@dir=$$(mktemp -d); trap "rm -rf $$dir" EXIT; \
	for p in $(PROGRAMS); do mkdir -p $$dir/$$p && go test -c -o $$dir/$$p/test $$p; done; \
	seed=$${FORESAY_SEED:-$$(date +%s)}; end=$$((SECONDS + $(SOAK_SECONDS))); turns=0; programs=0; found=0; \
	while [ $$SECONDS -lt $$end ]; do \
		procs=$$((1 << turns % 4)); \
		for p in $(PROGRAMS); do \
			(cd $$p && GOMAXPROCS=$$procs FORESAY_SEED=$$seed $$dir/$$p/test -test.v -test.run $(PROGRAM_TESTS)) >$$dir/log 2>&1 || { \
				found=$$((found + 1)); grep -v -e '^=== ' -e '--- PASS' $$dir/log || true; \
				echo "found with GOMAXPROCS=$$procs FORESAY_SEED=$$seed in $$p"; \
			}; \
			programs=$$((programs + $$({ grep -oE '[0-9]+ seeds in|programs:[0-9]+|PASS: TestRandom(Clock|Foresight).*/' $$dir/log || true; } | \
				awk '/PASS/ { n++; next } { gsub(/[^0-9]/, ""); n += $$0 } END { print n + 0 }'))); \
		done; \
		turns=$$((turns + 1)); seed=$$((seed + 1000)); \
	done; \
	echo "$$turns turns, $$programs programs, $$found findings"; [ $$found = 0 ]

# The programs of examples/ build, and the packages' Example functions print what they say: lint and
# test see to that, too.
examples:
	go build -o /dev/null ./examples/...
	go test -run '^Example' $$(grep -rlE '^func Example' --include='*_test.go' . \
		| grep -v -e /testdata/ $(patsubst %,-e '^./%/',$(MODULES)) | xargs -r dirname | sort -u)

demo:
	go run ./cmd/foresay demo </dev/null

bench:
	go test -run '^$$' -bench . -benchmem ./...
	go run ./cmd/foresay bench $(EXPERIMENT) --out bench-out
