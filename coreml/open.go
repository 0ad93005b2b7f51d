package coreml

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/blob"
	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/mil"
	"github.com/anepkg/anepkg/coreml/mlmodelc"
	"github.com/anepkg/anepkg/coreml/mlpackage"
)

// Names inside a compiled model.
const (
	programFile  = "model.mil"
	metadataFile = "metadata.json"
	coremlFile   = "coremldata.bin"
	manifestFile = "Manifest.json"
)

// maxPipeline bounds the search for members of a pipeline.
const maxPipeline = 100

// maxProgramFile bounds model.mil and model.mlmodel in bytes.
const maxProgramFile = 256 << 20

// Open opens the model at name inside fsys. name is one of
//
//   - a compiled model: a folder that holds model.mil, called *.mlmodelc or
//     anything else ("." when it is the root of fsys)
//   - an .mlpackage folder: one that holds Manifest.json
//   - a file *.mil or *.mlmodel
//
// The program is parsed and its names are checked. Weight files are not
// touched: a missing one is no error here. Trouble with metadata.json and
// coremldata.bin goes to Model.Warnings.
//
// Errors: diag.NotFound when nothing is there; diag.LFSPointer when a pointer
// stands for the program; diag.Unsupported, naming what it is, for neural
// networks, pipelines and the like; a diag.List for a malformed program.
func Open(ctx context.Context, fsys fs.FS, name string) (*Model, error) {
	if name = path.Clean(name); !fs.ValidPath(name) {
		return nil, diag.Errorf(diag.In(name), diag.Usage, "not a path inside the package")
	}
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, ioError(name, err)
	}
	o := &opener{fsys: fsys, model: &Model{Path: name, Name: modelName(name), fsys: fsys}}
	if !info.IsDir() {
		return o.openFile(ctx, name)
	}
	isPackage := strings.HasSuffix(name, ".mlpackage")
	switch {
	case !isPackage && o.exists(path.Join(name, programFile)):
		return o.openCompiled(ctx, path.Join(name, programFile))
	case o.exists(path.Join(name, manifestFile)):
		return o.openPackage(ctx)
	case isPackage:
		return nil, diag.Errorf(diag.In(name), diag.NotFound, "%s is absent from the package", manifestFile)
	}
	return nil, o.refuse(ctx, name)
}

// Close releases the weight files. Data that they returned must not be used
// any more.
func (m *Model) Close() error {
	if m == nil || m.Weights == nil {
		return nil
	}
	return m.Weights.Close()
}

func modelName(p string) string {
	base := path.Base(p)
	for _, suffix := range []string{".mlmodelc", ".mlpackage", ".mlmodel", ".mil"} {
		if s, ok := strings.CutSuffix(base, suffix); ok {
			return s
		}
	}
	if base == "." {
		return ""
	}
	return base
}

// opener builds one Model.
type opener struct {
	fsys  fs.FS
	model *Model
	// desc is the model description, from whichever file has one.
	desc *mlmodelc.Metadata
}

func (o *opener) exists(name string) bool {
	_, err := fs.Stat(o.fsys, name)
	return err == nil
}

func (o *opener) openFile(ctx context.Context, name string) (*Model, error) {
	switch path.Ext(name) {
	case ".mil":
		return o.openCompiled(ctx, name)
	case ".mlmodel":
		o.model.Container = MLPackage
		return o.openSpec(ctx, name)
	}
	if base := path.Base(name); base == manifestFile || base == metadataFile || base == coremlFile {
		return nil, diag.Errorf(diag.In(name), diag.Usage, "a file of a model, not a model").WithHint("name the folder that holds it")
	}
	return nil, diag.Errorf(diag.In(name), diag.Unsupported, "not a Core ML model: want a .mlmodelc or .mlpackage folder, or a .mil or .mlmodel file")
}

// openCompiled opens a compiled model by its program file.
func (o *opener) openCompiled(ctx context.Context, program string) (*Model, error) {
	dir := path.Dir(program)
	o.model.Container = MLModelC
	src, err := o.read(ctx, program, maxProgramFile)
	if err != nil {
		return nil, err
	}
	prog, err := mil.Parse(program, src)
	if err != nil {
		return nil, err
	}
	o.readMetadata(ctx, path.Join(dir, metadataFile))
	o.readCoreMLData(ctx, path.Join(dir, coremlFile))
	return o.finish(prog, dir)
}

func (o *opener) readMetadata(ctx context.Context, name string) {
	data, err := o.read(ctx, name, 64<<20)
	if err == nil {
		o.model.Metadata, err = mlmodelc.ParseMetadata(name, data)
	}
	if err == nil {
		o.desc = o.model.Metadata
	} else if !errors.Is(err, fs.ErrNotExist) {
		o.model.Warnings = append(o.model.Warnings, err)
	}
}

// readCoreMLData takes the description of coremldata.bin when metadata.json
// has none.
func (o *opener) readCoreMLData(ctx context.Context, name string) {
	data, err := o.read(ctx, name, 64<<20)
	var c *mlmodelc.CoreMLData
	if err == nil {
		c, err = mlmodelc.ParseCoreMLData(name, data)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			o.model.Warnings = append(o.model.Warnings, err)
		}
		return
	}
	o.model.CoreMLData = c
	if o.desc == nil && c.Type == mlmodelc.MLProgram {
		o.desc = c.Description
	}
}

// openPackage opens an .mlpackage by its manifest.
func (o *opener) openPackage(ctx context.Context) (*Model, error) {
	o.model.Container = MLPackage
	name := path.Join(o.model.Path, manifestFile)
	data, err := o.read(ctx, name, 4<<20)
	if err != nil {
		return nil, err
	}
	mf, err := mlpackage.ParseManifest(name, data)
	if err != nil {
		return nil, err
	}
	spec, err := mf.SpecPath(name)
	if err != nil {
		return nil, err
	}
	return o.openSpec(ctx, path.Join(o.model.Path, spec))
}

