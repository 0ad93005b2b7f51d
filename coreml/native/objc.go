//go:build darwin || gnustep

package native

import (
	"fmt"
	"runtime"
	"sync"
	"unsafe"
)

// id is an Objective-C object or class; 0 is nil.
type id uintptr

// method is a selector that the bridge sends, from the table in symbols.go.
type method struct {
	name string
	sel  uintptr // set by open
}

var (
	methodsInUse []*method
	classesInUse []*class
)

// class is a class that the bridge names.
type class struct {
	name string
	obj  id // set by open; 0 when the system lacks it
}

// use takes a method from the table; one that is not there is a mistake in
// this package.
func use(className, selector string) *method {
	if memberNamed(className, selector) == nil {
		panic("native: " + className + " " + selector + " is not in the table")
	}
	m := &method{name: selector}
	methodsInUse = append(methodsInUse, m)
	return m
}

func useClass(name string) *class {
	if !namesClass(name) {
		panic("native: class " + name + " is not in the tables")
	}
	c := &class{name: name}
	classesInUse = append(classesInUse, c)
	return c
}

var (
	selAlloc       = use("NSObject", "alloc")
	selInit        = use("NSObject", "init")
	selRetain      = use("NSObject", "retain")
	selRelease     = use("NSObject", "release")
	selResponds    = use("NSObject", "respondsToSelector:")
	selIsKind      = use("NSObject", "isKindOfClass:")
	selDrain       = use("NSAutoreleasePool", "drain")
	selFromUTF8    = use("NSString", "stringWithUTF8String:")
	selUTF8        = use("NSString", "UTF8String")
	selFileURL     = use("NSURL", "fileURLWithPath:")
	selPath        = use("NSURL", "path")
	selNumber      = use("NSNumber", "numberWithLongLong:")
	selLongLong    = use("NSNumber", "longLongValue")
	selArrayOf     = use("NSArray", "arrayWithObjects:count:")
	selCount       = use("NSArray", "count")
	selAt          = use("NSArray", "objectAtIndex:")
	selDictOf      = use("NSDictionary", "dictionaryWithObjects:forKeys:count:")
	selForKey      = use("NSDictionary", "objectForKey:")
	selAllKeys     = use("NSDictionary", "allKeys")
	selDomain      = use("NSError", "domain")
	selCode        = use("NSError", "code")
	selDescription = use("NSError", "localizedDescription")
	selUserInfo    = use("NSError", "userInfo")

	classPool       = useClass("NSAutoreleasePool")
	classString     = useClass("NSString")
	classURL        = useClass("NSURL")
	classNumber     = useClass("NSNumber")
	classArray      = useClass("NSArray")
	classDictionary = useClass("NSDictionary")
)

// opened is the result of the one attempt to load the frameworks.
var opened struct {
	once sync.Once
	err  error
}

// open loads the frameworks and resolves every name, once.
func open() error {
	opened.once.Do(func() {
		if opened.err = openFrameworks(); opened.err != nil {
			return
		}
		for _, c := range classesInUse {
			c.obj = lookUpClass(c.name)
		}
		for _, m := range methodsInUse {
			m.sel = registerSelector(m.name)
		}
	})
	return opened.err
}

// send sends a message and returns what comes back in the integer register.
// Pointers among args are uintptr(unsafe.Pointer(p)) in the call itself: the
// pragma keeps what they point to alive and in place until send returns.
//
//go:uintptrescapes
func send(to id, m *method, args ...uintptr) uintptr { return message(to, m.sel, args) }

// sendID is send for methods that return an object.
//
//go:uintptrescapes
func sendID(to id, m *method, args ...uintptr) id { return id(message(to, m.sel, args)) }

// truth reads a BOOL, of which only the lowest byte is set.
func truth(r uintptr) bool { return r&0xff != 0 }

func responds(to id, m *method) bool { return truth(send(to, selResponds, m.sel)) }

func isKind(obj id, c *class) bool {
	return obj != 0 && c.obj != 0 && truth(send(obj, selIsKind, uintptr(c.obj)))
}

// release gives up a reference; nil is allowed.
func release(objs ...id) {
	for _, o := range objs {
		if o != 0 {
			send(o, selRelease)
		}
	}
}

// create makes an object with alloc and init; the caller owns it.
func create(c *class) id { return sendID(sendID(c.obj, selAlloc), selInit) }

// pooled runs fn on one OS thread inside an autorelease pool: objects that
// Cocoa hands out without ownership live until fn returns.
func pooled(fn func() error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	pool := create(classPool)
	defer send(pool, selDrain)
	return fn()
}

// nsString makes an NSString. A zero byte ends it, as in C.
func nsString(s string) id {
	b := append([]byte(s), 0)
	return sendID(classString.obj, selFromUTF8, uintptr(unsafe.Pointer(&b[0])))
}

