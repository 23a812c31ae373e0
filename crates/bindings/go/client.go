// The client: connect, submit, close.

package sluice

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const (
	patienceDefault = 5 * time.Second
	// How long a call waits behind its context's deadline for what the library knows: whether the task was sent, or
	// why there is no connection.
	grace = 100 * time.Millisecond
)

// Client is connected with a rack. Any number of goroutines may use it at once. Close it.
type Client struct {
	library *library
	under   pending
	room    room

	using    sync.RWMutex // held while the library's client is used: its end waits for that
	isClosed bool         // whether no more tasks are taken
	closing  chan struct{}
	refuse   sync.Once
	end      sync.Once
	endsNow  atomic.Bool // whether Close has ended what was under way
	isReaped chan struct{}
}

// Connect registers a client with the rack whose controller is at this address, and waits for that: until the
// context ends, or for Options.Patience. Several addresses have commas between them.
func Connect(ctx context.Context, controller string, options Options) (*Client, error) {
	if ctx == nil {
		return nil, errNoContext
	}
	if err := ctx.Err(); err != nil {
		return nil, notConnected(controller, err)
	}
	patience := options.Patience
	if until, ok := ctx.Deadline(); ok {
		if patience == 0 {
			patience = patienceDefault
		}
		patience = max(min(patience, time.Until(until)), 1)
	}
	list, err := options.list(controller, patience)
	if err != nil {
		return nil, err
	}
	type opened struct {
		library *library
		err     error
	}
	done := make(chan opened, 1)
	go func() {
		library, err := open(headerABI, list)
		done <- opened{library, err}
	}()
	var got opened
	select {
	case got = <-done:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			select {
			case got = <-done:
			case <-time.After(grace):
			}
		}
	}
	switch {
	case got.library != nil && ctx.Err() == nil:
		return newClient(got.library)
	case got.err != nil:
		var why *ConnectError
		if errors.As(got.err, &why) && why.cause == nil {
			why.cause = ctx.Err()
		}
		return nil, got.err
	}
	go func() {
		if got.library == nil {
			got = <-done
		}
		if got.library != nil {
			got.library.end()
			got.library.free()
		}
	}()
	return nil, notConnected(controller, ctx.Err())
}

func notConnected(controller string, cause error) error {
	text := fmt.Sprintf("the context ended before %s answered: %v", controller, cause)
	return &ConnectError{Why: "unreachable", Text: text, cause: cause}
}

func newClient(library *library) (*Client, error) {
	c := &Client{library: library, closing: make(chan struct{}), isReaped: make(chan struct{})}
	ready, err := library.ready.SyscallConn()
	if err == nil {
		// Fails if Go's poller does not take the descriptor.
		err = library.ready.SetReadDeadline(time.Time{})
	}
	if err != nil {
		library.end()
		library.free()
		return nil, &ConnectError{Why: "system", Text: "Go cannot wait for the queue: " + err.Error(), cause: err}
	}
	go c.reap(ready)
	return c, nil
}

// reap gives outcomes to the goroutines that wait for them, until Close sets a deadline in the past.
func (c *Client) reap(ready syscall.RawConn) {
	defer close(c.isReaped)
	// The function is called whenever the queue may have an outcome; between two calls the goroutine is parked.
	ready.Read(func(uintptr) bool {
		c.takeAll()
		return false
	})
	c.takeAll()
}

func (c *Client) takeAll() {
	for c.library.take(&c.under) > 0 {
		c.room.ended()
	}
}

// Submit has a worker run a task, and waits for its outcome. If there is no room for the task it waits for room.
//
// The context's deadline is the task's: the outcome is there by then. Without one it is Options.Deadline. When the
// context is canceled, Submit returns at once, with an *UnknownError whose cause is context.Canceled: the task
// may still run. If the task was not handed to the library yet the error is a *RefusedError.
func (c *Client) Submit(ctx context.Context, of Type, bytes []byte, options ...TaskOption) (Reply, error) {
	return c.submit(ctx, newTask(of, options), bytes, true)
}

// TrySubmit is Submit, but returns ErrBusy if there is no room for the task now.
func (c *Client) TrySubmit(ctx context.Context, of Type, bytes []byte, options ...TaskOption) (Reply, error) {
	return c.submit(ctx, newTask(of, options), bytes, false)
}

