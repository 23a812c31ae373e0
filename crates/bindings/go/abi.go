// All calls of the C library but those of services: its handles, statuses and structs stay in here.

package sluice

/*
#cgo pkg-config: sluice
#cgo noescape sluice_queue_try_submit
#cgo nocallback sluice_queue_try_submit
#cgo nocallback sluice_go_take

#include <stdlib.h>
#include <sluice.h>

// Gives back the outcomes that were taken before and takes others, in one call from Go.
static size_t sluice_go_take(sluice_queue queue, sluice_outcome *outcomes, size_t before, size_t most) {
  size_t count = 0;
  for (size_t i = 0; i < before; i++) sluice_outcome_free(&outcomes[i]);
  sluice_queue_take(queue, outcomes, most, &count);
  return count;
}
*/
import "C"

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// MaxBytes is the length of the longest task and of the longest reply.
const MaxBytes = C.SLUICE_BYTES_MAX

const (
	batchMax = 128 // outcomes that are taken in one call
	lineMax  = 512 // bytes of a line about an outcome
)

// headerABI is the version of the header that this package was compiled with.
const headerABI = uint32(C.SLUICE_ABI)

// library is a client of the C library, and its queue of outcomes. Only the reaper uses what is below reaped.
type library struct {
	client C.sluice_client
	queue  C.sluice_queue
	ready  *os.File // readable while the queue has an outcome; closing it leaves the queue's descriptor open

	reaped *C.sluice_outcome // room for a batch, in C's memory
	held   C.size_t          // how many of them are to be given back
	line   *C.char           // room for a line
	tags   [batchMax]uint64
	calls  [batchMax]*call
}

// option is a key and a value of sluice_options_set.
type option struct{ key, value string }

// open registers a client with these options, and waits for that.
func open(abi uint32, options []option) (*library, error) {
	// The library keeps its last error for each thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var set C.sluice_options
	if status := C.sluice_options_new_of(C.uint32_t(abi), &set); status != C.SLUICE_OK {
		return nil, connectError(status)
	}
	defer C.sluice_options_free(set)
	for _, o := range options {
		if strings.Contains(o.key+o.value, "\x00") {
			return nil, badOption(fmt.Sprintf("option %q: %q has a zero byte: leave it out", o.key, o.value))
		}
		key, value := C.CString(o.key), C.CString(o.value)
		status := C.sluice_options_set(set, key, value)
		C.free(unsafe.Pointer(key))
		C.free(unsafe.Pointer(value))
		if status != C.SLUICE_OK {
			return nil, connectError(status)
		}
	}
	l := &library{}
	if status := C.sluice_queue_new_of(C.uint32_t(abi), &l.queue); status != C.SLUICE_OK {
		return nil, connectError(status)
	}
	if err := l.watch(); err != nil {
		C.sluice_queue_free(l.queue)
		return nil, err
	}
	if status := C.sluice_client_connect(set, &l.client); status != C.SLUICE_OK {
		err := connectError(status)
		l.free()
		return nil, err
	}
	return l, nil
}

// watch hands a duplicate of the queue's descriptor to Go's poller.
func (l *library) watch() error {
	var fd C.int
	if status := C.sluice_queue_fd(l.queue, &fd); status != C.SLUICE_OK {
		return connectError(status)
	}
	own, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_DUPFD_CLOEXEC, 0)
	if errno != 0 {
		text := "cannot duplicate a descriptor: " + errno.Error() + "; close some, or raise the limit (ulimit -n)"
		return &ConnectError{Why: "system", Text: text, cause: errno}
	}
	l.ready = os.NewFile(own, "sluice-queue")
	l.reaped = (*C.sluice_outcome)(C.calloc(batchMax, C.sizeof_sluice_outcome))
	l.line = (*C.char)(C.malloc(lineMax))
	return nil
}

// submit hands a task to the library without waiting. It returns ErrBusy if there is no room for it now.
func (l *library) submit(tag uint64, t *task, bytes []byte, deadline, budget time.Duration) error {
	spec := C.sluice_spec{
		_type:       C.uint16_t(t.of),
		urgency_is:  C.uint16_t(t.urgencyIs),
		urgency:     C.uint64_t(t.urgency),
		deadline_ns: C.uint64_t(deadline),
		budget_ns:   C.uint64_t(budget),
	}
	if t.labels != nil {
		spec.labels = t.labels.handle
	}
	// The library keeps its last error for each thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	status := C.sluice_queue_try_submit(l.client, l.queue, C.uint64_t(tag), &spec,
		unsafe.Pointer(unsafe.SliceData(bytes)), C.size_t(len(bytes)))
	runtime.KeepAlive(t.labels)
	switch status {
	case C.SLUICE_OK:
		return nil
	case C.SLUICE_BUSY:
		return ErrBusy
	case C.SLUICE_CLOSED:
		return ErrClosed
	case C.SLUICE_TOO_LONG:
		return ErrTooLong
	}
	return errors.New("sluice: the task was not taken: " + C.GoString(C.sluice_last_error()))
}

