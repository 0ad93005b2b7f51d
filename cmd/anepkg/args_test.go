package main

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
)

// testCommands are two commands with every sort of flag.
func testCommands() ([]*cli.Command, []cli.Flag) {
	global := []cli.Flag{
		&cli.BoolFlag{Name: "json"},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}},
		&cli.StringFlag{Name: "token"},
	}
	run := &cli.Command{Name: "run", Flags: append([]cli.Flag{
		&cli.StringFlag{Name: "prompt", Aliases: []string{"p"}},
		&cli.IntFlag{Name: "max-tokens", Aliases: []string{"n"}},
	}, global...)}
	mil := &cli.Command{Name: "mil", Flags: append([]cli.Flag{&cli.BoolFlag{Name: "ops"}}, global...)}
	return []*cli.Command{run, mil}, global
}

func TestArrange(t *testing.T) {
	tests := []struct {
		name string
		in   []string
		want []string
	}{
		{"plain", []string{"run", "X"}, []string{"run", "--", "X"}},
		{"flag after target", []string{"run", "X", "-n", "5"}, []string{"run", "--n=5", "--", "X"}},
		{"flag before command", []string{"-n", "5", "run", "X"}, []string{"run", "--n=5", "--", "X"}},
		{"global before command", []string{"--json", "run", "X"}, []string{"run", "--json", "--", "X"}},
		{"global between", []string{"run", "--json", "X", "-q"}, []string{"run", "--json", "--q", "--", "X"}},
		{"equals", []string{"run", "X", "--max-tokens=5"}, []string{"run", "--max-tokens=5", "--", "X"}},
		{"equals in the value", []string{"run", "--prompt=a=b", "X"}, []string{"run", "--prompt=a=b", "--", "X"}},
		{"empty value", []string{"run", "-p", "", "X"}, []string{"run", "--p=", "--", "X"}},
		{"attached", []string{"run", "-n5", "X"}, []string{"run", "--n=5", "--", "X"}},
		{"combined", []string{"run", "-qvn", "5", "X"}, []string{"run", "--q", "--v", "--n=5", "--", "X"}},
		{"combined and attached", []string{"-qn5", "run", "X"}, []string{"run", "--q", "--n=5", "--", "X"}},
		{"negative value", []string{"run", "X", "-n", "-1"}, []string{"run", "--n=-1", "--", "X"}},
		{"single dash long name", []string{"run", "-prompt", "a", "X"}, []string{"run", "--prompt=a", "--", "X"}},
		{"dashes end flags", []string{"run", "--json", "--", "--json", "-x"}, []string{"run", "--json", "--", "--json", "-x"}},
		{"dashes before the command", []string{"--", "run", "-n"}, []string{"run", "--", "-n"}},
		{"a lone dash is an argument", []string{"run", "-"}, []string{"run", "--", "-"}},
		{"switch with value", []string{"run", "--json=false", "X"}, []string{"run", "--json=false", "--", "X"}},
		{"value that begins with a dash", []string{"run", "-p", "- a list", "X"}, []string{"run", "--p=- a list", "--", "X"}},
		{"a target called help", []string{"mil", "help"}, []string{"mil", "--", "help"}},
		{"repeated", []string{"run", "-p", "a", "X", "-p", "b"}, []string{"run", "--p=a", "--p=b", "--", "X"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			commands, global := testCommands()
			got, err := arrange(tt.in, commands, global)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got.args, tt.want) || got.help {
				t.Errorf("got %q (help %v), want %q", got.args, got.help, tt.want)
			}
		})
	}
}

