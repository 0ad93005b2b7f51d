package compile

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"slices"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/mlpackage"
	"github.com/anepkg/anepkg/coreml/wire"
)

// Fields of message Model and of ModelDescription (Model.proto).
const (
	modelDescription    = 2
	descriptionMetadata = 100
)

// emptyMetadata is an empty message Metadata inside ModelDescription, which
// Apple's compiler always writes.
var emptyMetadata = []byte{0xa2, 0x06, 0x00}

// coremlData makes coremldata.bin: a header, the model description as it
// stands in the specification, and a trailer for each function.
func coremlData(m *mlpackage.Model, file string, spec []byte) ([]byte, error) {
	src := wire.NewSource(file, spec)
	var desc []byte
	if err := src.Each(src.Message(), func(f wire.Field) error {
		if f.Num == modelDescription && f.IsBytes() {
			if desc != nil {
				return diag.Errorf(diag.In(file), diag.Unsupported, "the model description comes in several pieces")
			}
			desc = f.Bytes
		}
		return nil
	}); err != nil {
		return nil, err
	}
	hasMetadata := false
	if err := src.Each(desc, func(f wire.Field) error {
		hasMetadata = hasMetadata || f.Num == descriptionMetadata
		return nil
	}); err != nil {
		return nil, err
	}
	desc = slices.Clone(desc)
	if !hasMetadata {
		desc = append(desc, emptyMetadata...)
	}
	version := uint64(5) // of the layout
	if m.Description.SpecVersion > 8 {
		version = 9
	}
	le := binary.LittleEndian
	b := le.AppendUint32(nil, mlmodelc.MLProgram)
	b = words64(b, version, 0, 0)
	b = counted(b, []byte("generic"))
	b = words64(b, uint64(m.Description.SpecVersion), 0, 0, 0)
	b = counted(b, desc)
	for range max(1, len(m.Program.Functions)) {
		b = le.AppendUint32(b, mlmodelc.MLProgram)
		b = words64(b, 0)
		b = le.AppendUint32(b, 0)
	}
	return b, nil
}

// analytics makes analytics/coremldata.bin: sections of keys and values.
func analytics(spec []byte, modelName string) []byte {
	sum := sha256.Sum256(spec)
	var b []byte
	for _, s := range []struct {
		name  string
		pairs [][2]string
	}{
		{"NeuralNetworkModelDetails", [][2]string{{"containsCustomLayer", "0"}, {"modelDimension", "0"}}},
		{"SpecificationDetails", [][2]string{{"modelHash", base64.StdEncoding.EncodeToString(sum[:])}, {"modelName", modelName}}},
	} {
		b = counted(b, []byte(s.name))
		b = words64(b, uint64(len(s.pairs)))
		for _, p := range s.pairs {
			b = counted(counted(b, []byte(p[0])), []byte(p[1]))
		}
	}
	return b
}

func words64(b []byte, vals ...uint64) []byte {
	for _, v := range vals {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

// counted appends a length and the bytes.
func counted(b, s []byte) []byte { return append(words64(b, uint64(len(s))), s...) }
