package main

import (
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/runner/chattmpl"
)

// templateArgFlag gives variables to chat templates.
func templateArgFlag() cli.Flag {
	return &cli.StringSliceFlag{Name: "template-arg", Usage: "a variable of the chat template, `NAME=VALUE`, with VALUE as JSON or else a text: enable_thinking=false; may be repeated"}
}

// templateArgs reads --template-arg and --tools; nil without them.
func templateArgs(c *cli.Context) (map[string]any, error) {
	out := map[string]any{}
	for _, arg := range c.StringSlice("template-arg") {
		name, value, err := templateArg(arg)
		if err != nil {
			return nil, err
		}
		if madeByRun(name) {
			return nil, usagef("--template-arg %s: run makes this variable itself", name).WithHint(`"anepkg render" renders a request of your own`)
		}
		out[name] = value
	}
	if c.IsSet("tools") {
		file := c.String("tools")
		text, err := readFileBounded(file)
		if err != nil {
			return nil, err
		}
		tools, err := chattmpl.DecodeJSON([]byte(text))
		if err != nil {
			return nil, diag.Errorf(diag.In(file), diag.Malformed, "tools: %w", err)
		}
		list, ok := tools.([]any)
		if !ok {
			return nil, diag.Errorf(diag.In(file), diag.Malformed, "tools: want a JSON list of functions")
		}
		out["tools"] = list
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// madeByRun tells the variables that are not the user's to give.
func madeByRun(name string) bool { return name == "messages" || name == "add_generation_prompt" }

// templateArg reads NAME=VALUE.
func templateArg(arg string) (name string, value any, err error) {
	name, text, found := strings.Cut(arg, "=")
	if name = strings.TrimSpace(name); !found || name == "" {
		return "", nil, usagef("--template-arg %s: want NAME=VALUE, such as enable_thinking=false", arg)
	}
	return name, templateValue(text), nil
}

// templateValue reads JSON, or takes the text itself; Python's spelling of
// its constants counts too.
func templateValue(text string) any {
	switch text {
	case "True":
		return true
	case "False":
		return false
	case "None":
		return nil
	}
	if v, err := chattmpl.DecodeJSON([]byte(text)); err == nil {
		return v
	}
	return text
}
