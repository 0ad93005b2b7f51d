package cpu

// memory is what one run needs besides arrays: shapes, flags and the headers
// of values. It is handed out piece by piece and taken back as a whole when
// the run ends, so that a step allocates nothing once the first has shown how
// much it takes. A nil memory allocates: what is made at load time stays.
type memory struct {
	dims   slab[int]
	flags  slab[bool]
	values slab[value]
	views  slab[view]
}

// slabLimit bounds the elements that a slab keeps between runs; a loop of a
// program may ask for any number.
const slabLimit = 1 << 16

// slab hands out pieces of one array. What does not fit is allocated, and
// the array is as long next time.
type slab[T any] struct {
	items      []T
	used, over int
}

// take returns n zero elements.
func (s *slab[T]) take(n int) []T {
	if s.used+n > len(s.items) {
		s.over += n
		return make([]T, n)
	}
	p := s.items[s.used : s.used+n : s.used+n]
	s.used += n
	return p
}

// reset takes everything back.
func (s *slab[T]) reset() {
	clear(s.items[:s.used])
	if s.over > 0 && len(s.items) < slabLimit {
		s.items = make([]T, min(s.used+s.over, slabLimit))
	}
	s.used, s.over = 0, 0
}

func (m *memory) reset() {
	m.dims.reset()
	m.flags.reset()
	m.values.reset()
	m.views.reset()
}

// newDims returns n zeros, for a shape or strides.
func (m *memory) newDims(n int) []int {
	if m == nil {
		return make([]int, n)
	}
	return m.dims.take(n)
}

// copyDims returns the given shapes one after the other.
func (m *memory) copyDims(parts ...[]int) []int {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	out, at := m.newDims(n), 0
	for _, p := range parts {
		at += copy(out[at:], p)
	}
	return out
}

// toInts returns integers as dims.
func (m *memory) toInts(x []int32) []int {
	out := m.newDims(len(x))
	for i, v := range x {
		out[i] = int(v)
	}
	return out
}

// newFlags returns n false flags.
func (m *memory) newFlags(n int) []bool {
	if m == nil {
		return make([]bool, n)
	}
	return m.flags.take(n)
}

// newValue returns a copy of v.
func (m *memory) newValue(v value) *value {
	if m == nil {
		p := new(value) // &v would move v to the heap in every call
		*p = v
		return p
	}
	p := &m.values.take(1)[0]
	*p = v
	p.brief, p.mat = true, nil
	return p
}

// newView returns a copy of w.
func (m *memory) newView(w view) *view {
	if m == nil {
		p := new(view)
		*p = w
		return p
	}
	p := &m.views.take(1)[0]
	*p = w
	return p
}
