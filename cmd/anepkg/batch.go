package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner"
	"github.com/anepkg/anepkg/runner/chattmpl"
	"github.com/anepkg/anepkg/runner/sample"
)

// errLines ends a batch of which some lines failed; the output says which.
var errLines = errors.New("lines failed")

// batchLine is a line of --batch that is a JSON object. What is absent is as
// the flags say.
type batchLine struct {
	ID           json.RawMessage `json:"id"` // comes back as it is
	Prompt       *string         `json:"prompt"`
	PromptIDs    []int           `json:"prompt_ids"`
	Messages     json.RawMessage `json:"messages"`
	System       *string         `json:"system"`
	Raw          *bool           `json:"raw"`
	MaxTokens    *int            `json:"max_tokens"`
	Stop         stopTexts       `json:"stop"`
	Temperature  *float64        `json:"temperature"`
	TopK         *int            `json:"top_k"`
	TopP         *float64        `json:"top_p"`
	MinP         *float64        `json:"min_p"`
	Seed         *uint64         `json:"seed"`
	TemplateArgs json.RawMessage `json:"template_args"`
	Tools        json.RawMessage `json:"tools"`
}

// stopTexts is one text or a list.
type stopTexts []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *stopTexts) UnmarshalJSON(data []byte) error {
	var one string
	if json.Unmarshal(data, &one) == nil {
		*s = stopTexts{one}
		return nil
	}
	return json.Unmarshal(data, (*[]string)(s))
}

// batchOutput is a line of output: what stands on every line, then the
// members of run, or of an error.
type batchOutput struct {
	Schema string          `json:"schema"`
	Line   int             `json:"line"` // of the input, from 1 on
	ID     json.RawMessage `json:"id,omitempty"`
}

type batchResult struct {
	batchOutput
	runJSON
}

type batchFailure struct {
	batchOutput
	jsonFailure
}

// batch answers every line. A line that fails gives an error object and the
// others go on; only an interrupt, and trouble with the input itself, end it.
func (t *tool) batch(ctx context.Context, c *cli.Context, r *runner.Runner, in runner.PromptInput, req runner.Request, s sampling) error {
	if r.IsEncoder() {
		return usagef("--batch: the package is an encoder, it gives an embedding and no text")
	}
	input, name := t.stdin, "standard input"
	if f := c.String("prompt-file"); f != "" && f != "-" {
		file, err := os.Open(f)
		if err != nil {
			return err
		}
		defer file.Close() //nolint:errcheck // read only
		input, name = file, f
	} else if t.stdinTTY {
		return usagef("--batch reads lines from standard input, which is a terminal").WithHint("name a file with --prompt-file")
	}
	lines := bufio.NewReaderSize(input, 64<<10)
	done, failed := 0, 0
	for n := 1; ; n++ {
		line, err := readLine(lines)
		if errors.Is(err, io.EOF) {
			break
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, errLongLine) {
			return diag.Errorf(diag.In(name), diag.IO, "%w", err)
		}
		if len(bytes.TrimSpace(line)) == 0 && err == nil {
			continue
		}
		head := batchOutput{Schema: "anepkg.run/1", Line: n}
		var res runJSON
		if err == nil {
			res, err = t.batchOne(ctx, r, line, in, req, s, &head)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		done++
		out := any(batchResult{head, res})
		if err != nil {
			failed++
			code, pos, hint := classify(err)
			head.Schema = "anepkg.error/1"
			out = batchFailure{head, jsonFailure{jsonError{code, err.Error(), hint, whereOf(pos)}}}
		}
		if _, err := t.stdout.Write(append(compactJSON(out), '\n')); err != nil {
			return nil // finish looks after the output
		}
	}
	if failed > 0 {
		t.notef("%d of %s failed\n", failed, plural(done, "line"))
		return errLines
	}
	return nil
}

// batchOne answers one line.
func (t *tool) batchOne(ctx context.Context, r *runner.Runner, line []byte, in runner.PromptInput, req runner.Request, s sampling, head *batchOutput) (runJSON, error) {
	if bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("{")) {
		var l batchLine
		if err := strictJSON(line, &l); err != nil {
			return runJSON{}, usagef("the line is no request: %w", err).WithHint("a text that begins with { goes into an object: {\"prompt\": \"{…\"}")
		}
		head.ID = l.ID
		if err := l.apply(&in, &req, &s); err != nil {
			return runJSON{}, err
		}
	} else {
		in.Text = string(line)
	}
	var err error
	if req.Sampler, err = sample.New(s.cfg); err != nil {
		return runJSON{}, err
	}
	p, err := r.Prompt(in)
	if err != nil {
		return runJSON{}, err
	}
	req.PromptIDs = p.IDs
	res, err := r.Generate(ctx, req, nil)
	if err != nil {
		return runJSON{}, err
	}
	return t.runJSON(r, res, req, p, s), nil
}

// exactNames refuses members that stand twice, and members whose names differ
// from batchLine's in case: encoding/json takes both.
func exactNames(line []byte) error {
	d := json.NewDecoder(bytes.NewReader(line))
	_, err := d.Token()
	seen := map[string]bool{}
	for err == nil && d.More() {
		var key json.Token
		if key, err = d.Token(); err != nil {
			break
		}
		name, _ := key.(string)
		if seen[name] {
			return fmt.Errorf("the member %s stands twice", name)
		}
		if name != strings.ToLower(name) {
			return fmt.Errorf("unknown field %q", name)
		}
		seen[name] = true
		var skipped json.RawMessage
		err = d.Decode(&skipped)
	}
	return err
}

