package fetch

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// DefaultEndpoint is the public hub.
const DefaultEndpoint = "https://huggingface.co"

// maxPlainHTTP is the largest file that the hub serves over plain HTTP when
// it is stored with Xet (MAX_HTTP_DOWNLOAD_SIZE of huggingface_hub), in bytes.
const maxPlainHTTP = 50_000_000_000

// Config says where the hub and the cache are and how patient to be. The zero
// value works for downloads into a folder; a cache needs CacheDir.
type Config struct {
	// Endpoint is the address of the hub; "" means DefaultEndpoint.
	Endpoint string
	// Token is sent to the hub and to no other host; "" sends none. It never
	// shows up in errors or logs.
	Token string
	// CacheDir is the hub cache: the folder that holds models--org--name.
	CacheDir string
	// Offline forbids every request.
	Offline bool
	// DisableSymlinks makes the cache hold files instead of links.
	DisableSymlinks bool
	// MetaTimeout bounds the wait for the headers of an answer (10 s).
	MetaTimeout time.Duration
	// StallTimeout bounds the time without a single new byte (10 s).
	StallTimeout time.Duration
	// Tries is how often a request is made before giving up (6). Progress
	// starts the count anew.
	Tries int
	// MaxWait bounds all waiting between two moments of progress (10 min). A
	// server that asks for more is an error at once.
	MaxWait time.Duration
	// Jobs is how many files are fetched at the same time (4).
	Jobs int
	// UserAgent is sent with every request ("anepkg").
	UserAgent string
	// Proxy picks the proxy of a request; nil means none.
	Proxy func(*http.Request) (*url.URL, error)
	// Transport replaces the HTTP transport; Proxy and MetaTimeout then have
	// no effect.
	Transport http.RoundTripper
	// Log gets retries and redirects; nil discards.
	Log *slog.Logger
	// Sleep waits between tries; nil means a timer. Tests replace it.
	Sleep func(ctx context.Context, d time.Duration) error
	// FreeSpace returns the free bytes of the disk that holds dir; nil asks
	// the operating system. Tests replace it.
	FreeSpace func(dir string) (int64, error)
}

// withDefaults fills the blanks and checks the rest.
func (c Config) withDefaults() (Config, error) {
	if c.Endpoint == "" {
		c.Endpoint = DefaultEndpoint
	}
	c.Endpoint = strings.TrimRight(c.Endpoint, "/")
	u, err := url.Parse(c.Endpoint)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return c, diag.Errorf(diag.Pos{}, diag.Usage, "endpoint %q is no http or https address", redactURL(c.Endpoint)).
			WithHint("set HF_ENDPOINT or --endpoint to an address like %s", DefaultEndpoint)
	}
	if c.CacheDir != "" {
		if c.CacheDir, err = filepath.Abs(c.CacheDir); err != nil {
			return c, diag.Errorf(diag.In(c.CacheDir), diag.IO, "%w", err)
		}
	}
	if strings.ContainsAny(c.Token, "\r\n\x00 \t") {
		return c, diag.Errorf(diag.Pos{}, diag.Usage, "the token holds blanks or line ends").WithHint("check HF_TOKEN and the token file")
	}
	c.MetaTimeout = orDefault(c.MetaTimeout, 10*time.Second)
	c.StallTimeout = orDefault(c.StallTimeout, 10*time.Second)
	c.MaxWait = orDefault(c.MaxWait, 10*time.Minute)
	c.Tries = orDefault(c.Tries, 6)
	c.Jobs = min(orDefault(c.Jobs, 4), 64)
	if c.UserAgent == "" {
		c.UserAgent = "anepkg"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Sleep == nil {
		c.Sleep = sleep
	}
	if c.FreeSpace == nil {
		c.FreeSpace = freeSpace
	}
	return c, nil
}

func orDefault[T int | time.Duration](v, def T) T {
	if v <= 0 {
		return def
	}
	return v
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// jitter spreads d over 75 to 125 %, so that many clients do not return at
// the same moment.
func jitter(d time.Duration) time.Duration {
	return d*3/4 + rand.N(d/2+1) //nolint:gosec // nothing secret
}

// redactURL removes the user, password and query of an address: signed
// addresses carry credentials there.
func redactURL(s string) string {
	u, err := url.Parse(s)
	if err != nil {
		return "?"
	}
	u.User, u.RawQuery, u.Fragment = nil, "", ""
	text := u.String()
	if i := strings.LastIndexByte(text, '@'); i >= 0 { // without a scheme the password is no part of its own
		text = text[i+1:]
	}
	return text
}
