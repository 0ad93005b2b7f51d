package inspect

import (
	"context"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/manifest"
)

// LayersReport lists the layers of a package. It marshals to the JSON of
// "anepkg layers". Layers count from 0; first and last are inclusive.
type LayersReport struct {
	Schema    string       `json:"schema"` // "anepkg.layers/1"
	NumLayers int          `json:"num_layers"`
	Chunks    []ChunkInfo  `json:"chunks"`
	Layers    []*LayerInfo `json:"layers"`
}

// ChunkInfo is the range of layers in one part. First and Last are -1 when
// nothing tells them. Source says what did: "com.anemll.layers", "weight
// names", "kv slots", "state inputs".
type ChunkInfo struct {
	Part      string   `json:"part"`
	Chunk     int      `json:"chunk"`
	Of        int      `json:"of"`
	First     int      `json:"first"`
	Last      int      `json:"last"`
	Functions []string `json:"functions"`
	Source    string   `json:"source"`

	view *partView
	base int // what to add to the numbers in weight names
}

// LayerInfo is one layer. KVSlot is its slot in the KV cache state of its
// chunk, or for a linear layer its number among the linear layers;
// SharesWith is the layer whose keys and values it reads.
type LayerInfo struct {
	Index       int      `json:"index"`
	Type        string   `json:"type"` // full, sliding, linear, conv
	Chunk       int      `json:"chunk"`
	KVSlot      *int     `json:"kv_slot"`
	SharesWith  *int     `json:"shares_with"`
	WeightBytes int64    `json:"weight_bytes"`
	Schemes     []Scheme `json:"schemes"`

	state string // that it writes, "" when none is known
	part  string
}

// Layers reports which layers each chunk holds.
func Layers(ctx context.Context, pkg *manifest.Package) (*LayersReport, error) {
	v, err := look(ctx, pkg)
	if err != nil {
		return nil, err
	}
	return v.layers(), nil
}

// layers finds the layers once.
func (v *view) layers() *LayersReport {
	if v.known == nil {
		v.known = v.findLayers()
	}
	return v.known
}

func (v *view) findLayers() *LayersReport {
	r := &LayersReport{Schema: "anepkg.layers/1", Chunks: []ChunkInfo{}, Layers: []*LayerInfo{}}
	next := 0
	for _, p := range v.parts {
		if p.Role != manifest.Chunk && p.Role != manifest.Mono && p.Role != manifest.EncoderOf && p.Role != manifest.ChunkRot {
			continue
		}
		c := ChunkInfo{Part: p.label(), Chunk: max(1, p.Chunk), Of: max(1, p.Of), First: -1, Last: -1, Functions: []string{}, view: p}
		if p.model == nil || p.err != nil {
			c.Source = "unreadable"
			r.Chunks = append(r.Chunks, c)
			continue
		}
		for _, f := range p.model.Functions {
			c.Functions = append(c.Functions, f.Name)
		}
		from := next
		if p.Role == manifest.ChunkRot && len(r.Chunks) > 0 { // the same layers as the chunk before it
			if prev := r.Chunks[len(r.Chunks)-1]; prev.First >= 0 {
				from = prev.First
			}
		}
		c.locate(from)
		if c.First >= 0 && p.Role != manifest.ChunkRot {
			next = c.Last + 1
			r.NumLayers = max(r.NumLayers, next)
		}
		r.Chunks = append(r.Chunks, c)
	}
	for i := range r.Chunks {
		if c := &r.Chunks[i]; c.First >= 0 && c.view.Role != manifest.ChunkRot {
			v.addLayers(r, c)
		}
	}
	v.shareLayers(r)
	if v.pkg.Layout == manifest.KVIO {
		r.slotsOfInputs()
	}
	return r
}

var layerRange = regexp.MustCompile(`^\s*(\d{1,4})\s*(?:-|\.\.|:|,|\s+to\s+)\s*(\d{1,4})\s*$`)

