// The client against a live rack: contexts, misuse, many goroutines, and its end.

package sluice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestConnectSaysWhyItDoesNot(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close() // it accepts and never answers
	silent := listener.Addr().String()
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	none := func() context.Context { return nil }
	soon := func() context.Context { return within(t, 50*time.Millisecond) }
	always := t.Context
	cases := []struct {
		name    string
		ctx     func() context.Context
		options Options
		has     string
		is      error
	}{
		{"no context", none, Options{}, "context is nil", nil},
		{"canceled", func() context.Context { return canceled }, Options{}, "unreachable", context.Canceled},
		{"deadline", soon, Options{}, "unreachable", context.DeadlineExceeded},
		{"patience", always, Options{Patience: 50 * time.Millisecond}, "unreachable", nil},
		{"unknown option", always, Options{More: map[string]string{"colour": "red"}}, "bad-option", nil},
		{"option with a zero", always, Options{Name: "a\x00b"}, "zero byte", nil},
		{"bad listen", always, Options{Listen: "nowhere"}, "bad-option", nil},
		{"no such file", always, Options{CA: "/nonexistent/ca.pem"}, "/nonexistent/ca.pem", nil},
		{"half an identity", always, Options{Cert: "cert.pem"}, "Cert and Key", nil},
		{"negative patience", always, Options{Patience: -1}, "Patience", nil},
		{"negative deadline", always, Options{Deadline: -1}, "Deadline", nil},
	}
	before := runtime.NumGoroutine()
	for _, of := range cases {
		t.Run(of.name, func(t *testing.T) {
			client, err := Connect(of.ctx(), silent, of.options)
			if client != nil || err == nil || !strings.Contains(err.Error(), of.has) {
				t.Fatalf("%v, %v", client, err)
			}
			if of.is != nil && !errors.Is(err, of.is) {
				t.Errorf("%v is not %v", err, of.is)
			}
		})
	}
	for _, address := range []string{"", "nonsense", "127.0.0.1:0\x00", "127.0.0.1:99999", "a b:1"} {
		if _, err := Connect(t.Context(), address, Options{Patience: 50 * time.Millisecond}); err == nil {
			t.Errorf("it connects with %q", address)
		}
	}
	waitFor(t, "goroutines end", func() bool { return runtime.NumGoroutine() <= before })
	_, err = open(headerABI+1, nil)
	var why *ConnectError
	if !errors.As(err, &why) || why.Why != "other-abi" || !strings.Contains(why.Text, "compile it again") {
		t.Errorf("a program with another header gets %v", err)
	}
}

