package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/anepkg/anepkg/coreml/backends"
	"github.com/anepkg/anepkg/fetch"
	"github.com/anepkg/anepkg/inspect"
)

const doctorText = `  Looks at the system, the processor and the kernels chosen for it, Core ML,
  memory, disk, the hub's cache, token, endpoint and proxy, the locale and the
  terminal. Nothing is changed. The exit status is 1 when there is a problem.`

// health is how a line of doctor ends.
type health string

const (
	healthy health = "ok"
	warning health = "warning"
	problem health = "problem"
)

// diagnosis is one line of doctor.
type diagnosis struct {
	Name   string `json:"name"`
	Status health `json:"status"`
	Value  string `json:"value"`
	Hint   string `json:"hint,omitempty"`
}

type doctorJSON struct {
	Checks []diagnosis `json:"checks"`
}

func (t *tool) doctorCommand() *cli.Command {
	return &cli.Command{
		Name:        "doctor",
		Usage:       "look at the environment that anepkg runs in",
		Description: doctorText,
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("doctor takes no arguments, got %q", c.Args().First())
			}
			out := doctorJSON{t.examine(c.Context)}
			bad := false
			for _, d := range out.Checks {
				bad = bad || d.Status == problem
			}
			if t.global.json {
				t.writeJSON("anepkg.doctor/1", out)
			} else {
				t.doctorReport(out.Checks)
			}
			if bad {
				return errFindings
			}
			return nil
		},
	}
}

func (t *tool) doctorReport(checks []diagnosis) {
	st := t.style(t.stdoutTTY)
	paint := map[health]func(string) string{healthy: st.green, warning: st.yellow, problem: st.red}
	tb := table{}
	for _, d := range checks {
		tb.row(cell{string(d.Status), paint[d.Status]}, cell{d.Name, st.bold}, d.Value)
		if d.Hint != "" {
			tb.row("", "", cell{"hint: " + d.Hint, st.dim})
		}
	}
	tb.write(t.stdout)
}

// examine makes every diagnosis, in the order of the report.
func (t *tool) examine(ctx context.Context) []diagnosis {
	cpu := backends.CPU()
	if name := chipName(); name != "" {
		cpu.Model = name
	}
	out := []diagnosis{
		{Name: "system", Status: healthy, Value: systemName()},
		{Name: "architecture", Status: healthy, Value: runtime.GOOS + "/" + runtime.GOARCH},
		{Name: "processor", Status: healthy, Value: fmt.Sprintf("%s, %s", cpu.Model, plural(runtime.NumCPU(), "thread"))},
		{Name: "kernels", Status: healthy, Value: cpu.Kernels + featureList(cpu.Features)},
		memoryDiagnosis(),
	}
	if cpu.Kernels == "portable" {
		out[3].Status, out[3].Hint = warning, "the CPU engine is several times faster on a processor with AVX2, FMA and F16C, in a build without the noasm tag"
	}
	if translated() {
		out[1].Status, out[1].Hint = warning, "this binary runs under Rosetta: use the arm64 build"
	}
	out = append(out, t.coreMLDiagnoses(ctx)...)
	if client, err := t.hub(); err != nil {
		out = append(out, diagnosis{"hub endpoint", problem, err.Error(), "correct the HF_ variables of the environment, or --endpoint"})
	} else {
		out = append(out, cacheDiagnoses(client.CacheDir())...)
		out = append(out, endpointDiagnosis(ctx, client.Endpoint(), client.Offline()))
	}
	out = append(out, t.tokenDiagnosis(), t.proxyDiagnosis())
	return append(out, t.localeDiagnosis(), t.terminalDiagnosis())
}

func featureList(f []string) string {
	if len(f) == 0 {
		return ""
	}
	return " (" + strings.Join(f, " ") + ")"
}

func memoryDiagnosis() diagnosis {
	n := totalMemory()
	d := diagnosis{Name: "memory", Status: healthy, Value: inspect.Bytes(n)}
	switch {
	case n == 0:
		d.Value = "unknown"
	case n < 4<<30:
		d.Status, d.Hint = warning, "the weights of a package should fit beside the system; small packages only"
	}
	return d
}

