package inspect

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/inspect/verify"
	"github.com/anepkg/anepkg/manifest"
)

// usable returns the parts in use whose program was read.
func (v *view) usable() []*partView {
	var out []*partView
	for _, pt := range v.parts {
		if pt.model != nil && pt.err == nil && pt.model.Program != nil && pt.Role != manifest.Leftover {
			out = append(out, pt)
		}
	}
	return out
}

// position places pos of the part's program.
func (v *partView) position(pos mil.Pos) diag.Pos {
	at := v.model.Program.At(pos)
	at.File = v.model.ProgramFile
	return at
}

// problems verifies the part's program once.
func (v *partView) problems() []verify.Problem {
	if !v.verified {
		v.verified = true
		for _, fn := range v.model.Program.Functions {
			v.found = append(v.found, verify.Function(fn, v.model.SpecVersion)...)
		}
	}
	return v.found
}

// maxVerifyFindings bounds the findings of one part and rule.
const maxVerifyFindings = 5

// reportClass reports the verifier's problems of one class.
func reportClass(p *Pass, class verify.Class, fix string) {
	for _, pt := range p.usable() {
		n := 0
		for _, q := range pt.problems() {
			if q.Class != class {
				continue
			}
			if n++; n > maxVerifyFindings {
				break
			}
			f := p.Report(pt.position(q.Pos), "function %s: %s", q.Function, q.Msg).Compare(q.Got, q.Want)
			if fix != "" {
				f.Fix("%s", fix)
			}
		}
	}
}

const editedHint = "convert the part again; the program was edited or damaged"

func checkShapes(p *Pass)     { reportClass(p, verify.Shape, editedHint) }
func checkTypesOfOps(p *Pass) { reportClass(p, verify.DType, editedHint) }
func checkArguments(p *Pass)  { reportClass(p, verify.Argument, editedHint) }
func checkUnknownOps(p *Pass) {
	reportClass(p, verify.Unknown, "check the op's spelling, or run a newer anepkg if it is of a newer opset")
}

func checkOpsets(p *Pass) {
	reportClass(p, verify.Opset, "convert for the opset that the program uses: minimum_deployment_target")
}

// checkUnusedConstants sums the constants that no op reads.
func checkUnusedConstants(p *Pass) {
	for _, pt := range p.usable() {
		var first *verify.Problem
		var names []string
		var bytes int64
		n := 0
		for i, q := range pt.ofClass(verify.Unused) {
			if i == 0 {
				first = &q
			}
			n++
			bytes += q.Bytes
			if name := q.Op.Outputs[0].Name; len(names) < 3 && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		if first == nil {
			continue
		}
		p.Report(pt.position(first.Pos), "%s of %s %s read by no op (%s): %s", plural(n, "constant"), pt.label(), isAre(n), Bytes(bytes), strings.Join(names, ", ")).
			Compare(n, 0)
	}
}

func isAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// ofClass returns the problems of one class.
func (v *partView) ofClass(class verify.Class) []verify.Problem {
	var out []verify.Problem
	for _, q := range v.problems() {
		if q.Class == class {
			out = append(out, q)
		}
	}
	return out
}

// checkUnreadStates: every declared state must be read by every function.
func checkUnreadStates(p *Pass) {
	for _, pt := range p.usable() {
		for _, f := range pt.model.Functions {
			ix := pt.program(f.Name)
			if ix == nil {
				continue
			}
			read := map[string]bool{}
			for _, op := range ix.ops {
				if op.Type == "read_state" {
					read[ref(op, "input")] = true
				}
			}
			for _, s := range f.States {
				if !read[s.Name] {
					p.Report(pt.position(statePos(f, s.Name)), "function %s of %s declares the state %s and never reads it", f.Name, pt.label(), s.Name).
						Compare("not read", "read_state").On("ane").Fix("read one element of it in each function")
				}
			}
		}
	}
}

func statePos(f *coreml.Function, name string) mil.Pos {
	for _, prm := range f.Program.Params {
		if prm.Name == name {
			return prm.Pos
		}
	}
	return f.Program.Pos
}

// checkStateOutputs: a slice of a state that is also a result fails in Core
// ML's compiler.
func checkStateOutputs(p *Pass) {
	for _, pt := range p.usable() {
		p.stateOutputs(pt)
	}
}

// stateOutputs reports the first such result of a part.
func (p *Pass) stateOutputs(pt *partView) {
	for _, f := range pt.model.Functions {
		ix := pt.program(f.Name)
		if ix == nil || f.Program.Body == nil {
			continue
		}
		var names []string
		var first mil.Ref
		for _, out := range f.Program.Body.Outputs {
			if ix.sliceOfState(out.Name) != "" {
				if names = append(names, out.Name); len(names) == 1 {
					first = out
				}
			}
		}
		if len(names) > 0 {
			p.Report(pt.position(first.Pos), "function %s of %s gives slices of the state %s as results: %s", f.Name, pt.label(), ix.sliceOfState(first.Name), strings.Join(names, ", ")).
				Compare("slice of a state", "a computed value").Fix("slice in the part that reads it, or add a zero to the slice")
			return
		}
	}
}

// sliceOfState follows a value through slices and copies to a state.
func (p *program) sliceOfState(name string) string {
	for range 32 {
		if s := p.stateOf(name); s != "" {
			return s
		}
		op := p.defs[name]
		if op == nil {
			return ""
		}
		switch op.Type {
		case "slice_by_index", "slice_by_size", "identity", "squeeze", "expand_dims", "reshape":
			name = ref(op, "x")
		default:
			return ""
		}
	}
	return ""
}

// checkFlexible: run-time shapes leave the Neural Engine.
func checkFlexible(p *Pass) {
	for _, pt := range p.usable() {
		if pt.Role == manifest.Embeddings {
			continue // the one part that is made with enumerated shapes
		}
		for _, f := range pt.model.Functions {
			for _, in := range f.Inputs {
				if len(in.Enumerated) == 0 && len(in.Range) == 0 && !slices.Contains(in.Shape, mil.Unknown) {
					continue
				}
				kind := "enumerated shapes"
				if len(in.Range) > 0 {
					kind = "a range of shapes"
				}
				p.Report(pt.position(statePos(f, in.Name)), "input %s of function %s in %s has %s", in.Name, f.Name, pt.label(), kind).
					Compare(kind, "a fixed shape").Fix("convert one function for each shape")
			}
		}
	}
}

// checkMultiRange: range dimensions in a model of several functions.
func checkMultiRange(p *Pass) {
	for _, pt := range p.usable() {
		if len(pt.model.Functions) < 2 {
			continue
		}
		for _, f := range pt.model.Functions {
			for _, in := range f.Inputs {
				if len(in.Range) > 0 {
					p.Report(pt.position(statePos(f, in.Name)), "input %s of function %s in %s has the range %s in a model of %d functions", in.Name, f.Name, pt.label(), fmt.Sprint(in.Range), len(pt.model.Functions)).
						Compare("range", "a fixed or enumerated shape").Fix("give the input fixed or enumerated shapes")
				}
			}
		}
	}
}
