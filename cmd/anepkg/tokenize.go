package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/manifest"
	"github.com/anepkg/anepkg/runner"
	"github.com/anepkg/anepkg/runner/tokenizer"
	"github.com/anepkg/anepkg/runner/tokenizer/hf"
)

const (
	// maxTokenizerFile bounds a tokenizer.json; the largest known is 34 MB.
	maxTokenizerFile = 512 << 20
	// maxInput bounds a text, a list of ids or one line of --lines-json.
	maxInput = 64 << 20
)

// tokensJSON is the result of tokenize and detokenize; with --lines-json one
// of them stands on each line.
type tokensJSON struct {
	Schema string   `json:"schema"`
	IDs    []int    `json:"ids"`
	Tokens []string `json:"tokens"`
	Text   string   `json:"text"`
}

const tokenizeText = `  TARGET is a package, a tokenizer.json or a tokenizer.model. The text is the second argument,
  --text, or standard input, taken as it is, with its last newline.
  With --lines-json every line of standard input is a JSON string, and every
  line of output an object with ids, tokens and text.`

const detokenizeText = `  TARGET is a package, a tokenizer.json or a tokenizer.model. The ids are the arguments after it,
  --ids, or standard input: numbers with commas or spaces between them.
  With --lines-json every line of standard input is a JSON list of ids.`

func (t *tool) tokenizeCommand() *cli.Command {
	return &cli.Command{
		Name:        "tokenize",
		Usage:       "turn text into token ids",
		ArgsUsage:   "TARGET [TEXT]",
		Description: tokenizeText,
		Flags: []cli.Flag{
			tokenizerFlag(),
			&cli.StringFlag{Name: "text", Usage: "the `TEXT`"},
			&cli.BoolFlag{Name: "no-special", Usage: "add no special tokens, such as a leading BOS"},
			&cli.BoolFlag{Name: "lines-json", Usage: "one JSON string a line on standard input"},
		},
		Action: func(c *cli.Context) error {
			tok, err := t.openTokenizer(c)
			if err != nil {
				return err
			}
			encode := func(text string) (tokensJSON, error) {
				ids, err := tok.Encode(text, !c.Bool("no-special"))
				return tokensJSON{"anepkg.tokenize/1", ids, tokensOf(tok, ids), text}, err
			}
			if c.Bool("lines-json") {
				return t.jsonLines(c.Context, func(line []byte) (tokensJSON, error) {
					var text string
					if err := json.Unmarshal(line, &text); err != nil {
						return tokensJSON{}, errors.New("want one JSON string")
					}
					return encode(text)
				})
			}
			text, err := t.textInput(c, "text")
			if err != nil {
				return err
			}
			r, err := encode(text)
			if err != nil {
				return err
			}
			return t.printTokens(r)
		},
	}
}

func (t *tool) detokenizeCommand() *cli.Command {
	return &cli.Command{
		Name:        "detokenize",
		Usage:       "turn token ids into text",
		ArgsUsage:   "TARGET [IDS]",
		Description: detokenizeText,
		Flags: []cli.Flag{
			tokenizerFlag(),
			&cli.StringFlag{Name: "ids", Usage: "the `IDS`, with commas or spaces between them"},
			&cli.BoolFlag{Name: "skip-special", Usage: "leave special tokens out of the text"},
			&cli.BoolFlag{Name: "lines-json", Usage: "one JSON list of ids a line on standard input"},
		},
		Action: func(c *cli.Context) error {
			tok, err := t.openTokenizer(c)
			if err != nil {
				return err
			}
			decode := func(ids []int) (tokensJSON, error) {
				for _, id := range ids {
					if id < 0 || id >= tok.VocabSize() {
						return tokensJSON{}, usagef("id %d is not in the vocabulary, which ends at %d", id, tok.VocabSize()-1)
					}
				}
				return tokensJSON{"anepkg.detokenize/1", ids, tokensOf(tok, ids), tok.Decode(ids, c.Bool("skip-special"))}, nil
			}
			if c.Bool("lines-json") {
				return t.jsonLines(c.Context, func(line []byte) (tokensJSON, error) {
					var ids []int
					if err := json.Unmarshal(line, &ids); err != nil {
						return tokensJSON{}, errors.New("want one JSON list of ids")
					}
					return decode(ids)
				})
			}
			text, err := t.textInput(c, "ids")
			if err != nil {
				return err
			}
			ids, err := parseIDs(text)
			if err != nil {
				return err
			}
			r, err := decode(ids)
			if err != nil {
				return err
			}
			if t.global.json {
				t.writeJSON(r.Schema, r)
				return nil
			}
			t.say(r.Text + "\n")
			return nil
		},
	}
}