func (c *Client) submit(ctx context.Context, t task, bytes []byte, waits bool) (Reply, error) {
	if c == nil || c.library == nil {
		return Reply{}, ErrClosed
	}
	if ctx == nil {
		return Reply{}, errNoContext
	}
	if len(bytes) > MaxBytes {
		return Reply{}, ErrTooLong
	}
	own := calls.Get().(*call)
	tag := c.under.add(own)
	if err := c.handOver(ctx, tag, &t, bytes, waits); err != nil {
		c.under.drop(tag)
		calls.Put(own)
		return Reply{}, err
	}
	select {
	case <-own.done:
	case <-ctx.Done():
		if !c.endedAnyway(ctx, own, tag) {
			// The call becomes garbage: another task must not get what is still told to this one.
			return Reply{}, mayRun(ctx.Err())
		}
	}
	ended := own.outcome
	own.outcome = outcome{}
	calls.Put(own)
	return ended.reply, c.explain(ended.err)
}

// handOver gives a task to the library, and waits until there is room for it.
func (c *Client) handOver(ctx context.Context, tag uint64, t *task, bytes []byte, waits bool) error {
	err := c.offer(ctx, tag, t, bytes)
	hadTurn := false
	for waits && err == ErrBusy {
		turn := c.room.wait(t.of, hadTurn)
		// What ended before the goroutine was in the queue did not wake it.
		if err = c.offer(ctx, tag, t, bytes); err != ErrBusy {
			c.room.leave(t.of, turn)
			break
		}
		c.room.keepLooking()
		select {
		case <-turn.come:
			hadTurn = true
			err = c.offer(ctx, tag, t, bytes)
		case <-ctx.Done():
			c.room.leave(t.of, turn)
			err = neverSent(ctx.Err())
		case <-c.closing:
			c.room.leave(t.of, turn)
			err = ErrClosed
		}
	}
	if hadTurn {
		c.room.next(t.of)
	}
	return err
}

// offer gives a task to the library if there is room for it.
func (c *Client) offer(ctx context.Context, tag uint64, t *task, bytes []byte) error {
	if err := ctx.Err(); err != nil {
		return neverSent(err)
	}
	deadline := time.Duration(0)
	if until, ok := ctx.Deadline(); ok {
		if deadline = time.Until(until); deadline <= 0 {
			return neverSent(context.DeadlineExceeded)
		}
	}
	budget := t.budget
	if budget > 0 {
		if budget -= time.Since(t.since); budget <= 0 {
			return late()
		}
	}
	c.using.RLock()
	defer c.using.RUnlock()
	if c.isClosed {
		return ErrClosed
	}
	return c.library.submit(tag, t, bytes, deadline, budget)
}

// endedAnyway says whether there is an outcome although the context has ended. At its deadline the library is about
// to tell more than the context does: whether the task was sent.
func (c *Client) endedAnyway(ctx context.Context, own *call, tag uint64) bool {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-own.done:
			return true
		case <-timer.C:
		}
	}
	if c.under.abandon(tag) {
		return false
	}
	<-own.done
	return true
}

// explain names Close as the cause of what ended because of it.
func (c *Client) explain(err error) error {
	if err == nil || !c.endsNow.Load() {
		return err
	}
	switch why := err.(type) {
	case *UnknownError:
		if why.Why == Deadline {
			text := "the client was closed while it was under way; it may still run: send it again if it may run twice"
			return &UnknownError{Why: Canceled, Text: text, cause: ErrClosed}
		}
	case *RefusedError:
		if why.Why == NeverSent {
			return &RefusedError{Why: NeverSent, Text: "the client was closed before it could be sent", cause: ErrClosed}
		}
	}
	return err
}

// Type is the number of a type by its name in the rack's plan.
func (c *Client) Type(name string) (Type, error) {
	if c == nil || c.library == nil {
		return 0, ErrClosed
	}
	c.using.RLock()
	defer c.using.RUnlock()
	if c.isClosed {
		return 0, ErrClosed
	}
	return c.library.typeOf(name)
}

// Shutdown takes no more tasks, waits until each has its outcome or the context ends, and closes the client. It
// returns the context's error if tasks were left; these end as after Close.
func (c *Client) Shutdown(ctx context.Context) error {
	if c == nil || c.library == nil {
		return nil
	}
	if ctx == nil {
		return errNoContext
	}
	c.stop()
	var err error
	select {
	case <-c.under.whenIdle():
	case <-ctx.Done():
		err = ctx.Err()
	}
	c.Close()
	return err
}

// Close ends the client. Tasks that are under way end with an *UnknownError or a *RefusedError whose cause is
// ErrClosed; later ones get ErrClosed. Closing again does nothing.
func (c *Client) Close() error {
	if c == nil || c.library == nil {
		return nil
	}
	c.end.Do(func() {
		c.stop()
		c.endsNow.Store(true)
		c.library.end()
		c.library.ready.SetReadDeadline(time.Unix(1, 0))
		<-c.isReaped
		c.library.free()
	})
	return nil
}

// stop takes no more tasks.
func (c *Client) stop() {
	c.refuse.Do(func() {
		c.using.Lock()
		c.isClosed = true
		c.using.Unlock()
		close(c.closing)
	})
}
