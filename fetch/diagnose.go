package fetch

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"time"
	"unicode"

	"github.com/anepkg/anepkg/coreml/diag"
)

// maxErrorBody is how much of an error's body is looked at, in bytes.
const maxErrorBody = 4 << 10

// statusError reads what an answer of status 4xx or 5xx says.
func (c *Client) statusError(a *answer) *statusError {
	e := &statusError{status: a.StatusCode, code: a.Header.Get("X-Error-Code"), fromHub: a.Header.Get("X-Error-Code") != "" || sameOrigin(a.Request.URL, c.base)}
	e.message = c.masked(printable(a.Header.Get("X-Error-Message")))
	e.retryAfter = retryAfter(a.Header, time.Now())
	body, _ := io.ReadAll(io.LimitReader(a.body, maxErrorBody))
	e.html = looksHTML(body)
	return e
}

// masked takes the token out of what a server says.
func (c *Client) masked(s string) string {
	if len(c.cfg.Token) < 4 {
		return s
	}
	return strings.ReplaceAll(s, c.cfg.Token, "***")
}

// printable keeps a message of a server to one line without control
// characters.
func printable(s string) string {
	const most = 300
	s = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s)
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "") + "…"
	}
	return strings.TrimSpace(s)
}

// looksHTML reports whether data begins as a web page does.
func looksHTML(data []byte) bool {
	t := bytes.ToLower(bytes.TrimLeft(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), " \t\r\n"))
	for _, start := range []string{"<!doctype html", "<html", "<head", "<body"} {
		if bytes.HasPrefix(t, []byte(start)) {
			return true
		}
	}
	return false
}

// diagnose turns the last error of a request into what the user reads.
func (c *Client) diagnose(s subject, err error, tries int) error {
	var known *diag.Error
	if errors.As(err, &known) {
		return err
	}
	var se *statusError
	if errors.As(err, &se) {
		return c.diagnoseStatus(s, se)
	}
	var be *brokenError
	if errors.As(err, &be) {
		return diagnoseBroken(s, be, tries)
	}
	return c.diagnoseNetwork(s, err, tries)
}

func (c *Client) diagnoseNetwork(s subject, err error, tries int) error {
	host := c.base.Host
	var dns *net.DNSError
	switch {
	case errors.As(err, &dns):
		return fail(diag.IO, ErrUnreachable, "%s: the name %s cannot be resolved: %w", s, dns.Name, err).
			WithHint("check the network connection; with --offline only the cache is used")
	case isTrustError(err):
		return fail(diag.IO, ErrUnreachable, "%s: the certificate of %s is not trusted: %w", s, host, err).
			WithHint("a proxy may stand between; install its certificate in the system")
	case errors.Is(err, errSilent):
		return fail(diag.IO, ErrUnreachable, "%s: %s does not answer, given up after %d tries", s, host, tries).
			WithHint("try again later; HF_HUB_ETAG_TIMEOUT and HF_HUB_DOWNLOAD_TIMEOUT set the patience in seconds")
	}
	return fail(diag.IO, ErrUnreachable, "%s: %s cannot be reached, given up after %d tries: %w", s, host, tries, err).
		WithHint("check the network connection and the proxy settings")
}

func diagnoseBroken(s subject, be *brokenError, tries int) error {
	msg := be.msg
	if tries > 1 {
		msg += ", again and again"
	}
	e := fail(diag.IO, be.kind, "%s: %s", s, msg)
	switch {
	case errors.Is(be.kind, ErrHTML):
		return e.WithHint("a login page of this network may stand between: open the hub in a browser first")
	case errors.Is(be.kind, ErrTruncated):
		return e.WithHint("run the same command again: it continues where this one stopped")
	case errors.Is(be.kind, ErrDigest):
		return e.WithHint("nothing of it was kept; check proxies and HF_ENDPOINT, then fetch again")
	}
	return e.WithHint("fetch again later")
}

