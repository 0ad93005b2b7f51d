package native

import (
	"fmt"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"
	"golang.org/x/sys/unix"
)

// msgSend is the address of objc_msgSend.
var msgSend uintptr

// openFrameworks loads Foundation and Core ML.
func openFrameworks() error {
	var err error
	if msgSend, err = purego.Dlsym(purego.RTLD_DEFAULT, "objc_msgSend"); err != nil {
		return err
	}
	for _, name := range []string{"Foundation", "CoreML"} {
		if _, err := purego.Dlopen(fmt.Sprintf("/System/Library/Frameworks/%[1]s.framework/%[1]s", name), purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			return err
		}
	}
	return nil
}

func lookUpClass(name string) id { return id(objc.GetClass(name)) }

func registerSelector(name string) uintptr { return uintptr(objc.RegisterName(name)) }

// message sends a message whose arguments and result are integers and
// pointers, which is all that the bridge needs but for sendFloat.
func message(to id, sel uintptr, args []uintptr) uintptr {
	r, _, _ := purego.SyscallN(msgSend, append([]uintptr{uintptr(to), sel}, args...)...)
	return r
}

// sendFloat sends a message without arguments that returns a double.
func sendFloat(to id, m *method) float64 { return objc.Send[float64](objc.ID(to), objc.SEL(m.sel)) }

// newBlock makes a block of n pointer-sized parameters that calls fn, and the
// function that gives it up.
func newBlock(n int, fn func(args [3]uintptr)) (block uintptr, done func()) {
	var b objc.Block
	switch n {
	case 1:
		b = objc.NewBlock(func(_ objc.Block, x uintptr) { fn([3]uintptr{x}) })
	case 2:
		b = objc.NewBlock(func(_ objc.Block, x, y uintptr) { fn([3]uintptr{x, y}) })
	default:
		b = objc.NewBlock(func(_ objc.Block, x, y, z uintptr) { fn([3]uintptr{x, y, z}) })
	}
	return uintptr(b), b.Release
}

// hostSystem returns the version and the build of macOS.
func hostSystem() (Version, string, error) {
	name, err := unix.Sysctl("kern.osproductversion")
	if err != nil {
		return Version{}, "", fmt.Errorf("the version of macOS: %w", err)
	}
	build, err := unix.Sysctl("kern.osversion")
	if err != nil {
		return Version{}, "", fmt.Errorf("the build of macOS: %w", err)
	}
	v, err := ParseVersion(name)
	return v, build, err
}