// strictJSON decodes a line: one object, without members that are unknown or
// stand twice.
func strictJSON(line []byte, v any) error {
	err := exactNames(line)
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err == nil {
		err = d.Decode(v)
	}
	if err != nil {
		var wrong *json.UnmarshalTypeError
		if errors.As(err, &wrong) && wrong.Field != "" {
			return fmt.Errorf("the member %s cannot be a %s", wrong.Field, wrong.Value)
		}
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is more after the object")
	}
	return nil
}

// apply puts the line's members over what the flags say.
func (l *batchLine) apply(in *runner.PromptInput, req *runner.Request, s *sampling) error {
	given := 0
	for _, has := range []bool{l.Prompt != nil, l.PromptIDs != nil, l.Messages != nil} {
		if has {
			given++
		}
	}
	if given != 1 {
		return usagef("the line has %d of prompt, prompt_ids and messages, want one", given)
	}
	in.IDs = l.PromptIDs
	put(&in.Text, l.Prompt)
	if l.Messages != nil {
		v, err := chattmpl.DecodeJSON(l.Messages)
		if err != nil {
			return usagef("messages: %w", err)
		}
		list, ok := v.([]any)
		if !ok || len(list) == 0 {
			return usagef("messages: want a list of objects with role and content")
		}
		in.Objects = list
	}
	put(&in.System, l.System)
	put(&in.Raw, l.Raw)
	if in.Raw || l.PromptIDs != nil {
		for name, has := range map[string]bool{"system": l.System != nil, "template_args": l.TemplateArgs != nil, "tools": l.Tools != nil} {
			if has {
				return usagef("%s is for the chat template, which raw and prompt_ids leave out", name)
			}
		}
	}
	put(&req.MaxTokens, l.MaxTokens)
	if l.Stop != nil {
		req.StopStrings = l.Stop
	}
	if err := l.variables(in); err != nil {
		return err
	}
	l.sampling(s)
	return nil
}

func put[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// variables adds template_args and tools to those of the flags.
func (l *batchLine) variables(in *runner.PromptInput) error {
	if l.TemplateArgs == nil && l.Tools == nil {
		return nil
	}
	in.Extra = maps.Clone(in.Extra)
	if in.Extra == nil {
		in.Extra = map[string]any{}
	}
	if l.TemplateArgs != nil {
		v, err := chattmpl.DecodeJSON(l.TemplateArgs)
		if err != nil {
			return usagef("template_args: %w", err)
		}
		m, ok := v.(*chattmpl.OrderedMap)
		if !ok {
			return usagef("template_args: want an object")
		}
		for _, k := range m.Keys() {
			if madeByRun(k) {
				return usagef("template_args: run makes the variable %s itself", k)
			}
			in.Extra[k], _ = m.Get(k)
		}
	}
	if l.Tools != nil {
		v, err := chattmpl.DecodeJSON(l.Tools)
		if err != nil {
			return usagef("tools: %w", err)
		}
		if _, ok := v.([]any); !ok {
			return usagef("tools: want a list of functions")
		}
		in.Extra["tools"] = v
	}
	return nil
}

// sampling overrides numbers of the choice; a line's own temperature of 0
// makes it greedy.
func (l *batchLine) sampling(s *sampling) {
	if l.Temperature == nil && l.TopK == nil && l.TopP == nil && l.MinP == nil && l.Seed == nil {
		return
	}
	set := map[string]samplingValue{}
	seed, doSample := "default", "line"
	for _, v := range s.values {
		switch v.Name {
		case "do_sample":
			doSample = v.Source
		case "seed":
			seed = v.Source
		default:
			set[v.Name] = v
		}
	}
	mark := func(name string, v any) { set[name] = samplingValue{name, v, "line"} }
	if l.Temperature != nil {
		mark("temperature", *l.Temperature)
		doSample = "line"
	} else if s.cfg.Temperature == 0 && (l.TopK != nil || l.TopP != nil || l.MinP != nil) {
		s.cfg.Temperature, doSample = 1, "line"
		set["temperature"] = samplingValue{"temperature", 1.0, "default"}
	}
	put(&s.cfg.Temperature, l.Temperature)
	if l.TopK != nil {
		mark("top_k", *l.TopK)
	}
	put(&s.cfg.TopK, l.TopK)
	if l.TopP != nil {
		mark("top_p", *l.TopP)
	}
	put(&s.cfg.TopP, l.TopP)
	if l.MinP != nil {
		mark("min_p", *l.MinP)
	}
	put(&s.cfg.MinP, l.MinP)
	if l.Seed != nil {
		seed = "line"
	}
	put(&s.cfg.Seed, l.Seed)
	s.list(set, doSample, seed)
}

// errLongLine is a line beyond maxInput, which is read past.
var errLongLine = diag.Errorf(diag.Pos{}, diag.TooLarge, "the line is longer than %d bytes", maxInput)

// readLine returns the next line without its end; io.EOF after the last.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	long, any := false, false
	for {
		part, err := r.ReadSlice('\n')
		any = any || len(part) > 0
		if long = long || len(line)+len(part) > maxInput; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && any:
		case err != nil:
			return nil, err
		}
		if long {
			return nil, errLongLine
		}
		return bytes.TrimSuffix(bytes.TrimSuffix(line, []byte("\n")), []byte("\r")), nil
	}
}