// parseLayers reads com.anemll.layers. The format names the key but not its
// form; "first-last", inclusive, from 0, and a list are accepted.
func parseLayers(s string) (first, last int, ok bool) {
	if m := layerRange.FindStringSubmatch(s); m != nil && !strings.Contains(s, ",") {
		first, _ = strconv.Atoi(m[1])
		last, _ = strconv.Atoi(m[2])
		return first, last, first <= last
	}
	var nums []int
	for f := range strings.SplitSeq(strings.Trim(s, "[] "), ",") {
		n, err := strconv.Atoi(strings.TrimSpace(f))
		if err != nil || n < 0 || n > 9999 {
			return 0, 0, false
		}
		nums = append(nums, n)
	}
	for i := 1; i < len(nums); i++ {
		if nums[i] != nums[i-1]+1 {
			return 0, 0, false
		}
	}
	return nums[0], nums[len(nums)-1], true
}

// locate finds the chunk's range. next is the first layer that no earlier
// chunk has, for programs whose weight names count from 0 in each chunk.
func (c *ChunkInfo) locate(next int) {
	p := c.view
	f := p.fn("infer")
	var named []int
	if f != nil && p.program(f.Name) != nil {
		named = p.program(f.Name).namedLayers()
	}
	if first, last, ok := parseLayers(p.model.UserMeta["com.anemll.layers"]); ok {
		c.First, c.Last, c.Source = first, last, "com.anemll.layers"
		if len(named) > 0 {
			c.base = first - named[0]
		}
		return
	}
	if f != nil {
		if abs := stateInputs(f); len(abs) > 0 && len(named) > 0 {
			// linear layers carry their absolute number in the names of
			// their state inputs; names of weights count inside the chunk
			c.base = abs[0] - abs[0]%len(named) - named[0]
			c.First, c.Last, c.Source = named[0]+c.base, named[len(named)-1]+c.base, "state inputs"
			return
		}
	}
	if len(named) > 0 {
		if named[0] < next {
			c.base = next - named[0]
		}
		c.First, c.Last, c.Source = named[0]+c.base, named[len(named)-1]+c.base, "weight names"
		return
	}
	if f == nil || p.program(f.Name) == nil {
		return
	}
	if lo, hi, ok := kvRange(f, p.program(f.Name)); ok {
		c.First, c.Last, c.Source = lo, hi, "kv slots"
	}
}

// stateInputs returns the layer numbers in inputs rec_state_N and
// conv_state_N (CoreML-LLM's Qwen3.5 chunks).
func stateInputs(f *coreml.Function) []int {
	set := map[int]bool{}
	for _, in := range f.Inputs {
		for _, prefix := range []string{"rec_state_", "conv_state_"} {
			if s, ok := strings.CutPrefix(in.Name, prefix); ok {
				if n, err := strconv.Atoi(s); err == nil {
					set[n] = true
				}
			}
		}
	}
	return sortedInts(set)
}

// kvRange is the range of key slots that a function writes in a plain cache
// [2 layers, heads, context, dim].
func kvRange(f *coreml.Function, ix *program) (lo, hi int, ok bool) {
	lo, hi = -1, -1
	for _, w := range ix.stateWrites() {
		s := f.State(w.state)
		if s == nil || stateRole(s.Name) != roleKV || len(s.Shape) != 4 {
			continue
		}
		if n := s.Shape[0] / 2; w.slot < n {
			if lo < 0 || w.slot < lo {
				lo = w.slot
			}
			hi = max(hi, w.slot)
		}
	}
	return lo, hi, lo >= 0
}

// claimedTypes returns the layer types that a description file claims, in
// the report's words.
func (v *view) claimedTypes() []string {
	if ts := typeList(v.pkg.Params.Get("layer_types")); ts != nil {
		return ts
	}
	return nil
}

func typeList(p *manifest.Param) []string {
	if p == nil {
		return nil
	}
	list, ok := p.Value.([]any)
	if !ok {
		return nil
	}
	var out []string
	for _, e := range list {
		s, _ := e.(string)
		out = append(out, layerType(s))
	}
	return out
}

func layerType(s string) string {
	switch {
	case strings.HasPrefix(s, "sliding"), s == "local":
		return "sliding"
	case strings.HasPrefix(s, "linear"):
		return "linear"
	case strings.HasPrefix(s, "conv"):
		return "conv"
	}
	return "full"
}

