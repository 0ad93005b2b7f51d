package fetch

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/anepkg/anepkg/coreml/diag"
)

// Waiting between tries.
const (
	firstWait = 500 * time.Millisecond
	maxStep   = 30 * time.Second
	dialTries = 3 // connections that cannot even be opened
)

// retrier counts the tries of one request or one file.
type retrier struct {
	c      *Client
	about  subject
	tries  int
	dials  int
	waited time.Duration
}

func (c *Client) newRetrier(about subject) *retrier { return &retrier{c: c, about: about} }

// progress starts the count anew: new bytes came.
func (r *retrier) progress() { r.tries, r.dials, r.waited = 0, 0, 0 }

// again returns nil, after waiting, when the request that failed with err
// should be made again, else what to tell the user.
func (r *retrier) again(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	r.tries++
	wait, ok := r.wait(err)
	if !ok || r.tries >= r.c.cfg.Tries {
		return r.c.diagnose(r.about, err, r.tries)
	}
	if r.waited += wait; r.waited > r.c.cfg.MaxWait {
		return r.c.diagnose(r.about, err, r.tries)
	}
	r.c.cfg.Log.Info("trying again", "what", r.about.String(), "try", r.tries+1, "in", wait, "because", err.Error())
	return r.c.cfg.Sleep(ctx, wait)
}

// wait says how long to wait after err, and whether trying again can help.
func (r *retrier) wait(err error) (time.Duration, bool) {
	step := min(firstWait<<min(r.tries-1, 10), maxStep)
	var se *statusError
	if errors.As(err, &se) {
		switch se.status {
		case 408, 429, 500, 502, 503, 504:
			if se.retryAfter > 0 {
				return se.retryAfter, true
			}
			return jitter(step), true
		}
		return 0, false
	}
	var final *diag.Error
	if errors.As(err, &final) {
		return 0, false
	}
	var broken *brokenError
	if errors.As(err, &broken) {
		if broken.progress {
			return 0, true
		}
		return jitter(step), !broken.final
	}
	if isTrustError(err) {
		return 0, false
	}
	var op *net.OpError
	var dns *net.DNSError
	if errors.As(err, &dns) || errors.As(err, &op) && op.Op == "dial" {
		r.dials++
		return jitter(step), r.dials < dialTries
	}
	return jitter(step), true
}

// isTrustError reports a certificate that cannot be trusted.
func isTrustError(err error) bool {
	var unknown x509.UnknownAuthorityError
	var host x509.HostnameError
	var invalid x509.CertificateInvalidError
	var verify *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	return errors.As(err, &unknown) || errors.As(err, &host) || errors.As(err, &invalid) ||
		errors.As(err, &verify) || errors.As(err, &record)
}

// retryAfter reads how long the server wants to be left alone: Retry-After in
// seconds or as a date, or the hub's RateLimit header
// (`"api";r=0;t=55`: nothing remains, new quota in 55 seconds).
func retryAfter(h http.Header, now time.Time) time.Duration {
	const most = 30 * 24 * time.Hour
	for item := range strings.SplitSeq(h.Get("RateLimit"), ",") {
		remains, reset := int64(-1), int64(-1)
		for p := range strings.SplitSeq(item, ";") {
			key, val, _ := strings.Cut(strings.TrimSpace(p), "=")
			n, err := strconv.ParseInt(val, 10, 64)
			if err != nil {
				continue
			}
			switch key {
			case "r":
				remains = n
			case "t":
				reset = n
			}
		}
		if remains == 0 && reset >= 0 {
			return min(time.Duration(min(reset, int64(most/time.Second)))*time.Second+time.Second, most)
		}
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if n, err := strconv.ParseInt(v, 10, 64); err == nil {
		return time.Duration(min(max(n, 0), int64(most/time.Second))) * time.Second
	}
	if t, err := http.ParseTime(v); err == nil {
		return min(max(t.Sub(now), 0), most)
	}
	return 0
}
