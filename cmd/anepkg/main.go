// Command anepkg inspects, validates and runs Core ML language-model packages
// made for the Apple Neural Engine, on any operating system.
//
// The command is thin: every file named after a command parses its flags,
// calls one library function and renders the result.
//
//   - main.go, root.go: the process edge, the command table, global flags
//   - args.go, nearest.go: flags anywhere on the line, "did you mean"
//   - help.go, completion.go: help texts and shell completion from the table
//   - fail.go: errors to exit status, text and JSON
//   - jsonout.go, table.go, output.go: rendering
//   - target.go, zipfs.go: from a TARGET argument to a file system
//   - format_*.go: report formats of validate other than text and JSON
//   - run.go, run_sampling.go, run_output.go, templateargs.go, batch.go: run;
//     logits.go, run_state.go: its files
//   - chat.go, chatcommands.go: chat at a terminal; lineedit.go, linekeys.go,
//     linecells.go, console_*.go: its line editor; interrupts.go: Ctrl-C
//   - inspect_sampling.go: what inspect adds to the report of the library
//   - backend.go: --backend, and compare on two; load.go, isolate.go: loads for
//     validate --load and --isolate, in a second process; plan.go: inspect
//     --compute-plan
//   - demodata: the embedded demo package
package main

import (
	"context"
	"os"
)

func main() {
	ctx := untilSignal(context.Background())
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr, os.Getenv))
}