// diagnoseStatus maps a status and the hub's error code; see section 6 of the
// hub's protocol: 401 is also sent for repositories that do not exist.
func (c *Client) diagnoseStatus(s subject, se *statusError) error {
	said := ""
	if se.message != "" {
		said = " (the hub says: " + se.message + ")"
	}
	switch {
	case se.code == "GatedRepo":
		return c.diagnoseGated(s, se, said)
	case se.code == "RevisionNotFound":
		return fail(diag.NotFound, ErrRevisionNotFound, "%s has no revision %q", s.ref.Repo, s.ref.Rev()).
			WithHint("name a branch, tag or commit of the repository; main is the default")
	case se.code == "EntryNotFound":
		return fail(diag.NotFound, ErrFileNotFound, "%s has no file %s at revision %q", s.ref.Repo, quoteName(s.file), s.ref.Rev())
	case se.code == "RepoNotFound" || se.status == 401 && se.code == "" && se.fromHub && !strings.Contains(strings.ToLower(se.message), "invalid"):
		return c.diagnoseMissing(s, se)
	case se.status == 401:
		return fail(diag.Auth, ErrBadToken, "%s: the hub does not accept the token%s", s, said).
			WithHint("make a new token on the hub's settings page and set HF_TOKEN")
	case se.status == 403:
		return fail(diag.Auth, ErrBadToken, "%s: access refused%s", s, said).
			WithHint("the token needs the right to read this repository")
	case se.status == 404:
		return fail(diag.NotFound, ErrFileNotFound, "%s: not found on %s", s, c.base.Host)
	case se.status == 429:
		if se.retryAfter > 0 {
			return fail(diag.IO, ErrRateLimited, "%s: the hub limits the rate of requests for %d more seconds", s, int(se.retryAfter/time.Second)).
				WithHint("wait that long; a token raises the limit")
		}
		return fail(diag.IO, ErrRateLimited, "%s: the hub limits the rate of requests", s).WithHint("wait some minutes; a token raises the limit")
	case se.html && se.status < 500:
		return fail(diag.IO, ErrHTML, "%s: a web page of status %d came instead of an answer of the hub", s, se.status).
			WithHint("a login page of this network may stand between: open the hub in a browser first")
	case se.status >= 500 || se.status == 408:
		return fail(diag.IO, ErrServer, "%s: the hub answers with status %d%s", s, se.status, said).WithHint("try again later")
	}
	return fail(diag.IO, ErrServer, "%s: the hub refuses the request with status %d%s", s, se.status, said)
}

// diagnoseGated tells the stages of a gated repository apart.
func (c *Client) diagnoseGated(s subject, se *statusError, said string) error {
	page := c.cfg.Endpoint + "/" + s.ref.Repo
	low := strings.ToLower(se.message)
	switch {
	case strings.Contains(low, "awaiting") || strings.Contains(low, "pending"):
		return fail(diag.Auth, ErrPending, "%s is gated, and the request for access awaits an answer of its owner", s.ref.Repo).WithHint("see %s", page)
	case strings.Contains(low, "rejected") || strings.Contains(low, "denied"):
		return fail(diag.Auth, ErrDenied, "%s is gated, and its owner has refused access", s.ref.Repo).WithHint("see %s", page)
	case se.status == 401 || c.cfg.Token == "":
		return fail(diag.Auth, ErrNoToken, "%s is gated: it needs a token of a user who has accepted its terms", s.ref.Repo).
			WithHint("accept the terms at %s, then set HF_TOKEN or run \"hf auth login\"", page)
	}
	return fail(diag.Auth, ErrNotAccepted, "%s is gated, and the user of this token has not been given access%s", s.ref.Repo, said).
		WithHint("accept the terms at %s", page)
}

// diagnoseMissing is for repositories that the hub does not show. A status of
// 401 leaves open whether a token would help.
func (c *Client) diagnoseMissing(s subject, se *statusError) error {
	switch {
	case se.status == 401 && c.cfg.Token == "":
		return fail(diag.Auth, errors.Join(ErrRepoNotFound, ErrNoToken), "%s does not exist, or is private, and no token was sent", s.ref.Repo).
			WithHint("check the spelling; for a private repository set HF_TOKEN or run \"hf auth login\"")
	case se.status == 401 || se.status == 403:
		return fail(diag.Auth, errors.Join(ErrRepoNotFound, ErrBadToken), "%s does not exist, or the token has no access to it", s.ref.Repo).
			WithHint("check the spelling and the rights of the token")
	}
	return fail(diag.NotFound, ErrRepoNotFound, "repository %s does not exist on %s", s.ref.Repo, c.base.Host).
		WithHint("check the spelling; a private repository needs a token")
}
