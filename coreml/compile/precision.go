package compile

import (
	"maps"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// precisionNames are the element types as metadata.json spells them. bool and
// strings do not count.
var precisionNames = map[tensor.DType]string{
	tensor.FP16: "Float16", tensor.FP32: "Float32", tensor.FP64: "Double", tensor.BF16: "BFloat16",
	tensor.FP8E4M3FN: "Float8E4M3FN", tensor.FP8E5M2: "Float8E5M2",
	tensor.Int4: "Int4", tensor.Int8: "Int8", tensor.Int16: "Int16", tensor.Int32: "Int32", tensor.Int64: "Int64",
	tensor.UInt1: "UInt1", tensor.UInt2: "UInt2", tensor.UInt3: "UInt3", tensor.UInt4: "UInt4", tensor.UInt6: "UInt6",
	tensor.UInt8: "UInt8", tensor.UInt16: "UInt16", tensor.UInt32: "UInt32", tensor.UInt64: "UInt64",
}

// precisions returns computePrecision, the element types of every parameter
// and result, and storagePrecision, those of the data in weight files with
// the forms of compression; "" where there is none.
func precisions(f *mil.Function) (compute, storage string) {
	computed, stored := map[string]bool{}, map[string]bool{}
	add := func(t mil.Type) {
		t = t.State()
		for t.Kind == mil.ListType && len(t.Elems) == 1 {
			t = t.Elems[0]
		}
		if name := precisionNames[t.DType]; t.Kind == mil.TensorType && name != "" {
			computed[name] = true
		}
	}
	for _, p := range f.Params {
		add(p.Type)
	}
	eachOp(f.Body, func(op *mil.Op) {
		for _, o := range op.Outputs {
			add(o.Type)
		}
		storedBy(op, stored)
	})
	return mixed(computed), mixed(stored)
}

// storedBy adds what an op stores in weight files. The constexpr ops of iOS
// 18 count each stored operand and their own form; those of iOS 16, whose
// operands are attributes, only their form, or the type of the data.
func storedBy(op *mil.Op, stored map[string]bool) {
	see := func(v *mil.Value) {
		if v != nil && v.Blob != nil {
			name := precisionNames[v.Type.DType]
			if name == "" {
				name = "Bool"
			}
			stored[name] = true
		}
	}
	args, attrs := map[string]*mil.Value{}, map[string]*mil.Value{}
	for _, a := range op.Args {
		if len(a.Bindings) == 1 && a.Bindings[0].Value != nil {
			args[a.Name] = a.Bindings[0].Value
		}
	}
	for _, a := range op.Attrs {
		attrs[a.Name] = a.Value
	}
	if !strings.HasPrefix(op.Type, "constexpr_") {
		for _, v := range args {
			see(v)
		}
		for _, v := range attrs {
			see(v)
		}
		return
	}
	if len(args) > 0 {
		for _, v := range args {
			see(v)
		}
		if label := constexprForm(op.Type, args); label != "" {
			stored[label] = true
		}
		return
	}
	if label := constexprForm(op.Type, attrs); label != "" {
		stored[label] = true
		return
	}
	if v := attrs["quantized_data"]; v != nil {
		see(v)
		return
	}
	see(attrs["source_val"])
}

// constexprForm is the form of compression that an op stands for.
func constexprForm(op string, operands map[string]*mil.Value) string {
	if lut := operands["lut"]; lut != nil {
		n := max(tensor.Count(lut.Type.Shape), 1)
		return "Palettized (" + strconv.Itoa(max(1, bits.Len(uint(n-1)))) + " bits)"
	}
	if strings.Contains(op, "sparse") {
		return "Sparse"
	}
	return ""
}

func mixed(names map[string]bool) string {
	list := slices.Sorted(maps.Keys(names))
	switch len(list) {
	case 0:
		return ""
	case 1:
		return list[0]
	}
	return "Mixed (" + strings.Join(list, ", ") + ")"
}