func tokensOf(tok tokenizer.Tokenizer, ids []int) []string {
	out := make([]string, len(ids))
	for i, id := range ids {
		out[i], _ = tok.Token(id)
	}
	return out
}

// printTokens prints a table of ids and tokens; with --quiet the ids alone.
func (t *tool) printTokens(r tokensJSON) error {
	switch {
	case t.global.json:
		t.writeJSON(r.Schema, r)
	case t.global.quiet:
		t.printf("%s\n", joinIDs(r.IDs))
	default:
		st := t.style(t.stdoutTTY)
		tb := table{right: map[int]bool{0: true}}
		tb.head(st, "id", "token")
		for i, id := range r.IDs {
			tb.row(strconv.Itoa(id), visible(r.Tokens[i]))
		}
		tb.write(t.stdout)
		t.printf("%s: %s\n", plural(len(r.IDs), "token"), joinIDs(r.IDs))
	}
	return nil
}

func joinIDs(ids []int) string {
	var b strings.Builder
	for i, id := range ids {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(id))
	}
	return b.String()
}

// parseIDs reads numbers with commas or white space between them, with or
// without brackets around them.
func parseIDs(text string) ([]int, error) {
	ids := []int{}
	text = strings.TrimSpace(text)
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		text = strings.TrimSpace(text[1 : len(text)-1])
	}
	if text == "" {
		return ids, nil
	}
	for _, group := range strings.Split(strings.TrimSuffix(text, ","), ",") {
		fields := strings.Fields(group)
		if len(fields) == 0 {
			return nil, usagef("a token id is missing between two commas of %q", text)
		}
		for _, f := range fields {
			id, err := strconv.ParseInt(f, 10, 32)
			if err != nil || id < 0 {
				return nil, usagef("%q is not a token id: want a number from 0 to %d", f, math.MaxInt32)
			}
			ids = append(ids, int(id))
		}
	}
	return ids, nil
}

// textInput returns the arguments after TARGET, the flag, or standard input.
func (t *tool) textInput(c *cli.Context, flag string) (string, error) {
	args := c.Args().Tail()
	switch {
	case c.IsSet(flag) && len(args) > 0:
		return "", usagef("--%s and an argument after TARGET exclude each other", flag)
	case c.IsSet(flag):
		return c.String(flag), nil
	case len(args) > 0:
		return strings.Join(args, " "), nil
	case t.stdinTTY:
		return "", usagef("%s needs the %s: as an argument after TARGET, with --%s, or on standard input", c.Command.Name, flag, flag)
	}
	return readBounded(t.stdin, "standard input")
}

// readBounded reads a whole stream of at most maxInput bytes.
func readBounded(r io.Reader, name string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxInput+1))
	switch {
	case err != nil:
		return "", diag.Errorf(diag.In(name), diag.IO, "%w", err)
	case len(data) > maxInput:
		return "", diag.Errorf(diag.In(name), diag.TooLarge, "more than %d bytes", maxInput)
	}
	return string(data), nil
}

// readFileBounded reads a text file of at most maxInput bytes.
func readFileBounded(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		code := diag.IO
		if errors.Is(err, fs.ErrNotExist) {
			code = diag.NotFound
		}
		return "", diag.Errorf(diag.Pos{}, code, "%w", err)
	}
	defer f.Close() //nolint:errcheck // read only
	return readBounded(f, name)
}

