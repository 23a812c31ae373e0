// A service: the whole main of a program that the rack's workers run.

package sluice

/*
#include <sluice.h>
#include <stdlib.h>

int sluice_go_run(int argc, char **argv, const uint16_t *types, size_t count, uintptr_t handlers);
*/
import "C"

import (
	"fmt"
	"os"
	"os/signal"
	"runtime/cgo"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

// Exit codes of RunService, beside those of the library.
const (
	exitBroken   = 1
	exitBadInput = 2
)

// Handler runs the tasks of one type, one at a time. It returns the reply's bytes, at most MaxBytes. Its error
// goes to the client as a *FailedError, and so does its panic; the worker serves the next task.
type Handler func(task *Task) ([]byte, error)

// Task is a task, as its handler sees it.
type Task struct {
	Type      Type
	Bytes     []byte // the client's bytes: they may be anything; the handler's own
	Client    uint64 // the client's life, and with Number the task's name: a repeat has the same
	Number    uint32
	PacketMax int // the length of the longest reply that takes no further round trip

	reply C.sluice_reply
}

// Left states how much time the task still needs, for early tokens (--early). It counts only on the handler's own
// goroutine, until the handler returns.
func (t *Task) Left(left time.Duration) { C.sluice_task_left(t.reply, C.uint64_t(nanoseconds(left))) }

// Hold keeps the worker busy for so long after the handler returns: for services that emulate work.
func (t *Task) Hold(span time.Duration) { C.sluice_task_hold(t.reply, C.uint64_t(nanoseconds(span))) }

// RunService runs a worker whose tasks these handlers serve, and returns the exit code: it is the main of a service,
// as in os.Exit(sluice.RunService(handlers)). It reads the flags that all workers share (--controller, --name,
// --slice, ...; --help lists them) from os.Args, so that exec in a plan starts the program. It serves until
// SIGTERM or SIGINT and drains then; a second signal ends the worker at once; SIGHUP has it read its certificates
// again. It ignores SIGPIPE.
func RunService(handlers map[Type]Handler) int { return RunServiceWith(os.Args, handlers) }

// RunServiceWith is RunService with a command line other than os.Args, for a program with flags of its own. The
// first word is the program's name.
func RunServiceWith(args []string, handlers map[Type]Handler) int {
	if len(args) == 0 {
		return badInput("a service needs a command line whose first word is its name: hand it os.Args")
	}
	if len(handlers) == 0 {
		return badInput("a service needs a handler: give RunService one for each type")
	}
	types := make([]C.uint16_t, 0, len(handlers))
	for of, handler := range handlers {
		if handler == nil {
			return badInput(fmt.Sprintf("the handler of type %d is nil: give a function, or leave the type out", of))
		}
		types = append(types, C.uint16_t(of))
	}
	for _, arg := range args {
		if strings.Contains(arg, "\x00") {
			return badInput(fmt.Sprintf("the argument %q has a zero byte, which no command line can have", arg))
		}
	}
	defer forwardSignals()()
	list := cStrings(len(args) + 1)
	defer C.free(unsafe.Pointer(&list[0]))
	for i, arg := range args {
		list[i] = C.CString(arg)
		defer C.free(unsafe.Pointer(list[i]))
	}
	serves := cgo.NewHandle(&serving{handlers: handlers})
	defer serves.Delete()
	return int(C.sluice_go_run(C.int(len(args)), &list[0], &types[0], C.size_t(len(types)), C.uintptr_t(serves)))
}

// forwardSignals tells the library of signals until the function that it returns is called. Handlers of the library
// itself would run on a goroutine's small stack, which Go forbids.
func forwardSignals() (stop func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	// A reader of stderr that has gone is no reason to end: Go must know that too.
	signal.Ignore(syscall.SIGPIPE)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for came := range signals {
			C.sluice_tell_signal(C.int(came.(syscall.Signal)))
		}
	}()
	return func() {
		signal.Stop(signals)
		close(signals)
		<-ended
	}
}

func badInput(why string) int {
	fmt.Fprintln(os.Stderr, why)
	return exitBadInput
}

// serving is what a worker of this process serves.
type serving struct {
	handlers map[Type]Handler
	toldAt   atomic.Int64 // when a panic's stack was last written, in seconds
}

//export sluiceGoServe
func sluiceGoServe(handlers C.uintptr_t, given *C.sluice_task, reply C.sluice_reply) C.int {
	s := cgo.Handle(handlers).Value().(*serving)
	task := &Task{
		Type:      Type(given._type),
		Bytes:     C.GoBytes(unsafe.Pointer(given.bytes), C.int(given.length)),
		Client:    uint64(given.client),
		Number:    uint32(given.number),
		PacketMax: int(given.packet_max),
		reply:     reply,
	}
	bytes, why := s.serve(task)
	if why == "" && len(bytes) > MaxBytes {
		why = fmt.Sprintf("a reply of %d bytes is longer than the %d that one may have", len(bytes), MaxBytes)
	}
	if why != "" {
		text := C.CString(strings.ReplaceAll(why, "\x00", `\0`))
		defer C.free(unsafe.Pointer(text))
		return C.sluice_reply_fail(reply, text)
	}
	return C.int(C.sluice_reply_write(reply, unsafe.Pointer(unsafe.SliceData(bytes)), C.size_t(len(bytes))))
}

// serve runs a task's handler. why is empty unless the task failed.
func (s *serving) serve(task *Task) (bytes []byte, why string) {
	hasReturned := false
	defer func() {
		if hasReturned {
			return
		}
		panicked := recover()
		if panicked == nil {
			// C's frames below cannot be left by runtime.Goexit, and nothing stops it.
			fmt.Fprintln(os.Stderr, "a handler called runtime.Goexit (t.FailNow does): the worker ends; return an error instead")
			os.Exit(exitBroken)
		}
		why = fmt.Sprintf("the service panicked: %v", panicked)
		s.tell(why)
	}()
	bytes, err := s.handlers[task.Type](task)
	if err != nil {
		why = err.Error()
		if why == "" {
			why = "the service failed without a text"
		}
	}
	hasReturned = true
	return bytes, why
}

// tell writes a panic's stack, once a second at most: whoever makes a handler panic must not fill a disk.
func (s *serving) tell(why string) {
	now, before := time.Now().Unix(), s.toldAt.Load()
	if now != before && s.toldAt.CompareAndSwap(before, now) {
		fmt.Fprintf(os.Stderr, "%s\n%s", why, debug.Stack())
	}
}
