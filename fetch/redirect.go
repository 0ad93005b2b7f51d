package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/anepkg/anepkg/coreml/diag"
)

const maxRedirects = 10

// follow sends the call and follows redirects. The token goes to the origin
// of the hub (scheme, host and port) and is gone for good after the first
// other one. A step from https down to http is refused.
func (c *Client) follow(ctx context.Context, k call) (*answer, error) {
	u, err := url.Parse(k.url)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, diag.IO, "%s: not an address", k.about)
	}
	auth := sameOrigin(u, c.base)
	var hub http.Header
	for range maxRedirects {
		resp, body, err := c.roundTrip(ctx, k.method, u, k.header, auth) //nolint:bodyclose // answer.close does it
		if errors.Is(err, errLocation) {
			return nil, diag.Errorf(diag.Pos{}, diag.IO, "%s: %w", k.about, err)
		}
		if err != nil {
			return nil, err
		}
		a := &answer{Response: resp, hub: hub, body: body}
		if auth || hub == nil {
			hub = resp.Header
			a.hub = hub
		}
		where := resp.Header.Get("Location")
		if !isRedirect(resp.StatusCode) || where == "" {
			return a, nil
		}
		next, err := u.Parse(where)
		if err != nil || next.Host == "" || next.Scheme != "http" && next.Scheme != "https" {
			a.close()
			return nil, diag.Errorf(diag.Pos{}, diag.IO, "%s: the server redirects to an address that cannot be used", k.about)
		}
		if k.relativeOnly && isAbsolute(where) {
			a.location = next.String()
			return a, nil
		}
		a.close()
		if u.Scheme == "https" && next.Scheme == "http" {
			return nil, diag.Errorf(diag.Pos{}, diag.IO, "%s: the server redirects from https to http, to %s", k.about, next.Host).
				WithHint("a proxy or login page may stand between; open the hub in a browser")
		}
		auth = auth && sameOrigin(next, c.base)
		c.cfg.Log.Debug("redirect", "from", u.Host, "to", next.Host, "token", auth && c.cfg.Token != "")
		u = next
	}
	return nil, diag.Errorf(diag.Pos{}, diag.IO, "%s: more than %d redirects", k.about, maxRedirects)
}

func isRedirect(status int) bool {
	switch status {
	case 301, 302, 303, 307, 308:
		return true
	}
	return false
}

// isAbsolute tells "https://…" and "//…" from a path on the same host.
func isAbsolute(location string) bool {
	u, err := url.Parse(location)
	return err != nil || u.Host != ""
}

func sameOrigin(a, b *url.URL) bool {
	return strings.EqualFold(a.Scheme, b.Scheme) && strings.EqualFold(a.Hostname(), b.Hostname()) && port(a) == port(b)
}

func port(u *url.URL) string {
	if p := u.Port(); p != "" {
		return p
	}
	if u.Scheme == "https" {
		return "443"
	}
	return "80"
}
