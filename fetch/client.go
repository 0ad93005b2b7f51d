package fetch

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Client talks to one hub and one cache. Its methods may be called
// concurrently.
type Client struct {
	cfg  Config
	base *url.URL // of the hub
	http *http.Client

	requests atomic.Int64 // sent, redirects included
	received atomic.Int64 // bytes of bodies
}

// New makes a client. Errors: diag.Usage for an endpoint or token that cannot
// be right.
func New(cfg Config) (*Client, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	base, err := url.Parse(cfg.Endpoint)
	if err != nil {
		return nil, diag.Errorf(diag.Pos{}, diag.Usage, "endpoint is no address")
	}
	rt := cfg.Transport
	if rt == nil {
		rt = &http.Transport{
			Proxy:               cfg.Proxy,
			DisableCompression:  true,
			ForceAttemptHTTP2:   true,
			MaxIdleConnsPerHost: cfg.Jobs + 4,
			IdleConnTimeout:     60 * time.Second,
			TLSHandshakeTimeout: cfg.MetaTimeout,
			ReadBufferSize:      64 << 10,
		}
	}
	return &Client{cfg: cfg, base: base, http: &http.Client{
		Transport:     rt,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Endpoint returns the address of the hub.
func (c *Client) Endpoint() string { return c.cfg.Endpoint }

// CacheDir returns the absolute path of the cache, "" without one.
func (c *Client) CacheDir() string { return c.cfg.CacheDir }

// Offline reports whether the client may make requests.
func (c *Client) Offline() bool { return c.cfg.Offline }

// Traffic counts what went over the network.
type Traffic struct {
	Requests int64 // redirects included
	Bytes    int64 // received in bodies
}

// Traffic returns the sum since New.
func (c *Client) Traffic() Traffic {
	return Traffic{Requests: c.requests.Load(), Bytes: c.received.Load()}
}

// call is one request, made until it succeeds or cannot.
type call struct {
	method string
	url    string
	header http.Header
	// relativeOnly stops at the first redirect to an absolute address, as a
	// HEAD for the metadata of a file has to.
	relativeOnly bool
	about        subject // for messages
}

// answer is a response after redirects. Its body must be closed.
type answer struct {
	*http.Response
	// hub holds the X-… headers and ETag of the last answer that the hub
	// itself gave; a storage server's own ETag says nothing about content.
	hub http.Header
	// location is where a redirect that was not followed points to.
	location string
	body     *guardedBody
}

// do makes the call, again and again as the configuration allows, and returns
// an answer of status 2xx or, with relativeOnly, 3xx.
func (c *Client) do(ctx context.Context, k call) (*answer, error) {
	r := c.newRetrier(k.about)
	for {
		a, err := c.once(ctx, k)
		if err == nil {
			return a, nil
		}
		if err := r.again(ctx, err); err != nil {
			return nil, err
		}
	}
}

// once makes the call a single time. Errors of the server are *statusError.
func (c *Client) once(ctx context.Context, k call) (*answer, error) {
	if c.cfg.Offline {
		return nil, errOffline(k.about)
	}
	a, err := c.follow(ctx, k)
	if err != nil {
		return nil, err
	}
	if a.StatusCode >= 200 && a.StatusCode < 300 || a.location != "" {
		return a, nil
	}
	defer a.close()
	return nil, c.statusError(a)
}

func (a *answer) close() { _ = a.body.Close() }

// roundTrip sends one request and guards its answer against silence.
func (c *Client) roundTrip(ctx context.Context, method string, u *url.URL, h http.Header, auth bool) (*http.Response, *guardedBody, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	req, err := http.NewRequestWithContext(ctx, method, u.String(), nil)
	if err != nil {
		cancel(nil)
		return nil, nil, err
	}
	for k, v := range h {
		req.Header[k] = v
	}
	req.Header.Set("Accept-Encoding", "identity")
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	if auth && c.cfg.Token != "" {
		req.Header.Set("Authorization", "Bearer "+c.cfg.Token)
	}
	timer := time.AfterFunc(c.cfg.MetaTimeout, func() { cancel(errSilent) })
	c.requests.Add(1)
	resp, err := c.http.Do(req)
	if err != nil {
		timer.Stop()
		if cause := context.Cause(ctx); errors.Is(cause, errSilent) {
			err = cause
		}
		cancel(nil)
		return nil, nil, withoutURL(err)
	}
	timer.Stop()
	return resp, &guardedBody{rc: resp.Body, cause: func() error { return context.Cause(ctx) }, cancel: cancel, timer: timer, limit: c.cfg.StallTimeout, count: &c.received}, nil
}

// errLocation: a redirect has no address that can be read.
var errLocation = errors.New("the server redirects to an address that cannot be used")

// withoutURL takes the address out of an error of net/http: it may be signed.
func withoutURL(err error) error {
	var ue *url.Error
	if errors.As(err, &ue) {
		if strings.Contains(ue.Err.Error(), "Location header") {
			return errLocation
		}
		return ue.Err
	}
	return err
}