func cacheDiagnoses(dir string) []diagnosis {
	cache := diagnosis{Name: "hub cache", Status: healthy, Value: dir}
	at := dir
	info, err := os.Stat(dir)
	switch {
	case err == nil && !info.IsDir():
		cache.Status, cache.Hint = problem, "it is a file: remove it or name another folder with --cache-dir"
	case err == nil:
		if f, err := os.CreateTemp(dir, ".anepkg-doctor-*"); err != nil {
			cache.Status, cache.Hint = problem, "it cannot be written: change its permissions or name another folder with --cache-dir"
		} else {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	default:
		cache.Value += " (not there yet)"
		at = nearestFolder(dir) // that it will be made in
	}
	disk := diagnosis{Name: "free disk", Status: healthy}
	free, err := fetch.FreeSpace(at)
	switch {
	case err != nil:
		disk.Status, disk.Value = warning, "unknown: "+err.Error()
	case free < 1<<30:
		disk.Status, disk.Hint = problem, "make room: packages take one to ten gigabytes"
	case free < 10<<30:
		disk.Status, disk.Hint = warning, "packages take one to ten gigabytes"
	}
	if err == nil {
		disk.Value = inspect.Bytes(free) + " at " + at
	}
	return []diagnosis{cache, disk}
}

// tokenDiagnosis tells whether a token is set, never which.
func (t *tool) tokenDiagnosis() diagnosis {
	d := diagnosis{Name: "hub token", Status: healthy}
	switch source := fetch.TokenSource(t.getenv, t.home()); {
	case t.global.token != "":
		d.Value = "given by --token"
	case source == "":
		d.Value = "none: public repositories only"
	case strings.ContainsAny(source, `/\`):
		d.Value = "in " + source
	default:
		d.Value = "set in " + source
	}
	return d
}

// endpointTimeout bounds the question whether the hub answers.
const endpointTimeout = 5 * time.Second

func endpointDiagnosis(ctx context.Context, end string, offline bool) diagnosis {
	d := diagnosis{Name: "hub endpoint", Status: healthy, Value: withoutPassword(end)}
	if offline {
		d.Value += " (offline: not asked)"
		return d
	}
	ctx, cancel := context.WithTimeout(ctx, endpointTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, end, nil)
	if err != nil {
		d.Status, d.Hint = problem, "it is no web address: correct HF_ENDPOINT or --endpoint"
		return d
	}
	start := time.Now()
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.Status, d.Hint = warning, "it does not answer: check the network and the proxy; local packages need neither"
		return d
	}
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1))
	_ = resp.Body.Close()
	d.Value += fmt.Sprintf(" answers %d in %s", resp.StatusCode, seconds(time.Since(start).Seconds()))
	if resp.StatusCode >= 500 {
		d.Status, d.Hint = warning, "the server has trouble: try later"
	}
	return d
}

// withoutPassword hides the credentials in a web address.
func withoutPassword(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.User == nil {
		return s
	}
	u.User = url.User("...")
	return u.String()
}

func (t *tool) proxyDiagnosis() diagnosis {
	d := diagnosis{Name: "proxy", Status: healthy, Value: "none"}
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "HTTP_PROXY", "http_proxy"} {
		if v := t.getenv(name); v != "" {
			d.Value = name + "=" + withoutPassword(v)
			if _, err := url.Parse(v); err != nil {
				d.Status, d.Hint = warning, name+" is no web address"
			}
			break
		}
	}
	return d
}

func (t *tool) localeDiagnosis() diagnosis {
	d := diagnosis{Name: "locale", Status: healthy}
	if runtime.GOOS == "windows" {
		d.Value = "Windows"
		return d
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if d.Value = t.getenv(name); d.Value != "" {
			break
		}
	}
	up := strings.ToUpper(d.Value)
	if !strings.Contains(up, "UTF-8") && !strings.Contains(up, "UTF8") {
		d.Status, d.Hint = warning, "generated text is UTF-8: set LANG to a UTF-8 locale such as C.UTF-8"
	}
	if d.Value == "" {
		d.Value = "not set"
	}
	return d
}

func (t *tool) terminalDiagnosis() diagnosis {
	d := diagnosis{Name: "terminal", Status: healthy, Value: "no: plain text, no colour, no progress bars"}
	if t.stdoutTTY {
		d.Value = "yes, with colour"
		if t.global.noColor || t.getenv("NO_COLOR") != "" {
			d.Value = "yes, without colour"
		}
	}
	return d
}
