// The conformance cases of ../cases, in Go.

package sluice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// words are an act or what is expected: its name, and values by their keys.
type words struct {
	name   string
	values map[string]string
}

func wordsOf(t *testing.T, text string) words {
	t.Helper()
	fields := strings.Fields(text)
	of := words{fields[0], map[string]string{}}
	for _, field := range fields[1:] {
		key, value, is := strings.Cut(field, "=")
		value, err := url.PathUnescape(value)
		if !is || err != nil {
			t.Fatalf("%q is no key=value", field)
		}
		of.values[key] = value
	}
	return of
}

func (w words) number(t *testing.T, key string) int {
	t.Helper()
	text, is := w.values[key]
	if !is {
		return 0
	}
	number, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s=%s: %v", key, text, err)
	}
	return number
}

func (w words) bytes(t *testing.T) []byte {
	if text, is := w.values["text"]; is {
		return []byte(text)
	}
	return bytes.Repeat([]byte("x"), w.number(t, "fill"))
}

// casesRun is the rack on which cases run, and its client.
type casesRun struct {
	*rack
	client *Client
	test   *testing.T // what they end with
	plan   string
}

func TestCases(t *testing.T) {
	folder := os.Getenv("SLUICE_CASES")
	if folder == "" {
		folder = filepath.Join("..", "cases")
	}
	text, err := os.ReadFile(filepath.Join(folder, "cases.txt"))
	if err != nil {
		t.Fatal(err)
	}
	run := &casesRun{test: t, plan: filepath.Join(folder, "rack.toml")}
	held := 0
	for _, line := range strings.Split(string(text), "\n") {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		given, expected, _ := strings.Cut(strings.TrimPrefix(line, "case "), "->")
		name, act, _ := strings.Cut(given, " ")
		held++
		t.Run(name, func(t *testing.T) { run.hold(t, wordsOf(t, act), wordsOf(t, expected)) })
	}
	if held == 0 {
		t.Error("there are no cases")
	}
}

func (r *casesRun) hold(t *testing.T, act, expected words) {
	switch act.name {
	case "rack":
		if r.rack != nil {
			r.client.Close()
			r.end(t)
		}
		flags := []string{}
		if rates, is := act.values["faults"]; is {
			flags = []string{"--faults", rates}
		}
		r.rack = startSwitch(r.test, sluicePath(t), r.plan, r.test.TempDir(), 2, flags...)
		r.client = r.connect(r.test, Options{})
		if expected.name != "ready" {
			t.Errorf("%q is expected", expected.name)
		}
	case "submit":
		for way, submit := range map[string]submitter{"Submit": r.client.Submit, "TrySubmit": r.trySubmit} {
			reply, err := r.submit(t, act, submit)
			if wrong := unlike(t, expected, reply, err); wrong != "" {
				t.Errorf("%s: %s", way, wrong)
			}
		}
	case "burst":
		r.burst(t, act, expected)
	case "close":
		if err := r.client.Close(); err != nil || expected.name != "closed" {
			t.Errorf("it closes with %v, and %q is expected", err, expected.name)
		}
	default:
		t.Errorf("no such act: %q", act.name)
	}
}

type submitter func(context.Context, Type, []byte, ...TaskOption) (Reply, error)

// trySubmit submits without waiting for room, and tries again while there is none.
func (r *casesRun) trySubmit(ctx context.Context, of Type, bytes []byte, options ...TaskOption) (Reply, error) {
	for {
		reply, err := r.client.TrySubmit(ctx, of, bytes, options...)
		if err != ErrBusy {
			return reply, err
		}
		time.Sleep(time.Millisecond)
	}
}

func (r *casesRun) submit(t *testing.T, act words, submit submitter) (Reply, error) {
	t.Helper()
	ctx := t.Context()
	if deadline := act.number(t, "deadline_ns"); deadline > 0 {
		ctx = within(t, time.Duration(deadline))
	}
	var options []TaskOption
	if budget := act.number(t, "budget_ns"); budget > 0 {
		options = append(options, Budget(time.Duration(budget)))
	}
	if label, is := act.values["label"]; is {
		labels, err := NewLabels(label)
		if err != nil {
			t.Fatal(err)
		}
		options = append(options, Needing(labels))
	}
	return submit(ctx, Type(act.number(t, "type")), act.bytes(t), options...)
}

// unlike says how an outcome differs from what is expected.
func unlike(t *testing.T, expected words, reply Reply, err error) string {
	t.Helper()
	var refused *RefusedError
	var unknown *UnknownError
	var failed *FailedError
	name, why := "", ""
	switch {
	case err == nil:
		name = "reply"
		if text, is := expected.values["text"]; is && text != string(reply.Bytes) {
			return fmt.Sprintf("the reply is %q", reply.Bytes)
		}
		if _, is := expected.values["bytes"]; is && expected.number(t, "bytes") != len(reply.Bytes) {
			return fmt.Sprintf("the reply has %d bytes", len(reply.Bytes))
		}
	case errors.As(err, &refused):
		name, why = "refused", string(refused.Why)
	case errors.As(err, &unknown):
		name, why = "unknown", string(unknown.Why)
	case errors.As(err, &failed):
		name = "failed"
		if !strings.Contains(failed.Text, expected.values["has"]) {
			return fmt.Sprintf("its text is %q", failed.Text)
		}
	case errors.Is(err, ErrTooLong):
		name, why = "error", "too-long"
	case errors.Is(err, ErrBusy):
		name, why = "error", "busy"
	case errors.Is(err, ErrClosed):
		name, why = "error", "closed"
	}
	if wants := expected.values["why"] + expected.values["is"]; name != expected.name || why != wants {
		return fmt.Sprintf("%s %s is expected, and it ended with %v", expected.name, wants, err)
	}
	return ""
}

func (r *casesRun) burst(t *testing.T, act, expected words) {
	count, of, fill := act.number(t, "count"), Type(act.number(t, "type")), act.number(t, "fill")
	var killed *process
	if act.values["kill"] == "worker" {
		reply, err := r.client.Submit(t.Context(), 14, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, worker := range r.workers {
			if strconv.Itoa(worker.Process.Pid) == string(reply.Bytes) {
				killed = worker
			}
		}
	}
	var mu sync.Mutex
	var group sync.WaitGroup
	ended, replies, wrong := 0, 0, 0
	errs := map[string]int{}
	for i := range count {
		group.Add(1)
		go func() {
			defer group.Done()
			number := []byte(fmt.Sprintf("%08d", i))
			task := bytes.Repeat(number, fill/len(number)+1)[:fill]
			reply, err := r.client.Submit(t.Context(), of, task)
			mu.Lock()
			defer mu.Unlock()
			if ended++; err == nil {
				replies++
				for at, b := range reply.Bytes {
					if len(reply.Bytes) != len(task) || b != task[len(task)-1-at] {
						wrong++
						break
					}
				}
			} else {
				errs[err.Error()]++
			}
			if killed != nil && ended >= count/3 {
				signalTo(t, killed, syscall.SIGKILL)
				killed = nil
				r.workers = append(r.workers, r.startWorker(r.test, nil))
			}
		}()
	}
	group.Wait()
	if ended != expected.number(t, "count") || wrong > 0 || replies < expected.number(t, "replies_least") {
		t.Errorf("%d ended, %d of them with replies, %d of these wrong; the others: %v", ended, replies, wrong, errs)
	}
}
