//go:build darwin || gnustep

package native

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/anepkg/anepkg/coreml"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
)

var (
	selPredict             = use("MLModel", "predictionFromFeatures:error:")
	selPredictOptions      = use("MLModel", "predictionFromFeatures:options:error:")
	selPredictState        = use("MLModel", "predictionFromFeatures:usingState:error:")
	selPredictStateOptions = use("MLModel", "predictionFromFeatures:usingState:options:error:")
	selSetBackings         = use("MLPredictionOptions", "setOutputBackings:")
	selInitDictionary      = use("MLDictionaryFeatureProvider", "initWithDictionary:error:")
	selValueNamed          = use("MLDictionaryFeatureProvider", "featureValueForName:")
	selValueOf             = use("MLFeatureValue", "featureValueWithMultiArray:")
	selMultiArray          = use("MLFeatureValue", "multiArrayValue")

	classOptions  = useClass("MLPredictionOptions")
	classProvider = useClass("MLDictionaryFeatureProvider")
	classValue    = useClass("MLFeatureValue")
)

// maxCalls bounds the kept sets of input arrays of a session: functions with
// flexible shapes have one for each combination in use.
const maxCalls = 16

// session is a loaded function. Inputs are copied into arrays of Core ML that
// are kept for the next prediction; outputs land in backings, kept as well,
// and are copied out once. No Go memory is seen by Core ML.
type session struct {
	backend *Backend
	path    string
	fn      *coreml.Function

	model    id
	arrays   arrays
	calls    map[string]*inputSet
	backings bool // hand out buffers for the outputs
	options  id   // MLPredictionOptions with the backings; 0 without
	outputs  []id
	ran      bool // a prediction has succeeded
}

// inputSet is a feature provider with its arrays.
type inputSet struct {
	provider id
	arrays   map[string]id
}

func (s *inputSet) close() {
	release(s.provider)
	for _, a := range s.arrays {
		release(a)
	}
}

// open takes over the model.
func (s *session) open(model id) {
	s.model = model
	s.arrays = newArrays()
	s.calls = map[string]*inputSet{}
}

// Function describes the loaded function.
func (s *session) Function() *coreml.Function { return s.fn }

