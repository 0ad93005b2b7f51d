package mlmodelc

import (
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/tensor"
	"github.com/anepkg/anepkg/coreml/wire"
)

// ParseDescription decodes message ModelDescription (Model.proto), a piece of
// src: of coremldata.bin or of a model specification. A model without a list
// of functions gets one called "main".
//
// Fields: input = 1, output = 10, state = 13, functions = 20,
// defaultFunctionName = 21, metadata = 100.
func ParseDescription(src *wire.Source, msg []byte) (*Metadata, error) {
	d := describer{src}
	m := &Metadata{UserDefined: map[string]string{}}
	var top FunctionMeta
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() {
			return nil
		}
		switch f.Num {
		case 1:
			return d.feature(&top.Inputs, f.Bytes)
		case 10:
			return d.feature(&top.Outputs, f.Bytes)
		case 13:
			return d.feature(&top.States, f.Bytes)
		case 20:
			return d.function(m, f.Bytes)
		case 21:
			m.DefaultFunction = f.String()
		case 100:
			return d.metadata(m, f.Bytes)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(m.Functions) == 0 {
		top.Name = mainFunction
		m.Functions = []FunctionMeta{top}
		return m, nil
	}
	m.Multifunction = true
	if m.DefaultFunction == "" {
		m.DefaultFunction = mainFunction
	}
	return m, nil
}

// mainFunction is the name of the function of a model that has only one.
const mainFunction = "main"

// maxFeatures bounds the inputs, outputs, states and functions.
const maxFeatures = 1 << 14

type describer struct{ *wire.Source }

// function decodes message FunctionDescription: name = 1, input = 2,
// output = 3, state = 6.
func (d describer) function(m *Metadata, msg []byte) error {
	var fn FunctionMeta
	err := d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() {
			return nil
		}
		switch f.Num {
		case 1:
			fn.Name = f.String()
		case 2:
			return d.feature(&fn.Inputs, f.Bytes)
		case 3:
			return d.feature(&fn.Outputs, f.Bytes)
		case 6:
			return d.feature(&fn.States, f.Bytes)
		}
		return nil
	})
	if len(m.Functions) >= maxFeatures {
		return diag.Errorf(d.Pos(msg), diag.TooLarge, "more than %d functions", maxFeatures)
	}
	m.Functions = append(m.Functions, fn)
	return err
}

// metadata decodes message Metadata: shortDescription = 1, versionString = 2,
// author = 3, license = 4, userDefined = 100.
func (d describer) metadata(m *Metadata, msg []byte) error {
	return d.Each(msg, func(f wire.Field) error {
		if !f.IsBytes() {
			return nil
		}
		switch f.Num {
		case 1:
			m.ShortDescription = f.String()
		case 2:
			m.Version = f.String()
		case 3:
			m.Author = f.String()
		case 4:
			m.License = f.String()
		case 100:
			key, value, err := d.Entry(f.Bytes)
			if err != nil {
				return err
			}
			m.UserDefined[key] = string(value)
		}
		return nil
	})
}

// featureTypes names the members of oneof Type in message FeatureType.
var featureTypes = map[int]string{1: "Int64", 2: "Double", 3: "String", 4: "Image", 5: "MultiArray", 6: "Dictionary", 7: "Sequence", 8: "State"}

// feature decodes message FeatureDescription: name = 1,
// shortDescription = 2, type = 3.
func (d describer) feature(to *[]FeatureMeta, msg []byte) error {
	var ft FeatureMeta
	err := d.Each(msg, func(f wire.Field) error {
		switch {
		case f.Num == 1 && f.IsBytes():
			ft.Name = f.String()
		case f.Num == 2 && f.IsBytes():
			ft.ShortDescription = f.String()
		case f.Num == 3 && f.IsBytes():
			return d.featureType(&ft, f.Bytes)
		}
		return nil
	})
	if len(*to) >= maxFeatures {
		return diag.Errorf(d.Pos(msg), diag.TooLarge, "more than %d features", maxFeatures)
	}
	*to = append(*to, ft)
	return err
}

// featureType decodes message FeatureType; isOptional = 1000.
func (d describer) featureType(ft *FeatureMeta, msg []byte) error {
	return d.Each(msg, func(f wire.Field) error {
		name := featureTypes[f.Num]
		switch {
		case f.Num == 1000:
			ft.Optional = f.Uint != 0
		case name == "" || !f.IsBytes():
		case f.Num == 5:
			ft.Type = name
			return d.arrayType(ft, f.Bytes)
		case f.Num == 8:
			ft.Type = name
			return d.Each(f.Bytes, func(f wire.Field) error {
				if f.Num == 1 && f.IsBytes() {
					return d.arrayType(ft, f.Bytes)
				}
				return nil
			})
		default:
			ft.Type = name
		}
		return nil
	})
}

// arrayTypes names enum ArrayDataType of FeatureTypes.proto as metadata.json
// does.
var arrayTypes = map[uint64]string{65552: "Float16", 65568: "Float32", 65600: "Double", 131104: "Int32", 131080: "Int8"}

// arrayType decodes message ArrayFeatureType: shape = 1, dataType = 2,
// enumeratedShapes{shapes{shape = 1} = 1} = 21,
// shapeRange{sizeRanges{lowerBound = 1, upperBound = 2} = 1} = 31.
func (d describer) arrayType(ft *FeatureMeta, msg []byte) error {
	return d.Each(msg, func(f wire.Field) (err error) {
		switch {
		case f.Num == 1:
			ft.Shape, err = d.dims(ft.Shape, f)
		case f.Num == 2 && !f.IsBytes():
			ft.DataType = arrayTypes[f.Uint]
		case f.Num == 21 && f.IsBytes():
			err = d.Each(f.Bytes, func(f wire.Field) error {
				if f.Num != 1 || !f.IsBytes() {
					return nil
				}
				var shape []int
				err := d.Each(f.Bytes, func(f wire.Field) (err error) {
					if f.Num == 1 {
						shape, err = d.dims(shape, f)
					}
					return err
				})
				ft.Enumerated = append(ft.Enumerated, shape)
				return err
			})
		case f.Num == 31 && f.IsBytes():
			err = d.Each(f.Bytes, func(f wire.Field) error {
				if f.Num != 1 || !f.IsBytes() {
					return nil
				}
				var r [2]int
				err := d.Each(f.Bytes, func(f wire.Field) error {
					if f.Num == 1 || f.Num == 2 {
						r[f.Num-1] = int(f.Int())
					}
					return nil
				})
				if len(ft.Range) == tensor.MaxRank {
					return diag.Errorf(d.Pos(msg), diag.TooLarge, "more than %d dimensions", tensor.MaxRank)
				}
				ft.Range = append(ft.Range, [2]int{r[0], max(r[1], -1)})
				return err
			})
		}
		return err
	})
}

// dims appends a repeated int64 field of a shape.
func (d describer) dims(to []int, f wire.Field) ([]int, error) {
	vals, err := d.Varints(nil, f)
	if err != nil {
		return to, err
	}
	if len(vals)+len(to) > tensor.MaxRank {
		return to, diag.Errorf(d.Pos(f.Bytes), diag.TooLarge, "more than %d dimensions", tensor.MaxRank)
	}
	for _, v := range vals {
		if v < -1 || v > tensor.MaxElements {
			return to, d.Errorf(f.Bytes, "dimension %d in a shape", v)
		}
		to = append(to, int(v))
	}
	return to, nil
}
