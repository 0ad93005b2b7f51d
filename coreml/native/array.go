//go:build darwin || gnustep

package native

import (
	"fmt"
	"slices"

	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var (
	selInitShape    = use("MLMultiArray", "initWithShape:dataType:error:")
	selShape        = use("MLMultiArray", "shape")
	selStrides      = use("MLMultiArray", "strides")
	selDataType     = use("MLMultiArray", "dataType")
	selBytes        = use("MLMultiArray", "getBytesWithHandler:")
	selMutableBytes = use("MLMultiArray", "getMutableBytesWithHandler:")

	classMultiArray = useClass("MLMultiArray")
)

// newArray makes an MLMultiArray, whose memory is Core ML's own; the caller
// releases it. The contents are not defined.
func newArray(d tensor.DType, shape []int) (id, *failure) {
	typ, _ := arrayType(d)
	return attempt(func(slot uintptr) id {
		return sendID(sendID(classMultiArray.obj, selAlloc), selInitShape, uintptr(nsNumbers(shape)), uintptr(typ), slot)
	})
}

// arrays are the blocks that read and write arrays; they serve every call of
// one session or state.
type arrays struct {
	bytes   *handler // const void *, NSInteger
	mutable *handler // void *, NSInteger, NSArray<NSNumber *> *
}

func newArrays() arrays { return arrays{newHandler(2), newHandler(3)} }

func (a arrays) close() {
	a.bytes.close()
	a.mutable.close()
}

// read copies an array out, whatever its strides. The element type must be d
// and the shape fit the declared one.
func (a arrays) read(arr id, d tensor.DType, declared []int) (*tensor.Tensor, error) {
	got, shape := elementType(int(send(arr, selDataType))), ints(sendID(arr, selShape))
	if got != d || !tensor.Compatible(shape, declared) {
		return nil, fmt.Errorf("got an array of %s from Core ML, want %s", mil.TensorOf(got, shape...), mil.TensorOf(d, declared...))
	}
	l := layout{shape, ints(sendID(arr, selStrides)), d.Bits() / 8}
	if _, err := l.span(); err != nil {
		return nil, err
	}
	t := tensor.New(d, shape...)
	called, err := false, error(nil)
	a.bytes.during(func(args [3]uintptr) {
		called = true
		err = l.gather(t.Data, bytesAt(args[0], int(args[1])))
	}, func(block uintptr) { send(arr, selBytes, block) })
	if err == nil && !called {
		err = fmt.Errorf("no bytes of an array came from Core ML")
	}
	return t, err
}

// write copies a tensor into an array of the same type and shape.
func (a arrays) write(arr id, t *tensor.Tensor) error {
	if got, shape := elementType(int(send(arr, selDataType))), ints(sendID(arr, selShape)); got != t.DType || !slices.Equal(shape, t.Shape) {
		return fmt.Errorf("the array of Core ML is %s, want %s", mil.TensorOf(got, shape...), mil.TensorOf(t.DType, t.Shape...))
	}
	called, err := false, error(nil)
	a.mutable.during(func(args [3]uintptr) {
		called = true
		l := layout{t.Shape, ints(id(args[2])), t.DType.Bits() / 8}
		err = l.scatter(bytesAt(args[0], int(args[1])), t.Data)
	}, func(block uintptr) { send(arr, selMutableBytes, block) })
	if err == nil && !called {
		err = fmt.Errorf("no bytes of an array came from Core ML")
	}
	return err
}
