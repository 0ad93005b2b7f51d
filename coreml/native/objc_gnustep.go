//go:build gnustep && !darwin

package native

import (
	"structs"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/anepkg/anepkg/coreml/diag"
)

// fake is what tests put in the place of a Mac.
var fake = struct {
	library uintptr // the fake Core ML, linked with GNUstep
	version Version
	build   string
}{version: Version{15, 0}, build: "24A335"}

// UseFake gives the handle of the library with the fake Core ML. It must be
// called before New, in builds with the tag gnustep only.
func UseFake(library uintptr) { fake.library = library }

// UseFakeVersion sets the version of macOS that the fake claims to be.
func UseFakeVersion(v Version) { fake.version = v }

var (
	getClass func(name string) uintptr
	getSel   func(name string) uintptr
	lookUp   func(to id, sel uintptr) uintptr // objc_msg_lookup: GNU's runtime has no objc_msgSend
)

func openFrameworks() error {
	lib := fake.library
	if lib == 0 {
		return diag.Errorf(diag.Pos{}, diag.Unsupported, "a build for tests with GNUstep: no fake Core ML was named")
	}
	purego.RegisterLibFunc(&getClass, lib, "objc_getClass")
	purego.RegisterLibFunc(&getSel, lib, "sel_registerName")
	purego.RegisterLibFunc(&lookUp, lib, "objc_msg_lookup")
	return nil
}

func lookUpClass(name string) id { return id(getClass(name)) }

func registerSelector(name string) uintptr { return getSel(name) }

func message(to id, sel uintptr, args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(lookUp(to, sel), append([]uintptr{uintptr(to), sel}, args...)...)
	return r
}

func sendFloat(to id, m *method) float64 {
	var fn func(to id, sel uintptr) float64
	purego.RegisterFunc(&fn, lookUp(to, m.sel))
	return fn(to, m.sel)
}

// blockLiteral is the head of a block as the block ABI lays it out. It has no
// helpers, so it must not be copied to the heap; the fake does not.
type blockLiteral struct {
	_               structs.HostLayout
	isa             uintptr
	flags, reserved int32
	invoke          uintptr
	descriptor      uintptr
}

var blocks = struct {
	sync.Mutex
	invoke uintptr
	fns    map[uintptr]func([3]uintptr)
	keep   map[uintptr]*blockLiteral
}{fns: map[uintptr]func([3]uintptr){}, keep: map[uintptr]*blockLiteral{}}

// newBlock makes a block. Parameters beyond n are whatever the registers hold.
func newBlock(n int, fn func(args [3]uintptr)) (block uintptr, done func()) {
	blocks.Lock()
	defer blocks.Unlock()
	if blocks.invoke == 0 {
		blocks.invoke = purego.NewCallback(func(b, x, y, z uintptr) {
			blocks.Lock()
			fn := blocks.fns[b]
			blocks.Unlock()
			if fn == nil {
				panic("native: a block was called after its release")
			}
			fn([3]uintptr{x, y, z})
		})
	}
	b := &blockLiteral{invoke: blocks.invoke}
	block = uintptr(unsafe.Pointer(b))
	blocks.keep[block] = b
	blocks.fns[block] = func(args [3]uintptr) {
		clear(args[n:])
		fn(args)
	}
	return block, func() {
		blocks.Lock()
		defer blocks.Unlock()
		delete(blocks.fns, block)
		delete(blocks.keep, block)
	}
}

func hostSystem() (Version, string, error) { return fake.version, fake.build, nil }
