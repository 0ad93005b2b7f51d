package fetch

import (
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// maxTokenFile bounds the token file in bytes.
const maxTokenFile = 64 << 10

// ConfigFromEnv reads the settings of huggingface_hub through getenv
// (os.Getenv in a program): HF_ENDPOINT, HF_TOKEN (old
// HUGGING_FACE_HUB_TOKEN), HF_TOKEN_PATH, HF_HOME, XDG_CACHE_HOME,
// HF_HUB_CACHE (old HUGGINGFACE_HUB_CACHE), HF_HUB_OFFLINE,
// TRANSFORMERS_OFFLINE, HF_HUB_ETAG_TIMEOUT, HF_HUB_DOWNLOAD_TIMEOUT,
// HF_HUB_DISABLE_IMPLICIT_TOKEN and HF_HUB_DISABLE_SYMLINKS. home is the
// user's folder. The proxy is that of net/http, which reads HTTPS_PROXY,
// HTTP_PROXY and NO_PROXY of the process. A token file that is absent means
// no token; one that cannot be read is an error of class diag.IO.
func ConfigFromEnv(getenv func(string) string, home string) (Config, error) {
	e := env{get: getenv, home: home}
	hub := e.hubHome()
	c := Config{
		Endpoint:        strings.TrimSpace(getenv("HF_ENDPOINT")),
		CacheDir:        e.path("HF_HUB_CACHE", e.path("HUGGINGFACE_HUB_CACHE", filepath.Join(hub, "hub"))),
		Offline:         isTrue(e.first("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")),
		DisableSymlinks: isTrue(getenv("HF_HUB_DISABLE_SYMLINKS")),
		Proxy:           http.ProxyFromEnvironment,
	}
	var err error
	if c.MetaTimeout, err = e.seconds("HF_HUB_ETAG_TIMEOUT"); err != nil {
		return c, err
	}
	if c.StallTimeout, err = e.seconds("HF_HUB_DOWNLOAD_TIMEOUT"); err != nil {
		return c, err
	}
	if !isTrue(getenv("HF_HUB_DISABLE_IMPLICIT_TOKEN")) {
		c.Token, err = e.token(hub)
	}
	return c, err
}

// TokenSource says where ConfigFromEnv finds the token, without reading it
// out: "HF_TOKEN", the path of the token file, or "" when there is none.
func TokenSource(getenv func(string) string, home string) string {
	e := env{get: getenv, home: home}
	for _, name := range []string{"HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"} {
		if strings.TrimSpace(getenv(name)) != "" {
			return name
		}
	}
	file := e.path("HF_TOKEN_PATH", filepath.Join(e.hubHome(), "token"))
	if info, err := os.Stat(file); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		return file
	}
	return ""
}

type env struct {
	get  func(string) string
	home string
}

func (e env) hubHome() string {
	cache := e.path("XDG_CACHE_HOME", filepath.Join(e.home, ".cache"))
	return e.path("HF_HOME", filepath.Join(cache, "huggingface"))
}

// first is the first variable that is not empty.
func (e env) first(names ...string) string {
	for _, n := range names {
		if v := e.get(n); v != "" {
			return v
		}
	}
	return ""
}

// path expands "~" and variables as huggingface_hub does.
func (e env) path(name, def string) string {
	v := e.get(name)
	if v == "" {
		return def
	}
	if v == "~" || strings.HasPrefix(v, "~/") || strings.HasPrefix(v, `~\`) {
		v = filepath.Join(e.home, v[1:])
	}
	return filepath.Clean(os.Expand(v, func(n string) string {
		if got := e.get(n); got != "" {
			return got
		}
		return "$" + n
	}))
}

func (e env) seconds(name string) (time.Duration, error) {
	v := strings.TrimSpace(e.get(name))
	if v == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 0 || n > 86400 {
		return 0, diag.Errorf(diag.Pos{}, diag.Usage, "%s is %q, want a number of seconds up to 86400", name, v)
	}
	return time.Duration(n) * time.Second, nil
}

func (e env) token(hub string) (string, error) {
	if t := cleanToken(e.first("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")); t != "" {
		return t, nil
	}
	name := e.path("HF_TOKEN_PATH", filepath.Join(hub, "token"))
	f, err := os.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", diag.Errorf(diag.In(name), diag.IO, "token file: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", diag.Errorf(diag.In(name), diag.IO, "token file: %w", err)
	}
	return cleanToken(string(data)), nil
}

func cleanToken(s string) string {
	return strings.TrimSpace(strings.NewReplacer("\r", "", "\n", "").Replace(s))
}

func isTrue(s string) bool {
	switch strings.ToUpper(s) {
	case "1", "ON", "YES", "TRUE":
		return true
	}
	return false
}