// openSpec opens a model specification; weight files lie next to it.
func (o *opener) openSpec(ctx context.Context, name string) (*Model, error) {
	data, err := o.read(ctx, name, maxProgramFile)
	if err != nil {
		return nil, err
	}
	spec, err := mlpackage.ParseModel(name, data)
	if err != nil {
		return nil, err
	}
	o.desc = spec.Description
	return o.finish(spec.Program, path.Dir(name))
}

// finish fills the model from the program and the description.
func (o *opener) finish(prog *mil.Program, dir string) (*Model, error) {
	if err := mil.Check(prog); err != nil {
		return nil, err
	}
	if len(prog.Functions) == 0 {
		return nil, diag.Errorf(diag.In(prog.File), diag.Malformed, "the program has no function")
	}
	m := o.model
	m.Program, m.ProgramFile = prog, prog.File
	m.UserMeta = map[string]string{}
	if o.desc == nil {
		o.desc = &mlmodelc.Metadata{}
	}
	if o.desc.UserDefined != nil {
		m.UserMeta = o.desc.UserDefined
	}
	if m.SpecVersion = o.desc.SpecVersion; m.SpecVersion == 0 {
		m.SpecVersion = specOf(prog)
	}
	if m.Name == "" {
		m.Name = o.desc.GeneratedClass
	}
	m.Default = defaultFunction(prog, o.desc)
	for _, f := range prog.Functions {
		m.Functions = append(m.Functions, describe(f, o.desc, f.Name == m.Default))
	}
	m.Weights = newWeights(o.fsys, dir, m.BlobRefs())
	return m, nil
}

// opsetSpecs maps an opset to the first specification version that has it.
var opsetSpecs = map[string]int{"ios15": 6, "ios16": 7, "ios17": 8, "ios18": 9, "ios26": 10}

// specOf derives the specification version from the newest opset; 0 when no
// opset is known.
func specOf(p *mil.Program) int {
	v := 0
	for _, f := range p.Functions {
		v = max(v, opsetSpecs[f.Opset])
	}
	return v
}

// defaultFunction picks the claimed default when the program has it, else
// "main", else the first function.
func defaultFunction(p *mil.Program, desc *mlmodelc.Metadata) string {
	for _, name := range []string{desc.DefaultFunction, "main"} {
		if p.Function(name) != nil {
			return name
		}
	}
	return p.Functions[0].Name
}

// refuse says what a folder is that holds no ML Program.
func (o *opener) refuse(ctx context.Context, dir string) error {
	at := diag.In(dir)
	switch {
	case o.exists(path.Join(dir, "model0")):
		n := 1
		for n < maxPipeline && o.exists(path.Join(dir, "model"+strconv.Itoa(n))) {
			n++
		}
		return diag.Errorf(at, diag.Unsupported, "a pipeline of %d models; only ML Programs are supported", n).WithHint("open one member: %s", path.Join(dir, "model0"))
	case o.exists(path.Join(dir, "model.espresso.net")):
		return diag.Errorf(at, diag.Unsupported, "a compiled neural network (Espresso); only ML Programs are supported")
	}
	if data, err := o.read(ctx, path.Join(dir, coremlFile), 64<<20); err == nil {
		if c, err := mlmodelc.ParseCoreMLData(coremlFile, data); err == nil && c.Type != mlmodelc.MLProgram {
			return diag.Errorf(at, diag.Unsupported, "a compiled model of type %s; only ML Programs are supported", mlmodelc.TypeName(c.Type))
		}
	}
	if data, err := o.read(ctx, path.Join(dir, metadataFile), 64<<20); err == nil {
		if m, err := mlmodelc.ParseMetadata(metadataFile, data); err == nil && m.ModelType != "" && m.ModelType != "MLModelType_mlProgram" {
			return diag.Errorf(at, diag.Unsupported, "a compiled model of type %s; only ML Programs are supported", m.ModelType)
		}
	}
	if strings.HasSuffix(dir, ".mlmodelc") || o.exists(path.Join(dir, coremlFile)) {
		return diag.Errorf(at, diag.NotFound, "%s is absent from the compiled model", programFile)
	}
	return diag.Errorf(at, diag.NotFound, "no Core ML model: the folder has neither %s nor %s", programFile, manifestFile)
}

// read reads a small file of at most limit bytes. A Git LFS pointer and a web
// page in its place are errors.
func (o *opener) read(ctx context.Context, name string, limit int64) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	f, err := o.fsys.Open(name)
	if err != nil {
		return nil, ioError(name, err)
	}
	defer func() { _ = f.Close() }()
	if info, err := f.Stat(); err == nil && info.Size() > limit {
		return nil, diag.Errorf(diag.In(name), diag.TooLarge, "%d bytes, want at most %d", info.Size(), limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	switch {
	case err != nil:
		return nil, ioError(name, err)
	case int64(len(data)) > limit:
		return nil, diag.Errorf(diag.In(name), diag.TooLarge, "larger than %d bytes", limit)
	}
	if p, ok := blob.ParsePointer(data); ok {
		return nil, diag.Errorf(diag.In(name), diag.LFSPointer, "git lfs pointer instead of a file of %d bytes", p.Size).
			WithHint("fetch the file itself: git lfs pull")
	}
	if blob.IsHTML(data) {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "a web page instead of the file").WithHint("download the file again")
	}
	return data, nil
}

func ioError(name string, err error) error {
	code := diag.IO
	if errors.Is(err, fs.ErrNotExist) {
		code = diag.NotFound
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return diag.Errorf(diag.In(name), code, "%w", err)
}
