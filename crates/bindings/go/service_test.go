// Services as processes: signals, panics, flags, and what a handler may do.

package sluice

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// submits sends a task in a goroutine, and returns where its outcome will be.
func submits(t *testing.T, client *Client, of Type, bytes string) <-chan error {
	ended := make(chan error, 1)
	go func() {
		_, err := client.Submit(within(t, limit), of, []byte(bytes))
		ended <- err
	}()
	return ended
}

// silkworm #1940, wails #2134: a handler of C for a signal ends a Go program.
func TestASignalDrainsAService(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		r := startRack(t, plan, 1)
		client, worker := r.connect(t, Options{}), r.workers[0]
		if _, err := client.Submit(t.Context(), 9, nil); err != nil {
			t.Fatal(err)
		}
		ended := submits(t, client, 102, "200")
		waitFor(t, "the task runs", func() bool { return r.begun() > 0 })
		signalTo(t, worker, signal)
		if err := <-ended; err != nil {
			t.Errorf("%v: the task that ran: %v", signal, err)
		}
		if code := worker.code(t); code != 0 || !strings.Contains(worker.said.String(), "tasks in") {
			t.Errorf("%v: exit code %d:\n%s", signal, code, worker.said)
		}
	}
}

func TestASecondSignalEndsAServiceAtOnce(t *testing.T) {
	r := startRack(t, plan, 1)
	client, worker := r.connect(t, Options{}), r.workers[0]
	go client.Submit(t.Context(), 102, []byte("3600000"))
	waitFor(t, "the task runs", func() bool { return r.begun() > 0 })
	waitFor(t, "the worker ends", func() bool {
		worker.Process.Signal(syscall.SIGTERM) // fails if it has ended by now
		time.Sleep(100 * time.Millisecond)
		return worker.hasEnded()
	})
	if code := worker.code(t); code != 4 {
		t.Errorf("exit code %d:\n%s", code, worker.said)
	}
}

func TestSignalsAtAnyTimeEndNoServiceBadly(t *testing.T) {
	r := startRack(t, plan, 1)
	client, worker := r.connect(t, Options{}), r.workers[0]
	for range 8 {
		ended := submits(t, client, 101, "spin")
		for range 50 {
			signalTo(t, worker, syscall.SIGHUP)
			signalTo(t, worker, syscall.SIGURG)
			time.Sleep(time.Millisecond)
		}
		if err := <-ended; err != nil {
			t.Fatalf("%v\n%s", err, worker.said)
		}
	}
	signalTo(t, worker, syscall.SIGTERM)
	if code := worker.code(t); code != 0 {
		t.Errorf("exit code %d:\n%s", code, worker.said)
	}
	for i := range 8 {
		early := r.startWorker(t, nil)
		time.Sleep(time.Duration(i*i) * time.Millisecond)
		signalTo(t, early, syscall.SIGTERM)
		// Before RunService a signal ends the program, as it does any.
		code, killed := early.code(t), early.ProcessState.Sys().(syscall.WaitStatus).Signaled()
		if code != 0 && !killed || strings.Contains(early.said.String(), "fatal error") {
			t.Errorf("exit code %d:\n%s", code, early.said)
		}
	}
}

func TestAFailureOfAHandlerIsOneOfItsTask(t *testing.T) {
	r := startRack(t, plan, 0)
	worker := r.startWorker(t, []string{"GOGC=1", "GODEBUG=cgocheck=1", "GOMAXPROCS=1"})
	r.waitForWorkers(t, 1)
	client := r.connect(t, Options{})
	replies := map[string]string{"deep": "100000", "collect": "", "goroutines": "", "early": ""}
	for what, text := range replies {
		if reply, err := client.Submit(t.Context(), 101, []byte(what)); err != nil || string(reply.Bytes) != text {
			t.Errorf("%s: %q %v", what, reply.Bytes, err)
		}
	}
	failures := map[string]string{
		"nil error": "panicked", "silent error": "without a text", "zero": `a\0b`, "long error": "xxxx", "bla": "nothing",
	}
	for what, text := range failures {
		var failed *FailedError
		_, err := client.Submit(t.Context(), 101, []byte(what))
		if !errors.As(err, &failed) || !strings.Contains(failed.Text, text) {
			t.Errorf("%s: %v", what, err)
		}
	}
	var group sync.WaitGroup
	for range 500 {
		group.Add(1)
		go func() {
			defer group.Done()
			var failed *FailedError
			if _, err := surely(t.Context(), client, 13, nil); !errors.As(err, &failed) || failed.Text != "the service panicked: as told" {
				t.Error(err)
			}
		}()
	}
	group.Wait()
	if said := worker.said.String(); !strings.Contains(said, "main_test.go") || len(said) > 200_000 {
		t.Errorf("500 panics say %d bytes: %.3000s", len(said), said)
	}
}

