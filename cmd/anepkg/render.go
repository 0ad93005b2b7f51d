package main

import (
	"errors"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

const renderText = `  Renders the chat template of a package, or the one in --template. The request
  is a JSON object with every variable: messages, tools, add_generation_prompt,
  bos_token and so on. Special tokens that it lacks come from the package.`

type renderJSON struct {
	Text     string `json:"text"`
	Template string `json:"template"` // the file that the template comes from
}

func (t *tool) renderCommand() *cli.Command {
	return &cli.Command{
		Name:        "render",
		Usage:       "print what a chat template makes of a request",
		ArgsUsage:   "TARGET | --template FILE",
		Description: renderText,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "template", Usage: "use the template in `FILE`"},
			&cli.StringFlag{Name: "request", Usage: "read the request from `FILE`, a JSON object (- is standard input)", Value: "-"},
			templateArgFlag(),
			&cli.StringFlag{Name: "now", Usage: "the `TIME` that strftime_now sees: 2006-01-02, or with a clock as in RFC 3339"},
		},
		Action: func(c *cli.Context) error {
			clock, err := clockOf(c)
			if err != nil {
				return err
			}
			source, from, special, err := t.templateOf(c)
			if err != nil {
				return err
			}
			values, err := t.requestValues(c.String("request"))
			if err != nil {
				return err
			}
			for _, arg := range c.StringSlice("template-arg") {
				name, value, err := templateArg(arg)
				if err != nil {
					return err
				}
				values.Set(name, value)
			}
			for name, text := range special {
				if _, given := values.Get(name); !given {
					values.Set(name, text)
				}
			}
			text, err := renderTemplate(source, from, chattmpl.Request{Values: values, Now: clock})
			if err != nil {
				return err
			}
			if t.global.json {
				t.writeJSON("anepkg.render/1", renderJSON{text, from})
				return nil
			}
			t.say(text)
			return nil
		},
	}
}

// clockOf reads --now; nil is the real clock.
func clockOf(c *cli.Context) (func() time.Time, error) {
	if !c.IsSet("now") {
		return nil, nil
	}
	for _, layout := range []string{time.DateOnly, time.DateTime, time.RFC3339, "2006-01-02T15:04:05"} {
		if at, err := time.Parse(layout, c.String("now")); err == nil {
			return func() time.Time { return at }, nil
		}
	}
	return nil, usagef("--now %s: want a date such as 2026-11-30, or 2026-11-30T12:00:00Z", c.String("now"))
}

// templateOf returns the text of the template, where it is from, and the
// special tokens of the package.
func (t *tool) templateOf(c *cli.Context) (source, from string, special map[string]string, err error) {
	if c.IsSet("template") {
		if c.NArg() > 0 {
			return "", "", nil, usagef("a TARGET and --template exclude each other")
		}
		source, err = readInput(t, c.String("template"))
		return source, c.String("template"), nil, err
	}
	special = map[string]string{}
	err = t.withTarget(c, func(tg *target) error {
		return t.openPackage(c.Context, tg, func(pkg *manifest.Package) error {
			tk := pkg.Tokenizer
			if tk.ChatTemplate == "" {
				return diag.Errorf(diag.In(pkg.Path), diag.NotFound, "the package has no chat template").WithHint("give one with --template")
			}
			source, from = tk.ChatTemplate, tk.ChatTemplateFrom
			for name, tok := range tk.Special {
				special[name+"_token"] = tok.Content
			}
			return nil
		})
	})
	return source, from, special, err
}

// readInput reads a text file, or standard input for "-", as it is.
func readInput(t *tool, name string) (string, error) {
	if name == "-" {
		if t.stdinTTY {
			return "", usagef("standard input is a terminal; name a file")
		}
		return readBounded(t.stdin, "standard input")
	}
	return readFileBounded(name)
}

// requestValues reads the variables in the order of the file.
func (t *tool) requestValues(name string) (*chattmpl.OrderedMap, error) {
	text, err := readInput(t, name)
	if err != nil {
		return nil, err
	}
	v, err := chattmpl.DecodeJSON([]byte(text))
	if err != nil {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "request: %w", err)
	}
	values, ok := v.(*chattmpl.OrderedMap)
	if !ok {
		return nil, diag.Errorf(diag.In(name), diag.Malformed, "request: want a JSON object with messages and other variables")
	}
	return values, nil
}

// renderTemplate renders; the errors of a template name its line.
func renderTemplate(source, from string, req chattmpl.Request) (string, error) {
	tmpl, err := chattmpl.Parse(source)
	if err != nil {
		return "", templateError(from, diag.Malformed, err)
	}
	text, err := tmpl.Render(req)
	if err != nil {
		return "", templateError(from, diag.RunFailed, err)
	}
	return text, nil
}

func templateError(from string, code diag.Code, err error) error {
	line := 0
	var failed *chattmpl.Error
	var raised *chattmpl.RaiseError
	switch {
	case errors.As(err, &failed):
		line = failed.Line
	case errors.As(err, &raised):
		line = raised.Line
	}
	return diag.Errorf(diag.Pos{File: from, Line: line}, code, "%w", err)
}