func TestArrangeHelp(t *testing.T) {
	tests := []struct {
		in  string
		cmd string // "" for the help of the program
	}{
		{"", ""},
		{"help", ""},
		{"--help", ""},
		{"-h", ""},
		{"help run", "run"},
		{"run --help", "run"},
		{"--help run X", "run"},
		{"run X -h -n 5", "run"},
	}
	for _, tt := range tests {
		t.Run(tt.in, func(t *testing.T) {
			commands, global := testCommands()
			got, err := arrange(strings.Fields(tt.in), commands, global)
			if err != nil || !got.help {
				t.Fatalf("got help %v, error %v", got.help, err)
			}
			name := ""
			if got.cmd != nil {
				name = got.cmd.Name
			}
			if name != tt.cmd {
				t.Errorf("got the help of %q, want that of %q", name, tt.cmd)
			}
		})
	}
}

func TestArrangeErrors(t *testing.T) {
	tests := []struct {
		name string
		in   []string
		msg  string
		hint string
	}{
		{"unknown command", []string{"rnu"}, `unknown command "rnu"`, "did you mean run?"},
		{"unknown flag", []string{"run", "--promt", "x"}, "unknown flag --promt", "did you mean --prompt?"},
		{"unknown global flag", []string{"--jsno", "run"}, "unknown flag --jsno", "did you mean --json?"},
		{"unknown with value", []string{"run", "--promt=x"}, "unknown flag --promt", "did you mean --prompt?"},
		{"flag of another command", []string{"run", "--ops"}, "run has no flag --ops", "--ops is a flag of mil"},
		{"missing value", []string{"run", "-n"}, "flag -n needs a value", ""},
		{"flag instead of a value", []string{"run", "--prompt", "--json"}, "flag --prompt needs a value", ""},
		{"switch with a value", []string{"run", "--json=yes"}, `flag --json takes no value, got "yes"`, ""},
		{"unknown in a group", []string{"run", "-qx"}, "unknown flag --qx", ""},
		{"flags only", []string{"--json"}, "no command given", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			commands, global := testCommands()
			_, err := arrange(tt.in, commands, global)
			var e *diag.Error
			if !errors.As(err, &e) || e.Code != diag.Usage || e.Msg != tt.msg {
				t.Fatalf("got %v, want the usage error %q", err, tt.msg)
			}
			if tt.hint != "" && e.Hint != tt.hint {
				t.Errorf("got hint %q, want %q", e.Hint, tt.hint)
			}
		})
	}
}

// TestFlagsAgree holds what arrange relies on: a flag name takes a value in
// every command that has it, or in none.
func TestFlagsAgree(t *testing.T) {
	tl := &tool{}
	takes := tableOf(tl.globalFlags())
	for _, c := range tl.commandTable() {
		for name, v := range tableOf(c.Flags) {
			if old, ok := takes[name]; ok && old != v {
				t.Errorf("%s takes a value in some commands, not in %s", dashed(name), c.Name)
			}
			takes[name] = v
		}
		if c.Name == "help" || c.HasName("help") {
			t.Error("no command may be called help")
		}
		if strings.HasSuffix(c.Usage, ".") || c.Usage == "" {
			t.Errorf("%s: usage %q: want a phrase without a full stop", c.Name, c.Usage)
		}
	}
}

func FuzzArrange(f *testing.F) {
	f.Add("run X -n 5")
	f.Add("-qvn5 run -- --json")
	f.Add("help mil --ops=true - =")
	f.Fuzz(func(t *testing.T, text string) {
		commands, global := testCommands()
		args := strings.Split(text, " ")
		got, err := arrange(args, commands, global)
		if err == nil && !got.help && len(got.args) < 2 {
			t.Errorf("%q gave %q", args, got.args)
		}
	})
}

func TestNearest(t *testing.T) {
	candidates := []string{"inspect", "validate", "states", "layers", "mil", "run", "tokenize", "detokenize", "compare", "demo", "version"}
	tests := []struct{ word, want string }{
		{"inspcet", "inspect"}, {"Validate", "validate"}, {"ran", "run"}, {"tokenise", "tokenize"}, {"comp", "compare"},
		{"xyz", ""}, {"", ""}, {"frobnicate", ""}, {"layer", "layers"},
	}
	for _, tt := range tests {
		t.Run(tt.word, func(t *testing.T) {
			if got := nearest(tt.word, candidates); got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
