package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"
)

// about is the first line of the help.
const about = "anepkg inspects, validates and runs Core ML language-model packages on any system."

// printHelp prints the help of a command, or of the program when cmd is nil.
func (t *tool) printHelp(cmd *cli.Command) {
	st := t.style(t.stdoutTTY)
	if cmd == nil {
		t.printf("%s\n\n%s\n  anepkg COMMAND [flags] TARGET\n\n%s\n", about, st.bold("Usage"), st.bold("Commands"))
		tb := table{indent: "  "}
		for _, c := range t.commands {
			tb.row(cell{c.Name, st.cyan}, c.Usage)
		}
		tb.row(cell{"help", st.cyan}, "explain a command: anepkg help COMMAND")
		tb.write(t.stdout)
	} else {
		args := ""
		if cmd.ArgsUsage != "" {
			args = " " + cmd.ArgsUsage
		}
		t.printf("%s\n\n%s\n  anepkg %s [flags]%s\n", sentence(cmd.Usage), st.bold("Usage"), cmd.Name, args)
		if cmd.Description != "" {
			t.printf("\n%s\n", cmd.Description)
		}
		if own := slices.DeleteFunc(slices.Clone(cmd.Flags), isGlobal); len(own) > 0 {
			t.printf("\n%s\n", st.bold("Flags"))
			t.printFlags(own)
		}
	}
	t.printf("\n%s (anywhere on the line; \"--\" ends flags)\n", st.bold(globalCategory))
	t.printFlags(t.globalFlags())
	if cmd == nil {
		t.printf("\nTARGET is a package folder, a .mlmodelc, a .mlpackage, or a .zip of one of them.\n")
		t.printf("\"anepkg demo\" runs an embedded package and needs nothing else.\n")
	}
}

// sentence turns "print the version" into "Print the version."
func sentence(s string) string { return strings.ToUpper(s[:1]) + s[1:] + "." }

// isGlobal tells the global flags, which every command carries, from its own.
func isGlobal(f cli.Flag) bool {
	c, ok := f.(cli.CategorizableFlag)
	return ok && c.GetCategory() == globalCategory
}

// printFlags prints a table of flags: short name, long name with its value,
// explanation with the default.
func (t *tool) printFlags(flags []cli.Flag) {
	st := t.style(t.stdoutTTY)
	tb := table{indent: "  "}
	for _, f := range flags {
		names := f.Names()
		short := ""
		long := dashed(names[0])
		for _, n := range names[1:] {
			if len(n) == 1 {
				short = dashed(n) + ","
			} else {
				long += ", " + dashed(n)
			}
		}
		value, usage := unquoteUsage(flagUsage(f))
		if value != "" {
			long += " " + value
		}
		if d := flagDefault(f); d != "" {
			usage += fmt.Sprintf(" (default %s)", d)
		}
		tb.row(cell{short, st.cyan}, cell{long, st.cyan}, usage)
	}
	tb.write(t.stdout)
}

// unquoteUsage takes the value's name out of a usage text, where it stands in
// back quotes.
func unquoteUsage(usage string) (value, text string) {
	before, rest, ok := strings.Cut(usage, "`")
	if !ok {
		return "", usage
	}
	name, after, _ := strings.Cut(rest, "`")
	return name, before + name + after
}

// flagDefault returns the default of a flag, "" for a zero value.
func flagDefault(f cli.Flag) string {
	switch f := f.(type) {
	case *cli.StringFlag:
		if !isGlobal(f) {
			return f.Value
		}
	case *cli.IntFlag:
		if f.Value != 0 {
			return strconv.Itoa(f.Value)
		}
	case *cli.Float64Flag:
		if f.Value != 0 {
			return strconv.FormatFloat(f.Value, 'g', -1, 64)
		}
	}
	return ""
}
