package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// shells are the shells that completion knows.
var shells = []string{"bash", "zsh", "fish", "powershell"}

// flagWords are the fixed values of flags, for completion.
var flagWords = map[string][]string{
	"format":        validateFormats,
	"fail-level":    {"error", "warning", "note"},
	"backend":       {"auto", "cpu", "coreml"},
	"precision":     {"fast", "strict", "ane"},
	"prefill":       {"auto", "batch", "single"},
	"compute-units": {"all", "cpuAndNeuralEngine", "cpuAndGPU", "cpuOnly"},
}

const completionText = `  Put the script where the shell finds it:

  bash        anepkg completion bash > ~/.local/share/bash-completion/completions/anepkg
  zsh         anepkg completion zsh > "${fpath[1]}/_anepkg"
  fish        anepkg completion fish > ~/.config/fish/completions/anepkg.fish
  powershell  anepkg completion powershell >> $PROFILE`

type completionJSON struct {
	Shell  string `json:"shell"`
	Script string `json:"script"`
}

func (t *tool) completionCommand() *cli.Command {
	return &cli.Command{
		Name:        "completion",
		Usage:       "print a completion script for a shell",
		ArgsUsage:   strings.Join(shells, "|"),
		Description: completionText,
		Action: func(c *cli.Context) error {
			if c.NArg() != 1 {
				return usagef("completion needs the name of one shell: %s", orList(shells))
			}
			shell := c.Args().First()
			if !slices.Contains(shells, shell) {
				return usagef("unknown shell %q; known are %s", shell, orList(shells)).WithHint("%s", didYouMean(shell, shells, ""))
			}
			script := t.completionScript(shell)
			if t.global.json {
				t.writeJSON("anepkg.completion/1", completionJSON{shell, script})
				return nil
			}
			t.printf("%s", script)
			return nil
		},
	}
}

// completionScript writes the script out of the command table.
func (t *tool) completionScript(shell string) string {
	var b strings.Builder
	switch shell {
	case "bash":
		t.bashCompletion(&b)
	case "zsh":
		t.zshCompletion(&b)
	case "fish":
		t.fishCompletion(&b)
	case "powershell":
		t.powershellCompletion(&b)
	}
	return b.String()
}

// commandNames lists the commands, completion's own argument words left out.
func (t *tool) commandNames() []string {
	var out []string
	for _, c := range t.commands {
		out = append(out, c.Name)
	}
	return append(out, "help")
}

