package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts hands Ctrl-C to whoever wants it at the moment, such as an
// answer in a chat that is to be stopped while the chat goes on.
type interrupts struct {
	mu   sync.Mutex
	stop context.CancelFunc
}

type interruptsKey struct{}

// interruptsOf returns the interrupts that ctx carries, nil for none.
func interruptsOf(ctx context.Context) *interrupts {
	in, _ := ctx.Value(interruptsKey{}).(*interrupts)
	return in
}

// withInterrupts makes a context that carries in.
func withInterrupts(ctx context.Context, in *interrupts) context.Context {
	return context.WithValue(ctx, interruptsKey{}, in)
}

// scope returns a context that the next interrupt ends, and what ends the
// scope. Without interrupts in ctx they end ctx itself, as everywhere else.
func (in *interrupts) scope(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if in == nil {
		return ctx, cancel
	}
	in.set(cancel)
	return ctx, func() {
		in.set(nil)
		cancel()
	}
}

func (in *interrupts) set(stop context.CancelFunc) {
	in.mu.Lock()
	in.stop = stop
	in.mu.Unlock()
}

// deliver stops what asked for the interrupt; false when nothing did.
func (in *interrupts) deliver() bool {
	in.mu.Lock()
	stop := in.stop
	in.stop = nil
	in.mu.Unlock()
	if stop == nil {
		return false
	}
	stop()
	return true
}

// untilSignal returns a context that ends at the first Ctrl-C that nothing
// asked for, or at SIGTERM; a later signal ends the process at once.
func untilSignal(ctx context.Context) context.Context {
	in := &interrupts{}
	ctx, cancel := context.WithCancel(withInterrupts(ctx, in))
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			if s == os.Interrupt && in.deliver() {
				continue
			}
			cancel()
			signal.Stop(signals)
			return
		}
	}()
	return ctx
}
