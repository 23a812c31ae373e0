// What a task's end or a refusal is called in Go: three errors that can be told apart by a value, and three
// types with what is known.

package sluice

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	// ErrBusy says that there is no room for another task of this type now. TrySubmit returns it, and a
	// RefusedError of a rack that has more to do than it can in time is it too. The task did not run.
	ErrBusy = errors.New("sluice: there is no room for another task of this type now: try again after an outcome")
	// ErrTooLong says that a task has more bytes than MaxBytes. The task did not run.
	ErrTooLong = errors.New("sluice: the task is too long: send less, or in several tasks")
	// ErrClosed says that the client is closed, was never connected, or that its socket failed. The task did not
	// run.
	ErrClosed = errors.New("sluice: the client is closed, or its socket failed: connect a new one")
)

var errNoContext = errors.New("sluice: the context is nil: give context.Background() for none")

// RefusedWhy is the word that says why a task certainly did not run; it is the same in all languages.
type RefusedWhy string

// Why a task certainly did not run.
const (
	QueueFull    RefusedWhy = "queue-full"    // the switch's queue was full at each attempt
	NoRoom       RefusedWhy = "no-room"       // the switch had no memory for it
	NoWorkers    RefusedWhy = "no-workers"    // no worker serves its slice
	StaleTokens  RefusedWhy = "stale-tokens"  // the switch had only tokens of workers that are gone
	Unserved     RefusedWhy = "unserved"      // no worker with its labels
	NoSlice      RefusedWhy = "no-slice"      // no slice of the plan takes its type
	Busy         RefusedWhy = "busy"          // more tasks come than can be served in time
	NeverSent    RefusedWhy = "never-sent"    // its deadline passed, or its context ended, before it could be sent
	Late         RefusedWhy = "late"          // its budget was spent before it could begin
	LongBudget   RefusedWhy = "long-budget"   // its budget is more than a packet can tell
	TooLong      RefusedWhy = "too-long"      // it has more bytes than a task may have
	UnknownLabel RefusedWhy = "unknown-label" // it needs a label that the rack does not know
	NoClass      RefusedWhy = "no-class"      // its class is not one of the rack's
)

// RefusedError is a task that certainly did not run: it may be sent again.
type RefusedError struct {
	Why  RefusedWhy
	Text string // why, and what next
	// RetryAfter is the time after which another task has a chance, if Why is Busy.
	RetryAfter time.Duration
	cause      error
}

func (e *RefusedError) Error() string { return fmt.Sprintf("sluice: refused (%s): %s", e.Why, e.Text) }

// Unwrap returns the context's error, if the context ended the task.
func (e *RefusedError) Unwrap() error { return e.cause }

// Is makes a busy rack ErrBusy and a task that is too long ErrTooLong.
func (e *RefusedError) Is(target error) bool {
	return target == ErrBusy && e.Why == Busy || target == ErrTooLong && e.Why == TooLong
}

// UnknownWhy is the word that says why it is not known whether a task ran; it is the same in all languages, but
// for Canceled.
type UnknownWhy string

// Why it is not known whether a task ran.
const (
	Deadline  UnknownWhy = "deadline"   // its deadline passed without an answer
	ReplyGone UnknownWhy = "reply-gone" // it ran, but its reply can no longer be had
	TooOld    UnknownWhy = "too-old"    // a worker may have run it earlier and forgotten it
	Canceled  UnknownWhy = "canceled"   // its context was canceled, or its client closed; only Go knows this word
)

// UnknownError is a task that may have run, or may run still: send it again only if it may run twice.
type UnknownError struct {
	Why   UnknownWhy
	Text  string // why, and what next
	cause error
}

func (e *UnknownError) Error() string { return fmt.Sprintf("sluice: unknown (%s): %s", e.Why, e.Text) }

// Unwrap returns the context's error, if the context ended the task.
func (e *UnknownError) Unwrap() error { return e.cause }

// Is makes a passed deadline context.DeadlineExceeded.
func (e *UnknownError) Is(target error) bool {
	return target == context.DeadlineExceeded && e.Why == Deadline
}

// FailedError is a reply that says that the service failed or panicked. The task ran.
type FailedError struct {
	Text string // what the service says
}

func (e *FailedError) Error() string { return "sluice: the service failed: " + e.Text }

// neverSent is the error of a task whose context ended before it was handed to the library.
func neverSent(cause error) error {
	return &RefusedError{
		Why:   NeverSent,
		Text:  "its context ended before it could be sent, and it did not run: " + cause.Error(),
		cause: cause,
	}
}

// late is the error of a task whose budget was spent while it waited for room.
func late() error {
	text := "its budget was spent before it could be sent: give it a longer one, send less, or start more workers"
	return &RefusedError{Why: Late, Text: text}
}

// mayRun is the error of a task whose context ended after it was handed to the library.
func mayRun(cause error) error {
	if errors.Is(cause, context.DeadlineExceeded) {
		text := "the deadline passed without an answer: send it again if it may run twice, or give it a later deadline"
		return &UnknownError{Why: Deadline, Text: text, cause: cause}
	}
	text := "its context was canceled while it was under way; it may still run: send it again if it may run twice"
	return &UnknownError{Why: Canceled, Text: text, cause: cause}
}