func TestAHandlerThatEndsItsGoroutineEndsTheWorker(t *testing.T) {
	r := startRack(t, plan, 1)
	client, worker := r.connect(t, Options{}), r.workers[0]
	ended := submits(t, client, 101, "exit goroutine")
	if code := worker.code(t); code != exitBroken || !strings.Contains(worker.said.String(), "Goexit") {
		t.Errorf("exit code %d:\n%s", code, worker.said)
	}
	client.Close()
	if err := <-ended; err == nil {
		t.Error("nobody answered")
	}
}

func TestAServiceGoesOnWhenNobodyReadsWhatItSays(t *testing.T) {
	r := startRack(t, plan, 0)
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(os.Args[0], "--controller", r.at)
	command.Env = append(os.Environ(), asService+"=1")
	command.Stdout, command.Stderr = writer, writer
	reader.Close()
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { command.Process.Kill(); command.Wait() })
	writer.Close()
	r.waitForWorkers(t, 1)
	client := r.connect(t, Options{})
	for range 3 {
		client.Submit(t.Context(), 13, nil)
		if _, err := client.Submit(t.Context(), 9, nil); err != nil {
			t.Error(err)
		}
	}
}

func TestTheCommandLineIsThatOfAllWorkers(t *testing.T) {
	r := &rack{at: "127.0.0.1:1"}
	cases := []struct {
		flags []string
		code  int
		has   string
	}{
		{[]string{"--help"}, 0, "--drain-limit"},
		{[]string{"--quota", "17"}, 2, "--quota"},
		{[]string{"--nonsense"}, 2, "--nonsense"},
		{[]string{"--cores", "2"}, 2, "leave it out"},
		{[]string{"--listen", "nowhere"}, 2, "nowhere"},
	}
	for _, of := range cases {
		worker := r.startWorker(t, nil, of.flags...)
		if code := worker.code(t); code != of.code || !strings.Contains(worker.said.String(), of.has) {
			t.Errorf("%v: exit code %d: %s", of.flags, code, worker.said)
		}
	}
	none := func(*Task) ([]byte, error) { return nil, nil }
	bad := map[string]int{
		"no arguments": RunServiceWith(nil, map[Type]Handler{1: none}),
		"a zero":       RunServiceWith([]string{"a", "b\x00"}, map[Type]Handler{1: none}),
		"no handlers":  RunServiceWith([]string{"a"}, nil),
		"a nil one":    RunServiceWith([]string{"a"}, map[Type]Handler{1: none, 2: nil}),
	}
	for what, code := range bad {
		if code != exitBadInput {
			t.Errorf("%s: exit code %d", what, code)
		}
	}
}

func TestAServiceRunsTwiceInAProcess(t *testing.T) {
	r := startRack(t, plan, 0)
	client := r.connect(t, Options{})
	for range 2 {
		code := make(chan int)
		go func() { code <- RunServiceWith([]string{"a", "--controller", r.at, "--quiet"}, conformanceService()) }()
		waitFor(t, "it serves", func() bool {
			_, err := client.Submit(t.Context(), 9, nil)
			return err == nil
		})
		syscall.Kill(os.Getpid(), syscall.SIGTERM)
		if code := <-code; code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
}

func TestASummaryIsJSONIfAskedFor(t *testing.T) {
	r := startRack(t, plan, 0)
	worker := r.startWorker(t, nil, "--json", "--quiet")
	r.waitForWorkers(t, 1)
	signalTo(t, worker, syscall.SIGTERM)
	var summary map[string]any
	said := worker.said
	if code := worker.code(t); code != 0 {
		t.Errorf("exit code %d: %s", code, said)
	}
	for _, line := range strings.Split(said.String(), "\n") {
		if strings.HasPrefix(line, "{") {
			if err := json.Unmarshal([]byte(line), &summary); err != nil {
				t.Error(err)
			}
		}
	}
	if summary == nil {
		t.Errorf("there is no summary: %s", said)
	}
}

// A service may be a client of its own rack.
func TestAHandlerSubmitsTasks(t *testing.T) {
	r := startRack(t, plan, 2)
	client := r.connect(t, Options{})
	reply, err := client.Submit(t.Context(), 103, []byte(r.at))
	if err != nil || string(reply.Bytes) != "desserts" {
		t.Errorf("%q %v", reply.Bytes, err)
	}
}

// asked reverses a word by the rack at this address.
func asked(address string) ([]byte, error) {
	client, err := Connect(context.Background(), address, Options{Patience: limit, Deadline: limit})
	if err != nil {
		return nil, err
	}
	defer client.Close()
	reply, err := client.Submit(context.Background(), 9, []byte("stressed"))
	return reply.Bytes, err
}