// addLayers fills the layers of one chunk.
func (v *view) addLayers(r *LayersReport, c *ChunkInfo) {
	p := c.view
	f := p.fn("infer")
	ix := p.program(f.Name)
	own := ownLayers(f, ix, v.pkg.Layout == manifest.StatefulChunks)
	if v.pkg.Layout == manifest.ChunkedGemma4 {
		own = gemma4Own(f, ix)
	}
	claimed := v.claimedTypes()
	linear := stateInputs(f)
	for n := c.First; n <= c.Last; n++ {
		l := &LayerInfo{Index: n, Type: "full", Chunk: c.Chunk, part: c.Part}
		if n < len(claimed) {
			l.Type = claimed[n]
		} else if slices.Contains(linear, n) {
			l.Type = "linear"
		}
		// the writes come in layer order; layers that share another layer's
		// keys write nothing and come last
		if k := n - c.First; len(linear) == 0 && k < len(own) {
			l.state, l.KVSlot = own[k].state, ptr(own[k].slot)
			if n >= len(claimed) || own[k].typ != "full" || stateRole(own[k].state) != roleKV {
				l.Type = own[k].typ // a cache of one kind of layer tells more than a claim
			}
		}
		var ws []*Weight
		for _, w := range p.weights {
			if w.Layer >= 0 && w.Layer+c.base == n {
				ws = append(ws, w)
				l.WeightBytes += w.Bytes
			}
		}
		l.Schemes = schemes(ws)
		r.Layers = append(r.Layers, l)
	}
	v.slotsWithoutNames(r, c, own, linear)
}

// slotsWithoutNames gives full layers their slot where linear layers keep
// their state outside of Core ML states.
func (v *view) slotsWithoutNames(r *LayersReport, c *ChunkInfo, own []ownLayer, linear []int) {
	if len(linear) == 0 {
		return
	}
	k := 0
	for _, l := range r.Layers {
		if l.Index < c.First || l.Index > c.Last || l.Type == "linear" {
			continue
		}
		if k < len(own) {
			l.state, l.KVSlot = own[k].state, ptr(own[k].slot)
		}
		k++
	}
}

// slotsOfInputs numbers the layers of CoreML-LLM chunks whose caches are
// inputs: the i-th layer of a type in a chunk uses row i of its cache.
func (r *LayersReport) slotsOfInputs() {
	type kind struct {
		chunk int
		typ   string
	}
	next := map[kind]int{}
	own := map[int]*int{}
	for _, l := range r.Layers {
		if l.SharesWith != nil {
			l.KVSlot = own[*l.SharesWith]
			continue
		}
		k := kind{l.Chunk, l.Type}
		l.KVSlot = ptr(next[k])
		own[l.Index] = l.KVSlot
		next[k]++
	}
}

// shareLayers fills SharesWith: from kv_shared_layers, else from
// num_kv_shared_layers (the last own layer of the same type).
func (v *view) shareLayers(r *LayersReport) {
	byIndex := map[int]*LayerInfo{}
	for _, l := range r.Layers {
		byIndex[l.Index] = l
	}
	share := func(l *LayerInfo, from int) {
		l.SharesWith = ptr(from)
		if src := byIndex[from]; src != nil {
			l.Type, l.state = src.Type, ""
			l.KVSlot = src.KVSlot
		}
	}
	if m := v.pkg.Params.Get("kv_shared_layers"); m != nil {
		for _, e := range m.Elems {
			n, err := strconv.Atoi(e.Key)
			from, ok := e.Int()
			if l := byIndex[n]; err == nil && ok && l != nil {
				share(l, from)
			}
		}
		return
	}
	n, ok := v.pkg.Params.Int("num_kv_shared_layers")
	if !ok || n <= 0 {
		return
	}
	for _, l := range r.Layers {
		if l.Index < r.NumLayers-n {
			continue
		}
		for from := r.NumLayers - n - 1; from >= 0; from-- {
			if src := byIndex[from]; src != nil && src.Type == l.Type {
				share(l, from)
				break
			}
		}
	}
}

// writing returns the layers that write the state.
func (r *LayersReport) writing(s *StateInfo) []int {
	set := map[int]bool{}
	for _, l := range r.Layers {
		if l.SharesWith != nil {
			continue
		}
		mine := l.state == s.Name
		if !mine && l.state != "" && l.Type == "linear" {
			mine = s.Role == roleConv || s.Role == roleRecurrent
		}
		if !mine {
			continue
		}
		for _, p := range s.Parts {
			if p.Part == l.part || len(s.Parts) > 1 {
				set[l.Index] = true
			}
		}
	}
	return sortedInts(set)
}
