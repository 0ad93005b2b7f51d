package inspect

import (
	"cmp"
	"slices"
)

// Report is what a package is. It marshals to the JSON of "anepkg inspect".
type Report struct {
	Schema    string        `json:"schema"` // "anepkg.inspect/1"
	Package   PackageInfo   `json:"package"`
	Parts     []PartInfo    `json:"parts"`
	Tokenizer TokenizerInfo `json:"tokenizer"`
	Files     []FileInfo    `json:"files"`
	Runtimes  []RuntimeView `json:"runtimes"`
}

// PackageInfo holds the package's numbers. They come from the programs; a
// number that no program tells is the claimed one, and nil when nothing
// tells it.
type PackageInfo struct {
	Path          string   `json:"path"`
	Kind          string   `json:"kind"`
	Layout        string   `json:"layout"`
	Reason        string   `json:"reason"`
	Name          string   `json:"name"`
	Architecture  string   `json:"architecture"`
	ContextLength *int     `json:"context_length"`
	BatchSize     *int     `json:"batch_size"`
	HiddenSize    *int     `json:"hidden_size"`
	VocabSize     *int     `json:"vocab_size"`
	NumLayers     *int     `json:"num_layers"`
	NumChunks     *int     `json:"num_chunks"`
	Bytes         int64    `json:"bytes"` // of all files; a Git LFS pointer counts with its true size
	Seen          []string `json:"seen,omitempty"`
}

// PartInfo describes one model of the package.
type PartInfo struct {
	Role        string         `json:"role"`
	Chunk       *int           `json:"chunk"` // from 1; nil when the part is no chunk
	Of          *int           `json:"of"`
	Path        string         `json:"path"`
	Container   string         `json:"container"`
	Alternative string         `json:"alternative,omitempty"`
	SpecVersion *int           `json:"spec_version"`
	Opset       string         `json:"opset"`
	MinOS       string         `json:"min_os"`
	Functions   []FunctionInfo `json:"functions"`
	Weights     WeightInfo     `json:"weights"`
	Error       string         `json:"error,omitempty"` // why the program could not be read
}

// FunctionInfo describes one function of a part.
type FunctionInfo struct {
	Name        string         `json:"name"`
	Default     bool           `json:"default"`
	Inputs      []FeatureInfo  `json:"inputs"`
	Outputs     []FeatureInfo  `json:"outputs"`
	States      []StateFeature `json:"states"`
	OpHistogram map[string]int `json:"op_histogram"` // constants left out
}

// FeatureInfo is an input or output. A dimension that is not fixed is -1, an
// unbounded upper limit of a range too.
type FeatureInfo struct {
	Name       string   `json:"name"`
	DType      string   `json:"dtype"`
	Shape      []int    `json:"shape"`
	Enumerated [][]int  `json:"enumerated"`
	Range      [][2]int `json:"range"`
	Optional   bool     `json:"optional"`
}

// StateFeature is a state as a function declares it.
type StateFeature struct {
	Name  string `json:"name"`
	DType string `json:"dtype"`
	Shape []int  `json:"shape"`
}

// WeightInfo sums the weights of a part.
type WeightInfo struct {
	Bytes   int64    `json:"bytes"` // of the data; headers and padding of weight.bin left out
	Count   int      `json:"count"`
	Schemes []Scheme `json:"schemes"`
}

// Scheme sums weights that are stored alike.
type Scheme struct {
	Kind      string `json:"kind"`
	Bits      int    `json:"bits"`
	GroupSize int    `json:"group_size"`
	Count     int    `json:"count"`
	Bytes     int64  `json:"bytes"`
	Elements  int64  `json:"elements"`
}

// TokenizerInfo is what the tokenizer files say.
type TokenizerInfo struct {
	Type         string                  `json:"type"`
	VocabSize    *int                    `json:"vocab_size"` // 1 + highest id
	Special      map[string]SpecialToken `json:"special"`
	ChatTemplate string                  `json:"chat_template"` // the file that it comes from, "" without one
	StopIDs      []StopID                `json:"stop_ids"`
	Dir          string                  `json:"dir"`
}

// SpecialToken is a named token; ID is nil when the vocabulary lacks it.
type SpecialToken struct {
	Token string `json:"token"`
	ID    *int   `json:"id"`
}

// StopID is an id that ends a generation, and who says so.
type StopID struct {
	ID      int      `json:"id"`
	Token   string   `json:"token"`
	Sources []string `json:"sources"`
}

// FileInfo is one file. A pointer's Bytes are those on disk; TrueBytes are
// those of the content.
type FileInfo struct {
	Path      string `json:"path"`
	Bytes     int64  `json:"bytes"`
	Status    string `json:"status"`
	TrueBytes *int64 `json:"true_bytes,omitempty"`
	SHA256    string `json:"sha256,omitempty"`
}

// RuntimeView is the value of a parameter as one runtime reads it.
type RuntimeView struct {
	Runtime string `json:"runtime"`
	Key     string `json:"key"`
	Value   any    `json:"value"`
	Source  string `json:"source"` // "meta.yaml:15", "default", "program"
}

func sortSchemes(s []Scheme) {
	slices.SortFunc(s, func(a, b Scheme) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Bits, b.Bits), cmp.Compare(a.GroupSize, b.GroupSize))
	})
}

func ptr[T any](v T) *T { return &v }

// known returns a pointer to n, nil for zero.
func known(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}
