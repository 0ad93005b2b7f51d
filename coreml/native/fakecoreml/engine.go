//go:build gnustep

package fakecoreml

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"unsafe"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/cpu"
	"github.com/anepkg/anepkg/coreml/tensor"
)

// Engine is what the fake computes with.
var Engine struct {
	sync.Mutex
	// Alter, if not nil, may change the outputs of a prediction.
	Alter func(path, function string, out map[string]*tensor.Tensor)
	// Declared, if not nil, may change what a model says of a feature; false
	// leaves the feature out.
	Declared func(f *coreml.Feature) bool
	// Err is the last error of the CPU engine.
	Err error
	// Units are the compute units of the last load.
	Units int

	loaded map[uintptr]*loadedModel
}

type loadedModel struct {
	path string
	fn   *coreml.Function
	sess coreml.Session
}

// Values of MLMultiArrayDataType, written down apart from the bridge.
var types = map[tensor.DType]int64{tensor.FP16: 65552, tensor.FP32: 65568, tensor.FP64: 65600, tensor.Int32: 131104, tensor.Int8: 131080}

func goString(p uintptr) string {
	b := (*byte)(cPointer(p))
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(b), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(b, n))
}

func cPointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// load opens a model. It returns 1 when a function is named in a model that
// has only one, as Core ML refuses that.
func load(model, path, function, units uintptr) uintptr {
	Engine.Lock()
	defer Engine.Unlock()
	dir, name := goString(path), goString(function)
	Engine.Units = int(units)
	ctx := context.Background()
	m, err := coreml.Open(ctx, os.DirFS(filepath.Dir(dir)), filepath.Base(dir))
	if err == nil && name != "" && len(m.Functions) == 1 {
		return 1
	}
	var sess coreml.Session
	if err == nil {
		sess, err = cpu.New().Load(ctx, m, name, coreml.LoadOptions{Precision: coreml.Strict, Threads: 1})
	}
	if err != nil {
		Engine.Err = err
		return 2
	}
	fn := sess.Function()
	for kind, fs := range [][]coreml.Feature{fn.Inputs, fn.Outputs, fn.States} {
		for _, f := range fs {
			if Engine.Declared != nil && !Engine.Declared(&f) {
				continue
			}
			shape := f.Shape
			if !tensor.Known(shape) && f.Default != nil {
				shape = f.Default
			}
			s := longs(shape)
			declare(model, int32(kind), f.Name, types[f.DType], &s[0], int32(len(shape)))
		}
	}
	if Engine.loaded == nil {
		Engine.loaded = map[uintptr]*loadedModel{}
	}
	Engine.loaded[model] = &loadedModel{dir, fn, sess}
	return 0
}

// longs are the dimensions as C takes them, with one to spare so that there
// is an address.
func longs(shape []int) []int64 {
	out := make([]int64, len(shape)+1)
	for i, d := range shape {
		out[i] = int64(d)
	}
	return out
}

// offsets lists where each element of an array begins, in row-major order.
func offsets(arr uintptr) (shape []int, at []int64) {
	rank := arrayRank(arr)
	n := 1
	strides := make([]int64, rank)
	for i := range rank {
		shape = append(shape, int(arrayDim(arr, i)))
		strides[i] = arrayStride(arr, i)
		n *= shape[i]
	}
	at = make([]int64, n)
	for e := range at {
		rest := e
		for i := int(rank) - 1; i >= 0; i-- {
			at[e] += int64(rest%shape[i]) * strides[i]
			rest /= shape[i]
		}
	}
	return shape, at
}

func bytesOf(arr uintptr) []byte {
	return unsafe.Slice((*byte)(cPointer(arrayData(arr))), arrayBytes(arr))
}

func get(arr uintptr, d tensor.DType) (*tensor.Tensor, error) {
	if arrayType(arr) != types[d] {
		return nil, fmt.Errorf("array of type %d, want %s", arrayType(arr), d)
	}
	shape, at := offsets(arr)
	t, src, w := tensor.New(d, shape...), bytesOf(arr), int64(d.Bits()/8)
	for e, o := range at {
		copy(t.Data[int64(e)*w:int64(e+1)*w], src[o*w:])
	}
	return t, nil
}

func put(arr uintptr, t *tensor.Tensor) {
	_, at := offsets(arr)
	dst, w := bytesOf(arr), int64(t.DType.Bits()/8)
	for e, o := range at {
		copy(dst[o*w:(o+1)*w], t.Data[int64(e)*w:])
	}
}

func predict(model, provider, state, result uintptr) uintptr {
	Engine.Lock()
	defer Engine.Unlock()
	if err := predictCPU(Engine.loaded[model], provider, state, result); err != nil {
		Engine.Err = err
		return 1
	}
	return 0
}

func predictCPU(l *loadedModel, provider, state, result uintptr) error {
	in := map[string]*tensor.Tensor{}
	for _, f := range l.fn.Inputs {
		arr := input(provider, f.Name)
		if arr == 0 {
			continue
		}
		t, err := get(arr, f.DType)
		if err != nil {
			return err
		}
		in[f.Name] = t
	}
	var st coreml.State
	if len(l.fn.States) > 0 {
		var err error
		if st, err = cpu.New().NewState(l.fn.States); err != nil {
			return err
		}
	}
	for _, f := range l.fn.States {
		t, err := get(stateArray(state, f.Name), f.DType)
		if err != nil {
			return err
		}
		if err := st.Write(f.Name, t); err != nil {
			return err
		}
	}
	out, err := l.sess.Predict(context.Background(), in, st)
	if err != nil {
		return err
	}
	if Engine.Alter != nil {
		Engine.Alter(l.path, l.fn.Name, out)
	}
	for _, f := range l.fn.States {
		t, err := st.Read(f.Name)
		if err != nil {
			return err
		}
		put(stateArray(state, f.Name), t)
	}
	for name, t := range out {
		s := longs(t.Shape)
		arr := output(result, name, types[t.DType], &s[0], int32(len(t.Shape)))
		if arr == 0 {
			return fmt.Errorf("no array for output %s of shape %v", name, t.Shape)
		}
		put(arr, t)
	}
	return nil
}

// compile makes a .mlmodelc out of an .mlpackage: the same files, which
// coreml.Open reads under either name.
func compile(src, dst uintptr, size uintptr) uintptr {
	from := goString(src)
	tmp, err := os.MkdirTemp("", "compiled")
	if err != nil {
		Engine.Err = err
		return 1
	}
	to := filepath.Join(tmp, strings.TrimSuffix(filepath.Base(from), ".mlpackage")+".mlmodelc")
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		Engine.Err = err
		return 1
	}
	buf := unsafe.Slice((*byte)(cPointer(dst)), size)
	copy(buf, to+"\x00")
	return 0
}