// flagWordNames returns the flags with fixed values, sorted.
func flagWordNames() []string {
	var out []string
	for n := range flagWords {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

func (t *tool) bashCompletion(b *strings.Builder) {
	fmt.Fprintf(b, `# bash completion of anepkg
_anepkg() {
    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" command="" word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$word" in
        %s) command="$word"; break ;;
        esac
    done
    case "$prev" in
`, strings.Join(t.commandNames(), "|"))
	for _, n := range flagWordNames() {
		fmt.Fprintf(b, "    --%s) COMPREPLY=($(compgen -W '%s' -- \"$cur\")); return ;;\n", n, strings.Join(flagWords[n], " "))
	}
	b.WriteString("    esac\n    local flags=\"\"\n    case \"$command\" in\n")
	for _, c := range t.commands {
		fmt.Fprintf(b, "    %s) flags='%s' ;;\n", c.Name, strings.Join(flagNames(c.Flags), " "))
	}
	fmt.Fprintf(b, `   "") flags='%s' ;;
    esac
    if [[ "$cur" == -* ]]; then
        COMPREPLY=($(compgen -W "$flags" -- "$cur"))
    elif [[ -z "$command" || "$command" == help ]]; then
        COMPREPLY=($(compgen -W '%s' -- "$cur"))
    elif [[ "$command" == completion ]]; then
        COMPREPLY=($(compgen -W '%s' -- "$cur"))
    else
        compopt -o filenames 2>/dev/null
        COMPREPLY=($(compgen -f -- "$cur"))
    fi
}
complete -F _anepkg anepkg
`, strings.Join(flagNames(t.globalFlags()), " "), strings.Join(t.commandNames(), " "), strings.Join(shells, " "))
}

// zshQuote escapes what is special inside an _arguments specification.
var zshQuote = strings.NewReplacer("'", `'\''`, "[", `\[`, "]", `\]`, ":", `\:`)

func (t *tool) zshCompletion(b *strings.Builder) {
	b.WriteString("#compdef anepkg\n_anepkg() {\n  local -a commands\n  commands=(\n")
	for _, c := range t.commands {
		fmt.Fprintf(b, "    '%s:%s'\n", c.Name, zshQuote.Replace(c.Usage))
	}
	b.WriteString("    'help:explain a command'\n  )\n  local command=\"\" word\n  for word in \"${(@)words[2,CURRENT-1]}\"; do\n    case \"$word\" in\n")
	fmt.Fprintf(b, "      (%s) command=\"$word\"; break ;;\n    esac\n  done\n  case \"$command\" in\n", strings.Join(t.commandNames(), "|"))
	for _, c := range t.commands {
		fmt.Fprintf(b, "    (%s)\n      _arguments -S", c.Name)
		for _, f := range c.Flags {
			zshFlag(b, f)
		}
		rest := "_files"
		if c.Name == "completion" {
			rest = "(" + strings.Join(shells, " ") + ")"
		}
		fmt.Fprintf(b, " \\\n        '*:argument:%s' ;;\n", rest)
	}
	b.WriteString("    (*) _describe 'command' commands ;;\n  esac\n}\n_anepkg \"$@\"\n")
}

func zshFlag(b *strings.Builder, f cli.Flag) {
	usage := zshQuote.Replace(strings.ReplaceAll(flagUsage(f), "`", ""))
	_, isBool := f.(*cli.BoolFlag)
	for _, n := range f.Names() {
		fmt.Fprintf(b, " \\\n        '%s[%s]", dashed(n), usage)
		switch words := flagWords[f.Names()[0]]; {
		case isBool:
		case len(words) > 0:
			fmt.Fprintf(b, ":value:(%s)", strings.Join(words, " "))
		default:
			b.WriteString(":value:_files")
		}
		b.WriteString("'")
	}
}

// fishQuote escapes what is special inside single quotes of fish and, with
// another pair, of PowerShell.
var (
	fishQuote       = strings.NewReplacer(`\`, `\\`, "'", `\'`, "`", "")
	powershellQuote = strings.NewReplacer("'", "''", "`", "")
)

func (t *tool) fishCompletion(b *strings.Builder) {
	names := strings.Join(t.commandNames(), " ")
	b.WriteString("# fish completion of anepkg\n")
	for _, c := range t.commands {
		fmt.Fprintf(b, "complete -c anepkg -f -n 'not __fish_seen_subcommand_from %s' -a %s -d '%s'\n", names, c.Name, fishQuote.Replace(c.Usage))
	}
	for _, c := range t.commands {
		for _, f := range c.Flags {
			fmt.Fprintf(b, "complete -c anepkg -n '__fish_seen_subcommand_from %s'", c.Name)
			for _, n := range f.Names() {
				if len(n) == 1 {
					fmt.Fprintf(b, " -s %s", n)
				} else {
					fmt.Fprintf(b, " -l %s", n)
				}
			}
			if _, isBool := f.(*cli.BoolFlag); !isBool {
				b.WriteString(" -r")
				if words := flagWords[f.Names()[0]]; len(words) > 0 {
					fmt.Fprintf(b, " -a '%s'", strings.Join(words, " "))
				}
			}
			fmt.Fprintf(b, " -d '%s'\n", fishQuote.Replace(flagUsage(f)))
		}
	}
	fmt.Fprintf(b, "complete -c anepkg -f -n '__fish_seen_subcommand_from completion' -a '%s'\n", strings.Join(shells, " "))
}

func (t *tool) powershellCompletion(b *strings.Builder) {
	b.WriteString(`# PowerShell completion of anepkg
Register-ArgumentCompleter -Native -CommandName anepkg -ScriptBlock {
    param($wordToComplete, $commandAst, $cursorPosition)
    $commands = [ordered]@{
`)
	for _, c := range t.commands {
		fmt.Fprintf(b, "        '%s' = '%s'\n", c.Name, powershellQuote.Replace(c.Usage))
	}
	b.WriteString("    }\n    $flags = @{\n")
	for _, c := range t.commands {
		fmt.Fprintf(b, "        '%s' = '%s'\n", c.Name, strings.Join(flagNames(c.Flags), " "))
	}
	b.WriteString("    }\n    $words = @{\n")
	for _, n := range flagWordNames() {
		fmt.Fprintf(b, "        '--%s' = '%s'\n", n, strings.Join(flagWords[n], " "))
	}
	fmt.Fprintf(b, `       'completion' = '%s'
    }
    $elements = @($commandAst.CommandElements | ForEach-Object { $_.ToString() })
    $command = $elements | Where-Object { $commands.Contains($_) } | Select-Object -First 1
    $previous = if ($wordToComplete) { $elements[-2] } else { $elements[-1] }
    if ($words.ContainsKey($previous)) { $candidates = $words[$previous] -split ' ' }
    elseif (-not $command) { $candidates = $commands.Keys }
    elseif ($wordToComplete.StartsWith('-')) { $candidates = $flags[$command] -split ' ' }
    else { return }
    $candidates | Where-Object { $_.StartsWith($wordToComplete) } | ForEach-Object {
        $about = if ($commands.Contains($_)) { $commands[$_] } else { $_ }
        [System.Management.Automation.CompletionResult]::new($_, $_, 'ParameterValue', $about)
    }
}
`, strings.Join(shells, " "))
}

// flagUsage returns the one-line help of a flag.
func flagUsage(f cli.Flag) string {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		return d.GetUsage()
	}
	return ""
}
