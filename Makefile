# Plain targets; .ci/run does everything that CI does.
GO ?= go

.PHONY: build test check lint fuzz golden reference tokenizers tokenizers-test gnustep-test mac-check

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

# gnustep-test runs the Core ML bridge on Linux over GNUstep and a fake Core ML
# (Debian: apt-get install gobjc libgnustep-base-dev). cgo is not used.
gnustep-test:
	ANEPKG_REQUIRE_GNUSTEP=1 CGO_ENABLED=0 $(GO) vet -tags gnustep ./coreml/native/... ./cmd/anepkg
	ANEPKG_REQUIRE_GNUSTEP=1 CGO_ENABLED=0 $(GO) test -count=1 -tags gnustep ./coreml/native/...
	ANEPKG_REQUIRE_GNUSTEP=1 CGO_ENABLED=0 $(GO) test -count=1 -tags gnustep -run CoreML ./cmd/anepkg

# mac-check is for owners of a Mac: it builds, looks at the system, asks it for
# every method that the bridge calls, runs the conformance suite through Core ML,
# holds the sample packages to their golden outputs, and compares the demo on
# Core ML with the CPU engine, part by part. Please report what it prints.
mac-check:
	.ci/mac-check

# The Rust tokenizers, to hold our own to (tag hftokenizers). libtokenizers.a is
# built from the source inside the Go module, with cargo and a C compiler; its
# dependency on a git repository is replaced by the released crate.
TOKENIZERS := github.com/daulet/tokenizers
TOKLIB := build/lib/libtokenizers.a

$(TOKLIB):
	rm -rf build/tokenizers && mkdir -p build/tokenizers build/lib
	dir="$$($(GO) list -m -f '{{.Dir}}' $(TOKENIZERS))" && cp -R "$$dir/src" "$$dir/Cargo.toml" build/tokenizers/
	chmod -R u+w build/tokenizers
	sed -i.bak -e 's|^tiktoken-rs = .*|tiktoken-rs = "=0.9.1"|' -e '/^\[dev-dependencies\]/,$$d' build/tokenizers/Cargo.toml
	cargo build --release --manifest-path build/tokenizers/Cargo.toml --target-dir build/tokenizers/target
	cp build/tokenizers/target/release/libtokenizers.a $@

# tokenizers builds bin/anepkg with --tokenizer hf.
tokenizers: $(TOKLIB)
	CGO_ENABLED=1 CGO_LDFLAGS="-L$(CURDIR)/build/lib" $(GO) build -tags hftokenizers -o bin/anepkg ./cmd/anepkg

tokenizers-test: $(TOKLIB)
	CGO_ENABLED=1 CGO_LDFLAGS="-L$(CURDIR)/build/lib" $(GO) test -count=1 -tags hftokenizers ./runner/tokenizer/...