// take gives the outcomes that are there, at most a batch, to the calls that wait for them, and returns how many
// there were.
func (l *library) take(under *pending) int {
	count := int(C.sluice_go_take(l.queue, l.reaped, l.held, batchMax))
	l.held = C.size_t(count)
	ended := unsafe.Slice(l.reaped, count)
	for i := range ended {
		l.tags[i] = uint64(ended[i].tag)
	}
	under.end(l.tags[:count], l.calls[:count])
	for i, c := range l.calls[:count] {
		if c != nil {
			c.outcome = l.outcome(&ended[i])
			c.done <- struct{}{}
			l.calls[i] = nil
		}
	}
	return count
}

// outcome copies an outcome into Go's memory.
func (l *library) outcome(o *C.sluice_outcome) outcome {
	reply := Reply{
		Worker:     uint32(o.worker),
		Attempts:   int(o.attempts),
		SwitchWait: time.Duration(o.switch_wait_ns),
		WorkerWait: time.Duration(o.worker_wait_ns),
		Service:    time.Duration(o.service_ns),
	}
	switch o.kind {
	case C.SLUICE_KIND_REPLY:
		reply.Bytes = make([]byte, int(o.length))
		copy(reply.Bytes, unsafe.Slice((*byte)(o.bytes), int(o.length)))
		return outcome{reply, nil}
	case C.SLUICE_KIND_FAILED:
		text := string(unsafe.Slice((*byte)(o.bytes), int(o.length)))
		return outcome{reply, &FailedError{Text: text}}
	}
	why, text := whyWord(int(o.why)), l.text(o)
	if o.kind == C.SLUICE_KIND_REFUSED {
		again := time.Duration(o.retry_after_ns)
		return outcome{reply, &RefusedError{Why: RefusedWhy(why), Text: text, RetryAfter: again}}
	}
	return outcome{reply, &UnknownError{Why: UnknownWhy(why), Text: text}}
}

// whyWord is the word of a sluice_why.
func whyWord(why int) string { return C.GoString(C.sluice_why_text(C.int(why))) }

// text is the library's line about an outcome.
func (l *library) text(o *C.sluice_outcome) string {
	C.sluice_outcome_text(o, l.line, lineMax)
	return C.GoString(l.line)
}

// end ends the client at once: its tasks end as unknown, in the queue.
func (l *library) end() { C.sluice_client_free(l.client) }

// free gives everything back but the client. Nobody may use the library after.
func (l *library) free() {
	for i := range unsafe.Slice(l.reaped, int(l.held)) {
		C.sluice_outcome_free(&unsafe.Slice(l.reaped, batchMax)[i])
	}
	C.sluice_queue_free(l.queue)
	C.free(unsafe.Pointer(l.reaped))
	C.free(unsafe.Pointer(l.line))
	l.ready.Close()
}

// typeOf is the number of a type by its name in the rack's plan.
func (l *library) typeOf(name string) (Type, error) {
	if strings.Contains(name, "\x00") {
		return 0, fmt.Errorf("sluice: no type is called %q: a name has no zero byte", name)
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	var of C.uint16_t
	if status := C.sluice_client_type(l.client, text, &of); status != C.SLUICE_OK {
		return 0, errors.New("sluice: " + C.GoString(C.sluice_last_error()))
	}
	return Type(of), nil
}

// connectError says why a call of this thread did not work. The thread must be locked since before the call.
func connectError(status C.sluice_status) error {
	why := C.GoString(C.sluice_status_text(C.int(status)))
	return &ConnectError{Why: why, Text: C.GoString(C.sluice_last_error())}
}

// Labels are what a worker must have to run a task, by their names in the rack's plan.
type Labels struct{ handle C.sluice_labels }

// NewLabels makes labels, once for all tasks that need them. The library frees them when Go has no use for them
// any more.
func NewLabels(names ...string) (*Labels, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// An array with one more than needed: C's NULL is no array.
	list := cStrings(len(names) + 1)
	defer C.free(unsafe.Pointer(&list[0]))
	for i, name := range names {
		if strings.Contains(name, "\x00") {
			return nil, fmt.Errorf("sluice: no label is called %q: a name has no zero byte", name)
		}
		list[i] = C.CString(name)
		defer C.free(unsafe.Pointer(list[i]))
	}
	labels := &Labels{}
	if status := C.sluice_labels_new(&list[0], C.size_t(len(names)), &labels.handle); status != C.SLUICE_OK {
		return nil, errors.New("sluice: " + C.GoString(C.sluice_last_error()))
	}
	runtime.AddCleanup(labels, func(handle C.sluice_labels) { C.sluice_labels_free(handle) }, labels.handle)
	return labels, nil
}

// cStrings is room for so many strings, in C's memory.
func cStrings(count int) []*C.char {
	room := C.calloc(C.size_t(count), C.size_t(unsafe.Sizeof((*C.char)(nil))))
	return unsafe.Slice((**C.char)(room), count)
}

// Version is the library's version.
func Version() string { return C.GoString(C.sluice_version()) }
