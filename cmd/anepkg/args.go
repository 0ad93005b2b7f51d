package main

import (
	"slices"
	"sort"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
)

// flagTable says which flags exist and which of them take a value.
type flagTable map[string]bool // name without dashes -> takes a value

func tableOf(flags ...[]cli.Flag) flagTable {
	table := flagTable{"help": false, "h": false}
	for _, fs := range flags {
		for _, f := range fs {
			_, isBool := f.(*cli.BoolFlag)
			for _, n := range f.Names() {
				table[n] = !isBool
			}
		}
	}
	return table
}

// word is one parsed piece of the command line.
type word struct {
	flag  string // "" for an argument
	value string // of the flag or argument
	has   bool   // a flag with a value
}

// line is an understood command line.
type line struct {
	cmd  *cli.Command // nil without a command
	help bool         // help was asked for, of cmd or of the program
	// args is what urfave/cli gets: COMMAND, flags, "--", arguments.
	args []string
}

// arrange puts a command line into the order that urfave/cli understands, as
// it stops reading flags at the first argument. Flags, global or of the
// command, may stand anywhere; "--" ends them.
func arrange(args []string, commands []*cli.Command, global []cli.Flag) (line, error) {
	all := tableOf(global)
	for _, c := range commands {
		for n, v := range tableOf(c.Flags) {
			all[n] = v
		}
	}
	words, err := split(args, all)
	if err != nil {
		return line{}, explainUnknown(err, args, commands, global)
	}
	var ln line
	var rest []string
	var name *string
	for _, w := range words {
		switch {
		case w.flag != "":
			ln.help = ln.help || w.flag == "help" || w.flag == "h"
		case name == nil && w.value == "help":
			ln.help = true
		case name == nil:
			name = &w.value
		default:
			rest = append(rest, w.value)
		}
	}
	if ln.cmd, err = findCommand(name, commands); err != nil || ln.help {
		return ln, err
	}
	flags, err := flagArgs(words, ln.cmd, commands, global)
	if err != nil {
		return line{}, err
	}
	if ln.cmd == nil {
		if len(words) > 0 {
			return line{}, usagef("no command given").WithHint(`"anepkg help" lists the commands`)
		}
		ln.help = true
		return ln, nil
	}
	ln.args = append(append(append([]string{ln.cmd.Name}, flags...), "--"), rest...)
	return ln, nil
}

// flagArgs writes the flags of a line in one form, each checked to belong to
// the command.
func flagArgs(words []word, cmd *cli.Command, commands []*cli.Command, global []cli.Flag) ([]string, error) {
	var out []string
	for _, w := range words {
		if w.flag == "" {
			continue
		}
		if err := belongs(w.flag, cmd, commands, global); err != nil {
			return nil, err
		}
		if w.has {
			out = append(out, "--"+w.flag+"="+w.value)
		} else {
			out = append(out, "--"+w.flag)
		}
	}
	return out, nil
}

// findCommand returns the command called name; nil without a name.
func findCommand(name *string, commands []*cli.Command) (*cli.Command, error) {
	if name == nil {
		return nil, nil
	}
	var known []string
	for _, c := range commands {
		if c.HasName(*name) {
			return c, nil
		}
		known = append(known, c.Names()...)
	}
	return nil, usagef("unknown command %q", *name).WithHint("%s", didYouMean(*name, known, `"anepkg help" lists the commands`))
}

// split reads flags and arguments in any order.
func split(args []string, known flagTable) ([]word, error) {
	var words []word
	for i := 0; i < len(args); i++ {
		arg := args[i]
		if arg == "--" {
			for _, a := range args[i+1:] {
				words = append(words, word{value: a})
			}
			break
		}
		if len(arg) < 2 || arg[0] != '-' {
			words = append(words, word{value: arg})
			continue
		}
		parsed, needs, err := splitFlag(arg, known)
		if err != nil {
			return nil, err
		}
		if needs {
			last := &parsed[len(parsed)-1]
			if i+1 >= len(args) || isKnownFlag(args[i+1], known) {
				return nil, usagef("flag %s needs a value", dashed(last.flag)).
					WithHint("write %s=VALUE when the value begins with a dash", dashed(last.flag))
			}
			i++
			last.value, last.has = args[i], true
		}
		words = append(words, parsed...)
	}
	return words, nil
}

