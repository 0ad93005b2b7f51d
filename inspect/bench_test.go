package inspect_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"testing"
	"testing/fstest"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// BenchmarkWeights validates a model with 256 MB of fp16 weights: how fast
// weight data are read and judged.
func BenchmarkWeights(b *testing.B) {
	const rows, cols = 16384, 8192
	bin := make([]byte, 128+2*rows*cols)
	le := binary.LittleEndian
	le.PutUint32(bin, 1)
	le.PutUint32(bin[4:], 2)
	le.PutUint32(bin[64:], 0xdeadbeef)
	le.PutUint32(bin[68:], 1)
	le.PutUint64(bin[72:], 2*rows*cols)
	le.PutUint64(bin[80:], 128)
	for i := 128; i < len(bin); i += 2 {
		le.PutUint16(bin[i:], uint16(0x2c00+uint32(i)*2654435761>>9&0xfff))
	}
	program := fmt.Sprintf(`program(1.3)
{
    func main<ios18>(tensor<fp16, [1, %[2]d]> x) {
            tensor<fp16, [%[1]d, %[2]d]> w = const()[val = tensor<fp16, [%[1]d, %[2]d]>(BLOBFILE(path = string("@model_path/weights/weight.bin"), offset = uint64(64)))];
            tensor<fp16, [1, %[1]d]> y = linear(weight = w, x = x);
        } -> (y);
}`, rows, cols)
	files := fstest.MapFS{"m.mlmodelc/model.mil": {Data: []byte(program)}, "m.mlmodelc/coremldata.bin": {Data: []byte("x")}, "m.mlmodelc/weights/weight.bin": {Data: bin}}
	b.SetBytes(int64(len(bin)))
	for b.Loop() {
		r, err := inspect.Validate(context.Background(), open(b, files, "m.mlmodelc"), inspect.Options{})
		if err != nil || len(r.Run) < 20 {
			b.Fatalf("%v, %d checks", err, len(r.Run))
		}
	}
}

// BenchmarkFast validates a real package of 28 layers without its weights.
func BenchmarkFast(b *testing.B) {
	dir := sharedtest.Path(b, "models/anemll-qwen3-1.7b-ctx2048-lfs-pointers")
	for b.Loop() {
		if _, err := inspect.Validate(context.Background(), open(b, os.DirFS(dir), dir), inspect.Options{Fast: true}); err != nil {
			b.Fatal(err)
		}
	}
}
