package sharedtest

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing/fstest"
)

// BundleManifest makes the manifest of an .anemllpkg (ANEMLL Chat's
// ModelPackageManifest) for files below its folder root; change, if not nil,
// edits it.
func BundleManifest(root string, files fstest.MapFS, change func(map[string]any)) []byte {
	list := []map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		list = append(list, map[string]any{"path": name, "sha256": fmt.Sprintf("%X", sha256.Sum256(f.Data)), "sizeBytes": len(f.Data)})
	}
	m := map[string]any{"formatVersion": 1, "modelName": "x", "modelId": "org/x", "modelRootPath": root, "minAppVersion": "1.0", "files": list}
	if change != nil {
		change(m)
	}
	data, err := json.Marshal(m)
	if err != nil {
		panic(err) // what change put in has no JSON
	}
	return data
}

// Bundle is an .anemllpkg of two files in the folder model, with its manifest
// as change leaves it.
func Bundle(change func(map[string]any)) fstest.MapFS {
	mil := make([]byte, 5000)
	for i := range mil {
		mil[i] = byte(i * i >> 3)
	}
	files := fstest.MapFS{"meta.yaml": {Data: []byte("model_info:\n")}, "a.mlmodelc/model.mil": {Data: mil}}
	out := fstest.MapFS{"other.json": {Data: []byte(`{"files": 1}`)}, "manifest.json": {Data: BundleManifest("model", files, change)}}
	for name, f := range files {
		out["model/"+name] = f
	}
	return out
}
