// The options of a client, and why it is not connected.

package sluice

import (
	"fmt"
	"maps"
	"slices"
	"time"
)

// Options are a client's. The zero value is a client on this machine.
type Options struct {
	Name     string        // unlike all other clients' (default: one of its own)
	Listen   string        // ADDRESS:PORT at which switch and workers reach it (default: 127.0.0.1:0)
	CA       string        // PEM file of the authority that signed the controller's certificate; turns TLS on
	Cert     string        // PEM file of the client's own certificate
	Key      string        // PEM file of its key
	Patience time.Duration // how long Connect waits at most (default: 5 s)
	Deadline time.Duration // of tasks whose context has none (default: 5 s)
	NoRetry  bool          // never send a task a second time: for work that must not run twice
	// More are options by their names in sluice.h, such as "waiting" or "pin".
	More map[string]string
}

// ConnectError says why a client is not connected.
type ConnectError struct {
	Why   string // a word: unreachable, turned-away, bad-option, other-abi, system, and others
	Text  string // what is wrong, and what next
	cause error
}

func (e *ConnectError) Error() string {
	return fmt.Sprintf("sluice: not connected (%s): %s", e.Why, e.Text)
}

// Unwrap returns the context's or the system's error, if it has one.
func (e *ConnectError) Unwrap() error { return e.cause }

// list is the options as the library takes them.
func (o *Options) list(controller string, patience time.Duration) ([]option, error) {
	list := []option{{"controller", controller}}
	add := func(key, value string) {
		if value != "" {
			list = append(list, option{key, value})
		}
	}
	add("name", o.Name)
	add("listen", o.Listen)
	add("ca", o.CA)
	if o.Cert != "" || o.Key != "" {
		if o.Cert == "" || o.Key == "" {
			return nil, badOption("Cert and Key are given together: the certificate's file, and its key's")
		}
		add("identity", o.Cert+","+o.Key)
	}
	if o.Patience < 0 || o.Deadline < 0 {
		return nil, badOption("Patience and Deadline are times from now: give 0 for the default, or more")
	}
	if patience > 0 {
		add("patience", span(patience))
	}
	if o.Deadline > 0 {
		add("deadline", span(o.Deadline))
	}
	if o.NoRetry {
		add("retry", "off")
	}
	for _, key := range slices.Sorted(maps.Keys(o.More)) {
		list = append(list, option{key, o.More[key]})
	}
	return list, nil
}

func span(of time.Duration) string { return fmt.Sprintf("%dns", of.Nanoseconds()) }

func badOption(text string) error { return &ConnectError{Why: "bad-option", Text: text} }
