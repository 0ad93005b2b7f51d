# Plain targets; .ci/run does everything that CI does.
GO ?= go

.PHONY: build test check lint fuzz golden reference

build:
	CGO_ENABLED=0 $(GO) build -trimpath -o bin/anepkg ./cmd/anepkg

test:
	$(GO) test ./...

# check runs what CI runs, with whatever of it this machine offers.
check:
	.ci/run

lint:
	golangci-lint run ./...

# fuzz runs every fuzz target for FUZZTIME.
FUZZTIME ?= 30s
fuzz:
	.ci/run fuzz $(FUZZTIME)

# golden rewrites the expected outputs of the command's scripts; look at the diff.
golden:
	ANEPKG_UPDATE=1 $(GO) test ./cmd/anepkg -run TestScripts

# reference rewrites docs/ops.md and docs/rules.md from the tables in the code.
reference:
	ANEPKG_UPDATE=1 $(GO) test ./cmd/anepkg -run TestReferencePages
