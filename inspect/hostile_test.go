package inspect_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// TestHostile: cut, flipped and random bytes in any file never make a report
// fail; they are findings or nothing.
func TestHostile(t *testing.T) {
	rounds := 30
	if testing.Short() {
		rounds = 10
	}
	for _, name := range []string{"tiny/seed-qwen3-lut6/compiled", "tiny/seed-qwen3_5-2chunks-fp16/package", "tiny/anemll-gemma3-rotate/compiled", "tiny/cml-gemma4-stateful/package", "tiny/cml-qwen35-mlkv/compiled", "tiny/cml-gemma4-swa-chunks/compiled", "anemll-qwen3-1.7b-ctx2048-lfs-pointers"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rounds := rounds
			files := load(t, sharedtest.Path(t, "models/"+name))
			names := slices.Sorted(maps.Keys(files))
			rng := rand.New(rand.NewPCG(1, uint64(len(name))))
			if strings.HasPrefix(name, "anemll-qwen3-1.7b") {
				rounds = min(rounds, 12) // its programs are large
			}
			for range rounds {
				m := maps.Clone(files)
				for range 1 + rng.IntN(3) {
					spoil(rng, m, names[rng.IntN(len(names))])
				}
				judge(t, m)
			}
		})
	}
}

// spoil changes one file at random.
func spoil(rng *rand.Rand, m fstest.MapFS, name string) {
	if m[name] == nil {
		return // deleted before
	}
	data := slices.Clone(m[name].Data)
	switch rng.IntN(5) {
	case 0:
		data = data[:rng.IntN(len(data)+1)]
	case 1:
		for range 1 + rng.IntN(8) {
			if len(data) > 0 {
				data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			}
		}
	case 2: // a digit becomes another one, or many
		for range 20 {
			if i := rng.IntN(len(data) + 1); i < len(data) && data[i] >= '0' && data[i] <= '9' {
				data = slices.Concat(data[:i], []byte("987654321"[:1+rng.IntN(9)]), data[i:])
				break
			}
		}
	case 3:
		at := rng.IntN(len(data) + 1)
		junk := make([]byte, rng.IntN(64))
		for i := range junk {
			junk[i] = byte(rng.Uint32())
		}
		data = slices.Concat(data[:at], junk, data[at:])
	case 4:
		delete(m, name)
		return
	}
	m[name] = &fstest.MapFile{Data: data}
}

func judge(t *testing.T, m fstest.MapFS) {
	t.Helper()
	ctx := context.Background()
	p := open(t, m, "pkg")
	r, err := inspect.Validate(ctx, p, inspect.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range r.Findings {
		if strings.HasPrefix(f.Message, "the check itself failed") {
			t.Errorf("%s: %s", f.ID, f.Message)
		}
	}
	if _, err := inspect.Weights(ctx, p); err != nil {
		t.Error(err)
	}
	if _, err := inspect.Memory(ctx, p); err != nil {
		t.Error(err)
	}
	rep, err := inspect.Inspect(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	states, err := inspect.States(ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, write := range []func() error{
		func() error { return r.WriteText(&b, true) }, func() error { return rep.WriteText(&b, true) }, func() error { return states.WriteText(&b, true) },
	} {
		if err := write(); err != nil {
			t.Fatal(err)
		}
	}
}
