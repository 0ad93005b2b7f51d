// Package manifest finds out what a folder is: the kind of package, its
// parts, and every parameter that its description files claim, each with its
// position. It reads only small files; models are opened on demand.
//
// Files: manifest.go (Package, Part, Param), problems.go (what a Problem can
// be), open.go (Open and detection), layout.go (layout from the programs),
// yamldoc.go, yamlerrors.go and jsondoc.go (description files with positions
// and the places of their faults), metayaml.go
// (meta.yaml of ANEMLL and seed packages), anemllparts.go (finding its
// parts), comments.go (the comment block of ANEMLL's generator),
// coremlllm.go (model_config.json packages), files.go (file list, LFS
// pointers, HTML pages), tokenizer.go and vocab.go (what the tokenizer files
// claim), model.go (opening parts), param.go (reading parameters).
package manifest

import (
	"io/fs"
	"sync"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
)

// Kind is the family of a package.
type Kind string

// The families.
const (
	Seed          Kind = "seed"           // meta.yaml with at least one key of the seed extensions
	ANEMLL        Kind = "anemll"         // meta.yaml as ANEMLL writes it
	CoreMLLLM     Kind = "coreml-llm"     // model_config.json, or the file set of CoreML-LLM
	SingleModel   Kind = "model"          // one .mlmodelc or .mlpackage
	NeuralNetwork Kind = "neural-network" // .mlmodel or Espresso files: recognised, not supported
	CoreAI        Kind = "core-ai"        // .aimodel: recognised, not supported
	Unknown       Kind = "unknown"
)

// Layout is the calling convention inside a family.
type Layout string

// The layouts. The runner has one contract for each.
const (
	Chunked          Layout = "chunked"           // embeddings, decoder chunks, lm_head
	ChunkedRecurrent Layout = "chunked-recurrent" // the same with recurrent states (seed qwen3_5)
	ChunkedGemma4    Layout = "chunked-gemma4"    // the same with per_layer_inputs (seed gemma4)
	Rotate           Layout = "rotate"            // ANEMLL chunks with infer_rotate and prefill_rotate
	Monolithic       Layout = "monolithic"        // one model from ids to logits
	KVIO             Layout = "kv-io"             // CoreML-LLM chunks, KV cache as inputs and outputs
	StatefulChunks   Layout = "stateful-chunks"   // CoreML-LLM chunks with states
	MLKV             Layout = "mlkv"              // CoreML-LLM Qwen3.5 chunks
	Encoder          Layout = "encoder"           // one model from ids to an embedding
	Single           Layout = "single"            // any other single model
	NoLayout         Layout = ""
)

// Role is what a part does.
type Role string

// The roles.
const (
	Embeddings Role = "embeddings"
	Chunk      Role = "chunk"        // decoder layers
	ChunkRot   Role = "chunk_rotate" // the _rot file of a chunk
	LMHead     Role = "lm_head"
	Mono       Role = "monolithic"
	PrefillOf  Role = "prefill" // a separate prefill model (CoreML-LLM)
	EncoderOf  Role = "encoder"
	Model      Role = "model"
	Leftover   Role = "leftover" // a model that no runtime uses (an intermediate of the converter)
)

// Package is an opened folder.
type Package struct {
	FS   fs.FS
	Path string // as the user named it, for messages
	// Kind and Layout, and why they were chosen (one sentence naming the
	// evidence; shown by inspect and -v).
	Kind   Kind
	Layout Layout
	Reason string

	Name         string // claimed name, else the folder's
	Architecture string // claimed, "" when not claimed

	// ConfigFile is the path of the description file ("meta.yaml",
	// "model_config.json"), "" without one.
	ConfigFile string
	Params     Params
	// Comments are the "# key: value" lines of the block that ANEMLL's
	// generator appends to meta.yaml. They are evidence, not parameters: no
	// runtime reads them, and they may contradict the parameters.
	Comments Params
	// Source is the text of ConfigFile, for excerpts; nil without one.
	Source    []byte
	Parts     []*Part
	Files     []File // every regular file, sorted by path
	Tokenizer Tokenizer
	// Problems are things wrong with the description files that still let
	// the package open (unknown types, duplicate keys, missing parts);
	// inspect turns them into findings.
	Problems []*diag.Error
	// Around is what the caller named, and Inside the folder of it that is the
	// package, where Open entered a single folder; nil and "" else.
	Around fs.FS
	Inside string
	// Seen says in words what an unknown folder holds.
	Seen []string
	// Truncated is set when the folder holds more files than Files lists: a
	// walk ends early where nothing of a package is seen.
	Truncated bool

	mu         sync.Mutex  // guards the models of Parts
	containers []container // every model folder that was found
}