// Predict implements coreml.Session. A prediction cannot be interrupted; ctx
// is looked at before it.
func (s *session) Predict(ctx context.Context, inputs map[string]*tensor.Tensor, state coreml.State) (map[string]*tensor.Tensor, error) {
	if s.model == 0 {
		return nil, usage(s.path, "the session of function %s is closed", s.fn.Name)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := checkInputs(s.path, s.fn, inputs); err != nil {
		return nil, err
	}
	st, err := s.stateOf(state)
	if err != nil {
		return nil, err
	}
	var out map[string]*tensor.Tensor
	err = pooled(func() error {
		set, err := s.feed(inputs)
		if err != nil {
			return s.wrong(err)
		}
		var held id
		if st != nil {
			if held, err = st.bind(s); err != nil {
				return err
			}
		}
		result, err := s.run(set.provider, held)
		if err != nil {
			return err
		}
		if out, err = s.collect(result); err != nil {
			return s.wrong(err)
		}
		return nil
	})
	return out, err
}

// wrong gives an error of the bridge the session's place.
func (s *session) wrong(err error) error {
	if diag.CodeOf(err) != "" {
		return err
	}
	return diag.Errorf(diag.In(s.path), diag.RunFailed, "function %s: %w", s.fn.Name, err)
}

// feed copies the inputs into the arrays of their shapes.
func (s *session) feed(inputs map[string]*tensor.Tensor) (*inputSet, error) {
	var key strings.Builder
	for _, f := range s.fn.Inputs {
		if t := inputs[f.Name]; t != nil {
			fmt.Fprintf(&key, "%v", t.Shape)
		}
		key.WriteByte(';')
	}
	set := s.calls[key.String()]
	if set == nil {
		var err error
		if set, err = s.newInputSet(inputs); err != nil {
			return nil, err
		}
		if len(s.calls) >= maxCalls {
			s.dropCalls()
		}
		s.calls[key.String()] = set
	}
	for name, t := range inputs {
		if err := s.arrays.write(set.arrays[name], t); err != nil {
			return nil, fmt.Errorf("input %q: %w", name, err)
		}
	}
	return set, nil
}

func (s *session) dropCalls() {
	for k, set := range s.calls {
		set.close()
		delete(s.calls, k)
	}
}

func (s *session) newInputSet(inputs map[string]*tensor.Tensor) (*inputSet, error) {
	set := &inputSet{arrays: map[string]id{}}
	var names []string
	var values []id
	for _, f := range s.fn.Inputs {
		t := inputs[f.Name]
		if t == nil {
			continue
		}
		arr, fail := newArray(t.DType, t.Shape)
		if fail != nil {
			set.close()
			return nil, failed(s.path, fmt.Sprintf("an array for input %q", f.Name), *fail)
		}
		set.arrays[f.Name] = arr
		names = append(names, f.Name)
		values = append(values, sendID(classValue.obj, selValueOf, uintptr(arr)))
	}
	dict := nsDictionary(names, values)
	provider, fail := attempt(func(slot uintptr) id {
		return sendID(sendID(classProvider.obj, selAlloc), selInitDictionary, uintptr(dict), slot)
	})
	if fail != nil {
		set.close()
		return nil, failed(s.path, "the inputs of function "+s.fn.Name, *fail)
	}
	set.provider = provider
	return set, nil
}

// run calls Core ML. Backings are a wish that some system may refuse, before
// it runs anything; when the very first prediction fails they are given up
// and it is tried once more.
func (s *session) run(provider, state id) (id, error) {
	if s.backings && s.options == 0 {
		if err := s.makeBackings(); err != nil {
			return 0, err
		}
	}
	result, fail := s.call(provider, state)
	if fail != nil && s.options != 0 && !s.ran {
		s.backend.opts.Logger.Warn("Core ML refused the output buffers, or the prediction", "function", s.fn.Name, "error", fail.String())
		s.dropBackings()
		result, fail = s.call(provider, state)
	}
	if fail != nil {
		return 0, failed(s.path, "function "+s.fn.Name, *fail)
	}
	s.ran = true
	return result, nil
}

func (s *session) call(provider, state id) (id, *failure) {
	return attempt(func(slot uintptr) id {
		p, o := uintptr(provider), uintptr(s.options)
		switch {
		case state != 0 && o != 0:
			return sendID(s.model, selPredictStateOptions, p, uintptr(state), o, slot)
		case state != 0:
			return sendID(s.model, selPredictState, p, uintptr(state), slot)
		case o != 0:
			return sendID(s.model, selPredictOptions, p, o, slot)
		}
		return sendID(s.model, selPredict, p, slot)
	})
}

// makeBackings makes a buffer for every output of known shape.
func (s *session) makeBackings() error {
	options := create(classOptions)
	var names []string
	for _, f := range s.fn.Outputs {
		if !tensor.Known(f.Shape) || tensor.Count(f.Shape) < 1 || len(f.Shape) == 0 {
			continue
		}
		arr, fail := newArray(f.DType, f.Shape)
		if fail != nil {
			release(options)
			s.dropBackings()
			return failed(s.path, fmt.Sprintf("an array for output %q", f.Name), *fail)
		}
		names = append(names, f.Name)
		s.outputs = append(s.outputs, arr)
	}
	if len(names) == 0 || !responds(options, selSetBackings) {
		release(options)
		s.dropBackings()
		return nil
	}
	send(options, selSetBackings, uintptr(nsDictionary(names, s.outputs)))
	s.options = options
	return nil
}

func (s *session) dropBackings() {
	release(s.options)
	release(s.outputs...)
	s.options, s.outputs, s.backings = 0, nil, false
}

// collect copies the outputs out of a result.
func (s *session) collect(result id) (map[string]*tensor.Tensor, error) {
	out := make(map[string]*tensor.Tensor, len(s.fn.Outputs))
	for _, f := range s.fn.Outputs {
		value := sendID(result, selValueNamed, uintptr(nsString(f.Name)))
		if value == 0 {
			return nil, fmt.Errorf("no output %q came from Core ML", f.Name)
		}
		arr := sendID(value, selMultiArray)
		if arr == 0 {
			return nil, fmt.Errorf("output %q of Core ML is no array", f.Name)
		}
		t, err := s.arrays.read(arr, f.DType, f.Shape)
		if err != nil {
			return nil, fmt.Errorf("output %q: %w", f.Name, err)
		}
		out[f.Name] = t
	}
	return out, nil
}

// Close releases the model and every array. It may be called again.
func (s *session) Close() error {
	if s.model == 0 {
		return nil
	}
	return pooled(func() error {
		s.dropCalls()
		s.dropBackings()
		release(s.model)
		s.model = 0
		s.arrays.close()
		return nil
	})
}

// stateOf checks the state that Predict is given.
func (s *session) stateOf(state coreml.State) (*State, error) {
	if len(s.fn.States) == 0 {
		return nil, nil
	}
	st, ok := state.(*State)
	if !ok || st == nil {
		return nil, usage(s.path, "function %s has states (%s), so Predict needs a state object of the Core ML backend, got %T", s.fn.Name, featureNames(s.fn.States), state)
	}
	return st, errors.Join(st.declares(s.path, s.fn))
}
