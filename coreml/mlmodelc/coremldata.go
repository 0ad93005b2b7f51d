package mlmodelc

import (
	"encoding/binary"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/wire"
)

// typeNames names the members of oneof Type in message Model (Model.proto).
var typeNames = map[int]string{
	200: "pipeline (classifier)", 201: "pipeline (regressor)", 202: "pipeline",
	300: "generalised linear regressor", 301: "support vector regressor", 302: "tree ensemble regressor",
	303: "neural network (regressor)", 304: "Bayesian probit regressor",
	400: "generalised linear classifier", 401: "support vector classifier", 402: "tree ensemble classifier",
	403: "neural network (classifier)", 404: "nearest neighbours classifier",
	500: "neural network", 501: "item similarity recommender", 502: "ML Program",
	555: "custom model", 556: "linked model", 560: "class confidence thresholding",
	600: "one-hot encoder", 601: "imputer", 602: "feature vectorizer", 603: "dictionary vectorizer", 604: "scaler",
	606: "categorical mapping", 607: "normalizer", 609: "array feature extractor", 610: "non-maximum suppression",
	900: "identity model", 2000: "text classifier", 2001: "word tagger", 2002: "vision feature print",
	2003: "sound analysis preprocessing", 2004: "gazetteer", 2005: "word embedding", 2006: "audio feature print",
	3000: "serialised model",
}

// MLProgram is the number of the ML Program among the model types.
const MLProgram = 502

// TypeName says what the model type with the field number n of message Model
// is; "" for other fields.
func TypeName(n int) string { return typeNames[n] }

// CoreMLData is coremldata.bin of a compiled model.
type CoreMLData struct {
	Type        int       // field number in message Model; MLProgram, 500 neural network, ...
	SpecVersion int       // 0 when the layout is not the one of a single model
	Description *Metadata // nil when the layout is not the one of a single model
}

// ParseCoreMLData reads coremldata.bin (mil.md section C.3). For a single
// model ("generic") it holds the model description; for pipelines only the
// type is read.
//
//	u32 type; 3 x u64 format version; u64 n, n bytes of layout name;
//	u64 specification version and 24 zero bytes; u64 n, n bytes of
//	ModelDescription; then 16 bytes for each function
func ParseCoreMLData(file string, data []byte) (*CoreMLData, error) {
	data = data[:len(data):len(data)] // positions count from the end
	r := &binReader{file: file, data: data}
	c := &CoreMLData{Type: int(r.u32())}
	r.skip(24)
	layout := r.bytes("layout name")
	if r.err != nil {
		return nil, r.err
	}
	if TypeName(c.Type) == "" {
		return nil, diag.Errorf(diag.AtOffset(file, 0), diag.Malformed, "model type %d is not known", c.Type)
	}
	if string(layout) != "generic" {
		return c, nil
	}
	spec := r.u64()
	r.skip(24)
	desc := r.bytes("model description")
	if r.err != nil {
		return nil, r.err
	}
	if spec > 1<<20 {
		return nil, diag.Errorf(diag.In(file), diag.Malformed, "specification version is %d", spec)
	}
	c.SpecVersion = int(spec)
	var err error
	if c.Description, err = ParseDescription(wire.NewSource(file, data), desc); err != nil {
		return nil, err
	}
	c.Description.SpecVersion = c.SpecVersion
	if c.Type == MLProgram {
		c.Description.ModelType = "MLModelType_mlProgram"
	}
	return c, nil
}

// Analytics is analytics/coremldata.bin.
type Analytics struct {
	ModelHash string // base64 of the SHA-256 of model.mlmodel; "" when absent
	ModelName string
}

// ParseAnalytics reads analytics/coremldata.bin (mil.md section C.4):
// sections of a name and a number of key and value strings, each string with
// its length as u64 in front.
func ParseAnalytics(file string, data []byte) (*Analytics, error) {
	data = data[:len(data):len(data)] // positions count from the end
	r := &binReader{file: file, data: data}
	a := &Analytics{}
	for r.err == nil && r.off < len(r.data) {
		r.bytes("section name")
		n := r.u64()
		for i := uint64(0); i < n && r.err == nil; i++ {
			key, value := r.bytes("key"), r.bytes("value")
			switch string(key) {
			case "modelHash":
				a.ModelHash = string(value)
			case "modelName":
				a.ModelName = string(value)
			}
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return a, nil
}

// binReader reads little-endian numbers; after the first error it returns
// zeros.
type binReader struct {
	file string
	data []byte
	off  int
	err  error
}

func (r *binReader) take(n uint64, what string) []byte {
	if r.err != nil {
		return nil
	}
	if n > uint64(len(r.data)-r.off) {
		r.err = diag.Errorf(diag.AtOffset(r.file, int64(r.off)), diag.Malformed, "%s takes %d bytes, %d are left", what, n, len(r.data)-r.off)
		return nil
	}
	b := r.data[r.off : r.off+int(n)]
	r.off += int(n)
	return b
}

func (r *binReader) u32() uint32 {
	if b := r.take(4, "a number"); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *binReader) u64() uint64 {
	if b := r.take(8, "a number"); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *binReader) skip(n uint64) { r.take(n, "the header") }

// bytes reads a length and that many bytes.
func (r *binReader) bytes(what string) []byte { return r.take(r.u64(), what) }