// Params are the parameters of the description file, in file order. Keys
// inside model_info.parameters have their plain name; keys of model_info
// itself are prefixed "model_info.". For JSON the key is the member name.
type Params []Param

// Param is one claimed value.
type Param struct {
	Key    string
	Value  any    // nil, bool, int, float64, string, []any, map[string]any
	Raw    string // scalar as written
	Quoted bool   // a string in quotes (Swift readers then ignore an int)
	KeyPos diag.Pos
	Pos    diag.Pos // of the value
	// Elems are the members of a list or map, each with its position.
	Elems []Param
}

// Get returns the parameter called key, or nil.
func (ps Params) Get(key string) *Param {
	for i := range ps {
		if ps[i].Key == key {
			return &ps[i]
		}
	}
	return nil
}

// Int returns an integer parameter. Quoted integers count (ANEMLL's Python
// readers take them); "none" and null do not.
func (ps Params) Int(key string) (int, bool) { return ps.Get(key).Int() }

// Bool returns a boolean parameter; absent is false, false.
func (ps Params) Bool(key string) (val, ok bool) { return ps.Get(key).Bool() }

// Str returns a scalar parameter as written; "" and false for null or absent.
func (ps Params) Str(key string) (string, bool) { return ps.Get(key).Str() }

// Part is one model of the package.
type Part struct {
	Role      Role
	Chunk, Of int // 1-based chunk number and count; 0 when not a chunk
	// Path of the container inside the package's FS. Empty when the part is
	// claimed but absent; Claimed then says the name.
	Path      string
	Container coreml.Container
	// Alternative is the path of the other container form of the same part
	// when both exist (.mlmodelc is preferred).
	Alternative string
	Claimed     string   // file name that the description claims, "" if none
	ClaimedAt   diag.Pos // where it is claimed

	model *coreml.Model
	err   error
	tried bool
}

// FileStatus is what a look at the first bytes tells about a file.
type FileStatus string

// The statuses.
const (
	FileOK         FileStatus = "ok"
	FileLFSPointer FileStatus = "lfs_pointer"
	FileHTML       FileStatus = "html" // a web page stands where a file should be
	FileEmpty      FileStatus = "empty"
	FilePartial    FileStatus = "partial" // .incomplete, .part, .crdownload and the like
)

// File is one regular file of the package.
type File struct {
	Path   string
	Bytes  int64
	Status FileStatus
	// LFSSize and LFSOID are what a pointer says: the true size and the
	// sha256 of the content in hex.
	LFSSize int64
	LFSOID  string
}

// TrueBytes is the size of the content: LFSSize for a pointer, else Bytes.
func (f File) TrueBytes() int64 {
	if f.Status == FileLFSPointer {
		return f.LFSSize
	}
	return f.Bytes
}

// File returns the entry of path, or nil.
func (p *Package) File(path string) *File {
	for i := range p.Files {
		if p.Files[i].Path == path {
			return &p.Files[i]
		}
	}
	return nil
}

// PartsOf returns the parts with the role, in chunk order.
func (p *Package) PartsOf(role Role) []*Part {
	var out []*Part
	for _, pt := range p.Parts {
		if pt.Role == role {
			out = append(out, pt)
		}
	}
	return out
}

// Tokenizer is what the tokenizer files claim. Paths are "" when absent.
type Tokenizer struct {
	Dir          string // folder inside the package that holds the files ("." for the root)
	File         string // tokenizer.json
	ConfigFile   string // tokenizer_config.json
	TemplateFile string // chat_template.jinja
	GenConfig    string // generation_config.json
	ModelConfig  string // config.json
	Type         string // "BPE", "Unigram", "WordPiece", "" if not readable
	VocabSize    int    // 1 + highest id in tokenizer.json, added tokens included
	// Special maps "bos", "eos", "pad", "unk" to the token text and id.
	Special map[string]SpecialToken
	// Added are the added tokens of tokenizer.json.
	Added []SpecialToken
	// StopSources lists every stop id that a file names and where.
	StopSources []StopSource
	// ChatTemplate is the template's text and the file that it came from.
	ChatTemplate     string
	ChatTemplateFrom string
}

// SpecialToken is a token with its id (-1 when the vocabulary lacks it).
type SpecialToken struct {
	Content string
	ID      int
	Special bool
	Pos     diag.Pos
}

// StopSource is a stop id and the file and key that name it.
type StopSource struct {
	ID     int
	Token  string
	Source string // "generation_config.json: eos_token_id"
	Pos    diag.Pos
}