// splitFlag reads "--name", "--name=value", "-n", "-nVALUE" or a group of
// short switches "-qv". needs reports that the last flag still wants a value.
func splitFlag(arg string, known flagTable) (words []word, needs bool, err error) {
	name := strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")
	name, value, has := strings.Cut(name, "=")
	if takes, ok := known[name]; ok {
		if has && !takes && value != "true" && value != "false" {
			return nil, false, usagef("flag %s takes no value, got %q", dashed(name), value)
		}
		return []word{{flag: name, value: value, has: has}}, takes && !has, nil
	}
	unknown := usagef("unknown flag %s", dashed(name))
	if strings.HasPrefix(arg, "--") {
		return nil, false, unknown
	}
	group := arg[1:]
	for i := range len(group) {
		short := group[i : i+1]
		takes, ok := known[short]
		switch {
		case !ok:
			return nil, false, unknown
		case !takes:
			words = append(words, word{flag: short})
		default:
			rest := strings.TrimPrefix(group[i+1:], "=")
			return append(words, word{flag: short, value: rest, has: rest != ""}), rest == "", nil
		}
	}
	return words, false, nil
}

// isKnownFlag reports whether arg is exactly a flag, so that it is not meant
// as the value of the flag before it.
func isKnownFlag(arg string, known flagTable) bool {
	if len(arg) < 2 || arg[0] != '-' {
		return false
	}
	_, ok := known[strings.TrimPrefix(strings.TrimPrefix(arg, "-"), "-")]
	return ok
}

// belongs checks that flag is one of cmd's.
func belongs(flag string, cmd *cli.Command, commands []*cli.Command, global []cli.Flag) error {
	if _, ok := tableOf(global)[flag]; ok {
		return nil
	}
	if cmd == nil {
		return usagef("flag %s needs a command", dashed(flag)).WithHint("%s", ownersOf(flag, commands))
	}
	if _, ok := tableOf(cmd.Flags)[flag]; ok {
		return nil
	}
	return usagef("%s has no flag %s", cmd.Name, dashed(flag)).
		WithHint("%s", didYouMean(dashed(flag), flagNames(cmd.Flags), ownersOf(flag, commands)))
}

func ownersOf(flag string, commands []*cli.Command) string {
	var owners []string
	for _, c := range commands {
		if _, ok := tableOf(c.Flags)[flag]; ok {
			owners = append(owners, c.Name)
		}
	}
	return dashed(flag) + " is a flag of " + orList(owners)
}

// explainUnknown adds the nearest known flag to an unknown-flag error, out
// of those of the command if one is named.
func explainUnknown(err error, args []string, commands []*cli.Command, global []cli.Flag) error {
	e, ok := err.(*diag.Error) //nolint:errorlint // made by this package, never wrapped
	name, found := strings.CutPrefix(e.Msg, "unknown flag ")
	if !ok || !found {
		return err
	}
	if slices.Contains(args, "--version") {
		return e.WithHint(`"anepkg version" prints the version`)
	}
	candidates := flagNames(global)
	help := `"anepkg help" lists the global flags`
	for _, a := range args {
		if cmd, err := findCommand(&a, commands); err == nil && cmd != nil {
			candidates = flagNames(cmd.Flags)
			help = `"anepkg help ` + cmd.Name + `" lists the flags`
			break
		}
	}
	return e.WithHint("%s", didYouMean(name, candidates, help))
}

// flagNames returns the names as typed, sorted.
func flagNames(flags []cli.Flag) []string {
	var out []string
	for n := range tableOf(flags) {
		out = append(out, dashed(n))
	}
	sort.Strings(out)
	return out
}

func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// wantsJSON looks for --json or --format json on a line that may be wrong
// otherwise.
func wantsJSON(args []string) bool {
	for i, a := range args {
		switch a {
		case "--":
			return false
		case "--json", "-json", "--json=true", "--format=json", "-format=json":
			return true
		case "--format", "-format":
			if i+1 < len(args) && args[i+1] == "json" {
				return true
			}
		}
	}
	return false
}
