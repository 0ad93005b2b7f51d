package main

import (
	"encoding/json"
	"io"
	"net/url"
	"path/filepath"
	"strings"

	"github.com/anepkg/anepkg/inspect"
)

// The members of SARIF 2.1.0 (OASIS standard) that are written.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool       sarifTool     `json:"tool"`
		ColumnKind string        `json:"columnKind"`
		Results    []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name    string      `json:"name"`
		Version string      `json:"version"`
		Rules   []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID            string       `json:"id"`
		Short         sarifMessage `json:"shortDescription"`
		Full          sarifMessage `json:"fullDescription"`
		Configuration sarifLevel   `json:"defaultConfiguration"`
	}
	sarifLevel struct {
		Level string `json:"level"`
	}
	sarifMessage struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		RuleIndex    int               `json:"ruleIndex"`
		Level        string            `json:"level"`
		Message      sarifMessage      `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Related      []sarifLocation   `json:"relatedLocations,omitempty"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		ID       int           `json:"id,omitempty"`
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   *sarifRegion  `json:"region,omitempty"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		StartLine   int    `json:"startLine,omitempty"`
		StartColumn int    `json:"startColumn,omitempty"`
		ByteOffset  *int64 `json:"byteOffset,omitempty"`
		ByteLength  *int64 `json:"byteLength,omitempty"`
	}
)

// writeSARIF writes one run with every check as a rule. Files are named by
// their path from the working directory when TARGET was relative.
func writeSARIF(w io.Writer, r *inspect.ValidateReport, _ inspect.Severity) error {
	run := sarifRun{ColumnKind: "utf16CodeUnits", Results: []sarifResult{}}
	run.Tool.Driver = sarifDriver{Name: "anepkg", Version: versionName, Rules: []sarifRule{}}
	index := map[string]int{}
	for i, rule := range inspect.Catalogue() {
		index[rule.ID] = i
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{
			ID: rule.ID, Short: sarifMessage{rule.Title}, Full: sarifMessage{rule.Doc}, Configuration: sarifLevel{string(rule.Severity)},
		})
	}
	for _, f := range r.Findings {
		res := sarifResult{RuleID: f.ID, RuleIndex: index[f.ID], Level: string(f.Severity), Message: sarifMessage{findingText(f)},
			Fingerprints: map[string]string{"anepkg/v1": f.Fingerprint()}}
		for i, where := range f.Where {
			if i == 0 {
				res.Locations = append(res.Locations, sarifPlace(r, where))
				continue
			}
			loc := sarifPlace(r, where)
			loc.ID = i
			res.Related = append(res.Related, loc)
		}
		if len(res.Locations) == 0 {
			res.Locations = []sarifLocation{sarifPlace(r, inspect.Where{})}
		}
		run.Results = append(run.Results, res)
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	return enc.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func sarifPlace(r *inspect.ValidateReport, where inspect.Where) sarifLocation {
	loc := sarifLocation{Physical: sarifPhysical{Artifact: sarifArtifact{fileURI(reportPath(r, where.File))}}}
	switch {
	case where.Line != nil:
		loc.Physical.Region = &sarifRegion{StartLine: *where.Line}
		if where.Column != nil {
			loc.Physical.Region.StartColumn = *where.Column
		}
	case where.Offset != nil:
		none := int64(0)
		loc.Physical.Region = &sarifRegion{ByteOffset: where.Offset, ByteLength: &none}
	}
	return loc
}

// reportPath is the path of a package's file as the user would type it.
func reportPath(r *inspect.ValidateReport, file string) string {
	return filepath.ToSlash(filepath.Join(r.Package.Path, filepath.FromSlash(file)))
}

// fileURI is a relative reference for a relative path, else a file: address.
func fileURI(path string) string {
	if filepath.IsAbs(filepath.FromSlash(path)) {
		return (&url.URL{Scheme: "file", Path: "/" + strings.TrimPrefix(path, "/")}).String()
	}
	return (&url.URL{Path: path}).String()
}

// findingText is message and hint in one.
func findingText(f *inspect.Finding) string {
	if f.Hint == "" {
		return f.Message
	}
	return f.Message + " (" + f.Hint + ")"
}