// maxString bounds the strings that are read from Objective-C, in bytes.
const maxString = 1 << 20

// goString copies an NSString; nil is "".
func goString(s id) string {
	if s == 0 {
		return ""
	}
	p := pointer(send(s, selUTF8))
	if p == nil {
		return ""
	}
	n := 0
	for n < maxString && *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// pointer turns an address that C returned into a pointer. The memory is not
// Go's, so the collector does not look at it.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// bytesAt is the n bytes of C memory at p.
func bytesAt(p uintptr, n int) []byte {
	if p == 0 || n <= 0 {
		return nil
	}
	return unsafe.Slice((*byte)(pointer(p)), n)
}

func fileURL(path string) id { return sendID(classURL.obj, selFileURL, uintptr(nsString(path))) }

func nsArray(items []id) id {
	if len(items) == 0 {
		return sendID(classArray.obj, selArrayOf, 0, 0)
	}
	return sendID(classArray.obj, selArrayOf, uintptr(unsafe.Pointer(&items[0])), uintptr(len(items)))
}

func nsNumbers(v []int) id {
	items := make([]id, len(v))
	for i, n := range v {
		items[i] = sendID(classNumber.obj, selNumber, uintptr(n))
	}
	return nsArray(items)
}

// nsDictionary makes a dictionary from strings to objects.
func nsDictionary(names []string, values []id) id {
	if len(names) == 0 {
		return sendID(classDictionary.obj, selDictOf, 0, 0, 0)
	}
	keys := make([]id, len(names))
	for i, n := range names {
		keys[i] = nsString(n)
	}
	return sendID(classDictionary.obj, selDictOf, uintptr(unsafe.Pointer(&values[0])), uintptr(unsafe.Pointer(&keys[0])), uintptr(len(keys)))
}

// maxItems bounds the collections that are read from Objective-C.
const maxItems = 1 << 20

// items are the objects of an NSArray.
func items(arr id) []id {
	if arr == 0 {
		return nil
	}
	n := min(int(send(arr, selCount)), maxItems)
	out := make([]id, n)
	for i := range out {
		out[i] = sendID(arr, selAt, uintptr(i))
	}
	return out
}

// ints reads an NSArray of numbers.
func ints(arr id) []int {
	all := items(arr)
	out := make([]int, len(all))
	for i, o := range all {
		out[i] = int(send(o, selLongLong))
	}
	return out
}

// underlyingKey is the value of NSUnderlyingErrorKey.
const underlyingKey = "NSUnderlyingError"

// readError copies an NSError and the errors below it.
func readError(e id) failure {
	if e == 0 {
		return failure{domain: "no error object"}
	}
	f := failure{domain: goString(sendID(e, selDomain)), code: int(send(e, selCode)), text: goString(sendID(e, selDescription))}
	for range 4 { // levels
		info := sendID(e, selUserInfo)
		if info == 0 {
			break
		}
		if e = sendID(info, selForKey, uintptr(nsString(underlyingKey))); e == 0 {
			break
		}
		f.text = fmt.Sprintf("%s; below it: %s (%s %d)", f.text, goString(sendID(e, selDescription)), goString(sendID(e, selDomain)), int(send(e, selCode)))
	}
	return f
}

// attempt calls fn with the place for an NSError. When fn returns nil the
// error is read; it is autoreleased, so its text is copied at once.
func attempt(fn func(slot uintptr) id) (id, *failure) {
	e := new(id)
	got := withSlot(uintptr(unsafe.Pointer(e)), fn)
	if got != 0 {
		return got, nil
	}
	f := readError(*e)
	return 0, &f
}

// withSlot keeps what slot points to in place while fn runs.
//
//go:uintptrescapes
func withSlot(slot uintptr, fn func(slot uintptr) id) id { return fn(slot) }

// handler is an Objective-C block over a Go function that can be replaced, so
// that one block serves many calls. Blocks are called synchronously, on the
// thread that sends the message, except where said otherwise.
type handler struct {
	block   uintptr
	fn      func(args [3]uintptr)
	release func()
}

// newHandler makes a block of n parameters.
func newHandler(n int) *handler {
	h := &handler{}
	h.block, h.release = newBlock(n, func(args [3]uintptr) {
		if h.fn != nil {
			h.fn(args)
		}
	})
	return h
}

// during calls call with the block while it stands for fn.
func (h *handler) during(fn func(args [3]uintptr), call func(block uintptr)) {
	before := h.fn
	h.fn = fn
	defer func() { h.fn = before }()
	call(h.block)
}

func (h *handler) close() {
	if h != nil && h.release != nil {
		h.release()
		h.release = nil
	}
}
