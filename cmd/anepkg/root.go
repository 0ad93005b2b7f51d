package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime/debug"
	"slices"

	"github.com/urfave/cli/v2"
	"golang.org/x/term"

	"github.com/anepkg/anepkg/coreml/diag"
)

// tool is one invocation: its streams, environment and global flags.
type tool struct {
	stdin  io.Reader
	stdout *output
	stderr io.Writer
	getenv func(string) string

	stdinTTY, stdoutTTY, stderrTTY bool
	terminal                       *os.File // standard input, when it is a terminal

	global   globals
	commands []*cli.Command

	child func(ctx context.Context, args []string) *exec.Cmd // tests only; nil = this program
}

// globals are the flags that every command accepts, anywhere on the line.
type globals struct {
	json    bool
	format  string
	quiet   bool
	verbose bool
	noColor bool

	offline  bool
	cacheDir string
	token    string
	endpoint string
}

// run executes one command line and returns the exit status.
func run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer, getenv func(string) string) (status int) {
	t := &tool{
		stdin: &ctxReader{ctx: ctx, r: stdin}, stdout: &output{w: stdout}, stderr: stderr, getenv: getenv,
		stdinTTY: isTerminal(stdin), stdoutTTY: isTerminal(stdout), stderrTTY: isTerminal(stderr),
	}
	if f, ok := stdin.(*os.File); ok && t.stdinTTY {
		t.terminal = f
	}
	t.global.json = wantsJSON(args) // so that a wrong command line is reported in the right form
	defer func() {
		if r := recover(); r != nil {
			if t.global.verbose {
				fmt.Fprintf(stderr, "%s\n", debug.Stack())
			}
			status = t.fail(diag.Errorf(diag.Pos{}, diag.RunFailed, "internal error: %v", r).
				WithHint("this is a bug in anepkg: please report the command line, this message and the output of \"anepkg version\"; -v prints where it happened"))
		}
	}()
	return t.finish(ctx, t.dispatch(ctx, args))
}

// dispatch builds the command table, puts the arguments in order and runs
// the command.
func (t *tool) dispatch(ctx context.Context, args []string) error {
	t.commands = t.commandTable()
	if len(args) > 0 && args[0] == childName {
		t.commands = t.complete([]*cli.Command{t.childCommand()})
	}
	if len(args) == 1 && args[0] == "--version" {
		args = []string{"version"}
	}
	ln, err := arrange(args, t.commands, t.globalFlags())
	switch {
	case err != nil:
		return err
	case ln.help:
		t.printHelp(ln.cmd)
		return nil
	}
	app := &cli.App{
		Name:            "anepkg",
		Commands:        t.commands,
		HideHelp:        true,
		HideVersion:     true,
		HideHelpCommand: true,
		// --stop "," is a stop text; the lists of validate are split by hand
		DisableSliceFlagSeparator: true,
		Writer:                    t.stdout,
		ErrWriter:                 t.stderr,
		ExitErrHandler:            func(*cli.Context, error) {},
	}
	return app.RunContext(ctx, append([]string{"anepkg"}, ln.args...))
}

// commandTable lists every command, in the order of the help text.
func (t *tool) commandTable() []*cli.Command {
	cmds := []*cli.Command{
		t.inspectCommand(),
		t.validateCommand(),
		t.checksCommand(),
		t.statesCommand(),
		t.layersCommand(),
		t.weightsCommand(),
		t.diffCommand(),
		t.milCommand(),
		t.compileCommand(),
		t.opsCommand(),
		t.tokenizeCommand(),
		t.detokenizeCommand(),
		t.runCommand(),
		t.compareCommand(),
		t.predictCommand(),
		t.traceCommand(),
		t.benchCommand(),
		t.renderCommand(),
		t.demoCommand(),
		t.fetchCommand(),
		t.cacheCommand(),
		t.doctorCommand(),
		t.versionCommand(),
		t.completionCommand(),
	}
	return t.complete(cmds)
}

// complete gives commands what they have in common.
func (t *tool) complete(cmds []*cli.Command) []*cli.Command {
	for _, c := range cmds {
		c.Flags = append(c.Flags, t.globalFlags()...)
		c.OnUsageError = usageError
		c.HideHelp = true
		c.HideHelpCommand = true
		c.Action = t.checked(c.Name, c.Action)
	}
	return cmds
}

// globalCategory is the help section of the global flags.
const globalCategory = "Global flags"

// globalFlags returns fresh flags bound to t.global; the root and every
// command carry them.
func (t *tool) globalFlags() []cli.Flag {
	g := &t.global
	const in = globalCategory
	return []cli.Flag{
		&cli.BoolFlag{Name: "json", Usage: "print one JSON object", Destination: &g.json, Category: in, Value: g.json},
		&cli.StringFlag{Name: "format", Usage: "output `FORMAT`: text or json (validate knows more)", Destination: &g.format, Category: in, Value: g.format},
		&cli.BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "print results only", Destination: &g.quiet, Category: in},
		&cli.BoolFlag{Name: "verbose", Aliases: []string{"v"}, Usage: "say more, on stderr", Destination: &g.verbose, Category: in},
		&cli.BoolFlag{Name: "no-color", Usage: "no colour on a terminal (also: NO_COLOR)", Destination: &g.noColor, Category: in},
		&cli.BoolFlag{Name: "offline", Usage: "never use the network", Destination: &g.offline, Category: in},
		&cli.StringFlag{Name: "cache-dir", Usage: "`DIR` of downloaded packages", Destination: &g.cacheDir, Category: in},
		&cli.StringFlag{Name: "token", Usage: "access `TOKEN` of the hub", Destination: &g.token, Category: in},
		&cli.StringFlag{Name: "endpoint", Usage: "`URL` of the hub", Destination: &g.endpoint, Category: in},
	}
}

// checked wraps a command's action: it settles --format before the command
// runs.
func (t *tool) checked(name string, action cli.ActionFunc) cli.ActionFunc {
	return func(c *cli.Context) error {
		allowed := []string{"text", "json"}
		switch name {
		case "validate":
			allowed = validateFormats
		case "checks", "ops":
			allowed = []string{"text", "json", "markdown"}
		}
		switch f := t.global.format; {
		case f == "" && t.global.json:
			t.global.format = "json"
		case f == "":
			t.global.format = "text"
		case !slices.Contains(allowed, f):
			return usagef("--format %s: %s knows %s", f, name, orList(allowed)).WithHint("%s", didYouMean(f, allowed, ""))
		case t.global.json && f != "json":
			return usagef("--json and --format %s contradict each other", f)
		}
		t.global.json = t.global.format == "json"
		return action(c)
	}
}

func isTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}