func TestBadInputIsAnErrorAndNoCrash(t *testing.T) {
	r := startRack(t, plan, 1)
	closed := r.connect(t, Options{})
	closed.Close()
	for name, client := range map[string]*Client{"nil": nil, "zero": {}, "closed": closed} {
		if _, err := client.Submit(t.Context(), 9, nil); err != ErrClosed {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := client.Type("reverse"); err != ErrClosed {
			t.Errorf("%s: %v", name, err)
		}
		if err := errors.Join(client.Close(), client.Close(), client.Shutdown(t.Context())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	client := r.connect(t, Options{Name: "go-client", Listen: "127.0.0.1:0", NoRetry: true,
		Patience: limit, Deadline: limit, More: map[string]string{"waiting": "block"}})
	var none context.Context
	if _, err := client.Submit(none, 9, nil); err != errNoContext {
		t.Error(err)
	}
	if err := client.Shutdown(none); err != errNoContext {
		t.Error(err)
	}
	if _, err := client.Submit(t.Context(), 9, make([]byte, MaxBytes+1)); err != ErrTooLong {
		t.Error(err)
	}
	if _, err := client.Submit(t.Context(), 9, make([]byte, 64<<20)); err != ErrTooLong {
		t.Error(err)
	}
	// miqt #143, gdal #112: the address of an empty slice's first element.
	for _, empty := range [][]byte{nil, {}, make([]byte, 0, 8)} {
		if reply, err := client.Submit(t.Context(), 9, empty); err != nil || reply.Bytes == nil || len(reply.Bytes) > 0 {
			t.Errorf("%v %v", reply, err)
		}
	}
	if of, err := client.Type("reverse"); of != 9 || err != nil {
		t.Errorf("%v %v", of, err)
	}
	for _, name := range []string{"nothing", "", "reverse\x00"} {
		if of, err := client.Type(name); err == nil {
			t.Errorf("%q is %d", name, of)
		}
	}
	if _, err := NewLabels("a\x00b"); err == nil {
		t.Error("a label has a zero byte")
	}
	refusals := map[RefusedWhy]TaskOption{
		LongBudget: Budget(time.Hour), Late: Budget(-1), UnknownLabel: Needing(newLabels(t, "gpu", "ssd")),
	}
	for why, option := range refusals {
		var refused *RefusedError
		if _, err := client.Submit(t.Context(), 9, nil, option); !errors.As(err, &refused) || refused.Why != why {
			t.Errorf("%s: %v", why, err)
		}
	}
	fine := []TaskOption{Class(0), Work(time.Microsecond), Work(-1), Needing(nil), Needing(newLabels(t)), Budget(50 * time.Millisecond), {}}
	// A busy machine may spend the longest budget that a packet can tell.
	waitFor(t, "all options at once", func() bool {
		var refused *RefusedError
		_, err := client.Submit(t.Context(), 9, nil, fine...)
		if errors.As(err, &refused) && refused.Why == Late {
			return false
		}
		if err != nil {
			t.Error(err)
		}
		return true
	})
	if Version() == "" {
		t.Error("the library has no version")
	}
}

func newLabels(t *testing.T, names ...string) *Labels {
	t.Helper()
	labels, err := NewLabels(names...)
	if err != nil {
		t.Fatal(err)
	}
	return labels
}

func TestAReplyTellsWhatTheTaskCost(t *testing.T) {
	r := startRack(t, plan, 1)
	client := r.connect(t, Options{})
	reply, err := client.Submit(t.Context(), 11, []byte("20"))
	if err != nil || reply.Attempts < 1 || reply.Service < 20*time.Millisecond || string(reply.Bytes) != "slept" {
		t.Errorf("%+v %v", reply, err)
	}
}

// go-sqlite3 #745, #488: what was canceled must not touch another task.
func TestAContextEndsItsTaskAndNoOther(t *testing.T) {
	r := startRack(t, plan, 2)
	client := r.connect(t, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	sent := make(chan error, 1)
	go func() {
		_, err := client.Submit(ctx, 102, []byte("1000"))
		sent <- err
	}()
	waitFor(t, "the task runs", func() bool { return r.begun() > 0 })
	cancel()
	var unknown *UnknownError
	if err := <-sent; !errors.As(err, &unknown) || unknown.Why != Canceled || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	var refused *RefusedError
	if _, err := client.Submit(ctx, 9, nil); !errors.As(err, &refused) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	_, err := client.Submit(within(t, time.Second), 11, []byte("3000"))
	if !errors.As(err, &unknown) || unknown.Why != Deadline || !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	var group sync.WaitGroup
	for i := range 400 {
		group.Add(1)
		go func() {
			defer group.Done()
			for j := range 10 {
				ctx, cancel := context.WithCancel(t.Context())
				task := fmt.Sprintf("%d in %d", j, i)
				if rand.IntN(2) == 0 {
					go func() { runtime.Gosched(); cancel() }()
				}
				reply, err := surely(ctx, client, 9, []byte(task))
				if err == nil && string(reply.Bytes) != reversed(task) {
					t.Errorf("%q was answered to %q", reply.Bytes, task)
				}
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		}()
	}
	group.Wait()
	// gocql #468: a canceled task gives back what it held.
	if err := client.Shutdown(within(t, limit)); err != nil || client.under.underWay != 0 {
		t.Errorf("%v, %d under way", err, client.under.underWay)
	}
	if len(client.under.free) != len(client.under.slots) {
		t.Errorf("%d of %d slots are free", len(client.under.free), len(client.under.slots))
	}
}

func (c *Client) isBusy() bool {
	c.under.mu.Lock()
	defer c.under.mu.Unlock()
	return c.under.underWay > 0
}

func reversed(text string) string {
	back := []byte(text)
	for i, j := 0, len(back)-1; i < j; i, j = i+1, j-1 {
		back[i], back[j] = back[j], back[i]
	}
	return string(back)
}

// go #37006, #49057: a call of C that blocks costs a thread.
func TestThousandsOfGoroutinesCostNoThreads(t *testing.T) {
	r := startRack(t, plan, 2)
	client := r.connect(t, Options{Deadline: limit})
	ctx, cancel := context.WithCancel(t.Context())
	var group sync.WaitGroup
	for range 5000 {
		group.Add(1)
		go func() {
			defer group.Done()
			if _, err := surely(ctx, client, 11, []byte("3600000")); !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}()
	}
	waitFor(t, "all wait", func() bool {
		client.under.mu.Lock()
		defer client.under.mu.Unlock()
		return client.under.underWay == 5000
	})
	if threads := entries(t, "task"); threads > 100 {
		t.Errorf("%d threads", threads)
	}
	_, err := client.TrySubmit(ctx, 11, []byte("1000"))
	for until := time.Now().Add(limit); err != ErrBusy && time.Now().Before(until); {
		_, err = client.TrySubmit(within(t, time.Millisecond), 11, []byte("1000"))
	}
	if err != ErrBusy {
		t.Errorf("there is room for one more: %v", err)
	}
	cancel()
	group.Wait()
	client.Close()
}

func TestGoroutinesThatWaitForRoomAllGetTheirTurn(t *testing.T) {
	r := startRack(t, plan, 2)
	client := r.connect(t, Options{})
	var group sync.WaitGroup
	for i := range 3000 {
		group.Add(1)
		go func() {
			defer group.Done()
			task := strconv.Itoa(i)
			if reply, err := surely(within(t, limit), client, 9, []byte(task)); err != nil || string(reply.Bytes) != reversed(task) {
				t.Errorf("%q %v", reply.Bytes, err)
			}
		}()
	}
	group.Wait()
}

// confluent-kafka-go #65, #189, #463 and librdkafka #2333: an end that never comes, and an end beside other calls.
func TestCloseEndsWhatIsUnderWay(t *testing.T) {
	r := startRack(t, plan, 1)
	before, files := runtime.NumGoroutine(), entries(t, "fd")
	client := r.connect(t, Options{})
	var group sync.WaitGroup
	for range 1000 {
		group.Add(1)
		go func() {
			defer group.Done()
			_, err := surely(t.Context(), client, 11, []byte("1000"))
			if !errors.Is(err, ErrClosed) && err != nil {
				t.Error(err)
			}
		}()
	}
	waitFor(t, "tasks are under way", client.isBusy)
	for range 4 {
		group.Add(1)
		go func() { defer group.Done(); client.Close() }()
	}
	group.Wait()
	waitFor(t, "goroutines and files are back", func() bool {
		return runtime.NumGoroutine() <= before && entries(t, "fd") <= files
	})
}

func TestClientsThatComeAndGoLeaveNothing(t *testing.T) {
	r := startRack(t, plan, 1)
	first := r.connect(t, Options{})
	before, files, threads := runtime.NumGoroutine(), entries(t, "fd"), entries(t, "task")
	var group sync.WaitGroup
	for range 8 {
		group.Add(1)
		go func() {
			defer group.Done()
			for range 5 {
				client, err := Connect(t.Context(), r.at, Options{Patience: limit, Deadline: limit})
				if err != nil {
					t.Error(err)
					return
				}
				client.Submit(t.Context(), 9, []byte("x"))
				client.Close()
			}
		}()
	}
	group.Wait()
	waitFor(t, "nothing is left", func() bool {
		return runtime.NumGoroutine() <= before && entries(t, "fd") <= files && entries(t, "task") <= threads+16
	})
	// go-fanotify #5, goagain #28: a file that is closed twice closes another one.
	runtime.GC()
	if _, err := first.Submit(t.Context(), 9, nil); err != nil {
		t.Error(err)
	}
}

func TestShutdownWaitsForOutcomesAsLongAsItMay(t *testing.T) {
	r := startRack(t, plan, 1)
	for turn, patient := range []bool{true, false} {
		client := r.connect(t, Options{})
		task, span := "300", limit
		if !patient {
			task, span = "3600000", time.Millisecond
		}
		ended := submits(t, client, 102, task)
		waitFor(t, "the task runs", func() bool { return r.begun() > turn })
		err := client.Shutdown(within(t, span))
		if told := <-ended; (err == nil) != patient || (told == nil) != patient {
			t.Errorf("patient %v: %v, %v", patient, err, told)
		}
		if _, err := client.Submit(t.Context(), 9, nil); err != ErrClosed {
			t.Error(err)
		}
	}
}

func TestADeadRackIsNoEndlessWait(t *testing.T) {
	r := startRack(t, plan, 1)
	client := r.connect(t, Options{Deadline: 300 * time.Millisecond})
	signalTo(t, r.process, syscall.SIGKILL)
	r.process.code(t)
	var unknown *UnknownError
	var refused *RefusedError
	for range 3 {
		if _, err := client.Submit(t.Context(), 9, nil); !errors.As(err, &unknown) && !errors.As(err, &refused) {
			t.Error(err)
		}
	}
	client.Close()
}

func TestProgramsAreStartedBesideAClient(t *testing.T) {
	inherited := func() int {
		out, err := exec.Command("ls", "/proc/self/fd").Output()
		if err != nil {
			t.Error(err)
		}
		return len(bytes.Fields(out))
	}
	before := inherited()
	r := startRack(t, plan, 1)
	client := r.connect(t, Options{})
	var group sync.WaitGroup
	for range 4 {
		group.Add(2)
		go func() {
			defer group.Done()
			for range 10 {
				if count := inherited(); count > before {
					t.Errorf("%d descriptors went along", count-before)
				}
			}
		}()
		go func() {
			defer group.Done()
			for range 200 {
				if _, err := surely(t.Context(), client, 9, nil); err != nil {
					t.Error(err)
				}
			}
		}()
	}
	group.Wait()
}

// grocksdb #167, #141: what C allocates for a reply is given back.
func TestRepliesLeaveNoMemory(t *testing.T) {
	r := startRack(t, plan, 2)
	client := r.connect(t, Options{})
	task := bytes.Repeat([]byte("x"), 10_000)
	round := func() {
		var group sync.WaitGroup
		for range 50 {
			group.Add(1)
			go func() {
				defer group.Done()
				for range 20 {
					if _, err := surely(t.Context(), client, 9, task); err != nil {
						t.Error(err)
					}
				}
			}()
		}
		group.Wait()
	}
	round()
	before := resident(t)
	for range 4 {
		round()
	}
	if after := resident(t); after > before+30<<20 {
		t.Errorf("%d MiB became %d MiB; the replies had 40 MB", before>>20, after>>20)
	}
}

// resident is how many bytes of this process are in memory.
func resident(t *testing.T) int {
	t.Helper()
	runtime.GC()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := strconv.Atoi(strings.Fields(string(text))[1])
	if err != nil {
		t.Fatal(err)
	}
	return pages * os.Getpagesize()
}