// jsonLines answers every line of standard input with one line of output.
func (t *tool) jsonLines(ctx context.Context, answer func(line []byte) (tokensJSON, error)) error {
	in := bufio.NewScanner(t.stdin)
	in.Buffer(nil, maxInput)
	out := bufio.NewWriter(t.stdout)
	for n := 1; in.Scan(); n++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		if len(bytes.TrimSpace(in.Bytes())) == 0 {
			continue
		}
		r, err := answer(in.Bytes())
		if err != nil {
			_ = out.Flush()
			return diag.Errorf(diag.Pos{File: "standard input", Line: n}, diag.Malformed, "%w", err)
		}
		_, _ = out.Write(append(compactJSON(r), '\n'))
	}
	if err := in.Err(); err != nil {
		_ = out.Flush()
		return diag.Errorf(diag.In("standard input"), diag.IO, "%w", err)
	}
	return out.Flush()
}

// openTokenizer loads the tokenizer of the first argument: a tokenizer.json,
// a tokenizer.model, or a package that has one.
func (t *tool) openTokenizer(c *cli.Context) (tokenizer.Tokenizer, error) {
	if c.NArg() == 0 {
		_, err := oneTarget(c)
		return nil, err
	}
	read, err := readerOf(c)
	if err != nil {
		return nil, err
	}
	arg := c.Args().First()
	if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
		switch strings.ToLower(filepath.Ext(arg)) {
		case ".model":
			read = func(data []byte) (tokenizer.Tokenizer, error) {
				return tokenizer.LoadSentencePiece(data, tokenizer.SentencePieceOptions{})
			}
			fallthrough
		case ".json":
			return loadTokenizer(dirFS(filepath.Dir(arg)), filepath.Base(arg), arg, read)
		}
	}
	tg, err := t.open(c, arg)
	if err != nil {
		return nil, err
	}
	defer tg.Close() //nolint:errcheck // only read from
	var tok tokenizer.Tokenizer
	err = t.openPackage(c.Context, tg, func(pkg *manifest.Package) error {
		file := runner.TokenizerFile(pkg)
		if file == "" {
			return diag.Errorf(diag.In(pkg.Path), diag.NotFound, "no tokenizer.json and no tokenizer.model in the package")
		}
		tok, err = loadTokenizer(pkg.FS, file, file, func(data []byte) (tokenizer.Tokenizer, error) {
			return runner.ReadTokenizer(pkg, read, data)
		})
		return err
	})
	return tok, err
}

// tokenizerReader makes a tokenizer of a tokenizer.json.
type tokenizerReader = func([]byte) (tokenizer.Tokenizer, error)

// tokenizerFlag chooses who reads tokenizer.json.
func tokenizerFlag() cli.Flag {
	return &cli.StringFlag{Name: "tokenizer", Usage: "`READER` of tokenizer.json: go, or hf in builds that have the Rust library", Value: "go"}
}

// readerOf reads --tokenizer.
func readerOf(c *cli.Context) (tokenizerReader, error) {
	switch v := c.String("tokenizer"); v {
	case "", "go":
		return tokenizer.Load, nil
	case "hf":
		if !hf.Available {
			_, err := hf.Load(nil)
			return nil, err
		}
		return hf.Load, nil
	default:
		return nil, usagef("--tokenizer %s: want go or hf", v)
	}
}

// loadTokenizer reads a tokenizer.json; shown is its name in messages.
func loadTokenizer(fsys fs.FS, name, shown string, read tokenizerReader) (tokenizer.Tokenizer, error) {
	info, err := fs.Stat(fsys, name)
	if err != nil {
		return nil, diag.Errorf(diag.In(shown), diag.IO, "%w", err)
	}
	if info.Size() > maxTokenizerFile {
		return nil, diag.Errorf(diag.In(shown), diag.TooLarge, "%d bytes, at most %d are read", info.Size(), maxTokenizerFile)
	}
	data, err := fs.ReadFile(fsys, name)
	if err != nil {
		return nil, diag.Errorf(diag.In(shown), diag.IO, "%w", err)
	}
	if bytes.HasPrefix(data, []byte("version https://git-lfs")) {
		return nil, diag.Errorf(diag.In(shown), diag.LFSPointer, "a Git LFS pointer, not the file itself").WithHint("run \"git lfs pull\" in the repository")
	}
	tok, err := read(data)
	if err != nil {
		var e *diag.Error
		if errors.As(err, &e) {
			return nil, err
		}
		return nil, diag.Errorf(diag.In(shown), diag.Malformed, "%w", err)
	}
	return tok, nil
}
