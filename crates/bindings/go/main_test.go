// A rack for tests: the switch is a process of sluice, workers are processes of this test's own program.

package sluice

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// limit is how long a test waits for what must come.
const limit = 60 * time.Second

// asService makes this program a worker instead of a test.
const asService = "SLUICE_GO_TEST_SERVICE"

func TestMain(m *testing.M) {
	if os.Getenv(asService) != "" {
		os.Exit(RunService(conformanceService()))
	}
	os.Exit(m.Run())
}

// conformanceService is the service of the conformance suite, and beyond 100 what only these tests need.
func conformanceService() map[Type]Handler {
	return map[Type]Handler{
		9: func(task *Task) ([]byte, error) {
			reply := make([]byte, len(task.Bytes))
			for i, b := range task.Bytes {
				reply[len(reply)-1-i] = b
			}
			return reply, nil
		},
		10: func(task *Task) ([]byte, error) { return nil, errors.New("told to fail: " + string(task.Bytes)) },
		11: func(task *Task) ([]byte, error) {
			ms, err := strconv.Atoi(string(task.Bytes))
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return []byte("slept"), err
		},
		12: func(task *Task) ([]byte, error) {
			count, err := strconv.Atoi(string(task.Bytes))
			return bytes.Repeat([]byte("x"), count), err
		},
		13: func(*Task) ([]byte, error) { panic("as told") },
		14: func(*Task) ([]byte, error) { return []byte(strconv.Itoa(os.Getpid())), nil },
		102: func(task *Task) ([]byte, error) {
			fmt.Fprintln(os.Stderr, "it runs")
			ms, err := strconv.Atoi(string(task.Bytes))
			time.Sleep(time.Duration(ms) * time.Millisecond)
			return nil, err
		},
		103: func(task *Task) ([]byte, error) { return asked(string(task.Bytes)) },
		101: func(task *Task) ([]byte, error) { return odd(string(task.Bytes), task) },
	}
}

// odd does what a handler may do too.
func odd(what string, task *Task) ([]byte, error) {
	switch what {
	case "deep":
		return []byte(strconv.Itoa(deep(100_000))), nil
	case "collect":
		runtime.GC()
		return nil, nil
	case "goroutines":
		var group sync.WaitGroup
		for range 100 {
			group.Add(1)
			go func() { defer group.Done(); runtime.Gosched() }()
		}
		group.Wait()
		return nil, nil
	case "spin":
		// Signals are to meet code of Go, on a goroutine's stack.
		for began := time.Now(); time.Since(began) < 50*time.Millisecond; {
		}
		return nil, nil
	case "nil error":
		var none *FailedError
		return nil, none
	case "silent error":
		return nil, errors.New("")
	case "zero":
		return nil, errors.New("a\x00b")
	case "long error":
		return nil, errors.New(strings.Repeat("x", 100_000))
	case "exit goroutine":
		runtime.Goexit()
	case "early":
		task.Left(time.Millisecond)
		task.Hold(time.Microsecond)
		return nil, nil
	}
	return nil, fmt.Errorf("%q is nothing that it knows", what)
}

func deep(depth int) int {
	var room [64]byte
	room[depth%64] = 1
	if depth == 0 {
		return int(room[0]) - 1
	}
	return 1 + deep(depth-1)
}

const plan = `
name = "go"
[types]
reverse = 9
fail = 10
sleep = 11
long = 12
panic = 13
pid = 14
odd = 101
slow = 102
nested = 103
[[slice]]
name = "words"
types = ["reverse", "fail", "sleep", "long", "panic", "pid", "odd", "slow", "nested"]
`

// process is a process that is killed with its test.
type process struct {
	*exec.Cmd
	said  *output
	ended chan struct{}
}

// output is what a process has written so far.
type output struct {
	mu    sync.Mutex
	bytes bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.bytes.String()
}

func start(t testing.TB, command *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: command, said: &output{}, ended: make(chan struct{})}
	command.Stdout, command.Stderr = p.said, p.said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { command.Wait(); close(p.ended) }()
	t.Cleanup(func() { command.Process.Kill(); <-p.ended })
	return p
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// code is the exit code of a process that ends.
func (p *process) code(t testing.TB) int {
	t.Helper()
	select {
	case <-p.ended:
	case <-time.After(limit):
		t.Fatalf("%v does not end:\n%s", p.Args, p.said)
	}
	return p.ProcessState.ExitCode()
}

// sluice is the path of the program; without it a test of a rack is skipped, unless SLUICE names it.
func sluicePath(t testing.TB) string {
	t.Helper()
	if named := os.Getenv("SLUICE"); named != "" {
		return named
	}
	path, err := filepath.Abs("../../../target/debug/sluice")
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Skip("there is no program sluice: build it (cargo build -p sluice-cli), or name it in SLUICE")
	}
	return path
}

// rack is a switch with workers.
type rack struct {
	at      string // the controller's address
	process *process
	workers []*process
}

// startRack starts a switch with this plan, and as many workers.
func startRack(t testing.TB, plan string, workers int, flags ...string) *rack {
	t.Helper()
	path := sluicePath(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "rack.toml")
	if err := os.WriteFile(file, []byte(plan), 0o600); err != nil {
		t.Fatal(err)
	}
	return startSwitch(t, path, file, folder, workers, flags...)
}

func startSwitch(t testing.TB, path, plan, folder string, workers int, flags ...string) *rack {
	t.Helper()
	args := []string{"switch", plan, "--listen", "127.0.0.1:0", "--control", "127.0.0.1:0", "--state", folder}
	r := &rack{process: start(t, exec.Command(path, append(args, flags...)...))}
	waitFor(t, "the switch says where its controller is", func() bool {
		_, behind, _ := strings.Cut(r.process.said.String(), "controller on ")
		at, _, is := strings.Cut(behind, ",")
		if r.at = at; !is && r.process.hasEnded() {
			t.Fatalf("the switch has ended:\n%s", r.process.said)
		}
		return is
	})
	for range workers {
		r.workers = append(r.workers, r.startWorker(t, nil))
	}
	if workers > 0 {
		r.waitForWorkers(t, workers)
	}
	return r
}

// end ends a rack before its test.
func (r *rack) end(t testing.TB) {
	for _, p := range append(r.workers, r.process) {
		p.Process.Kill()
		p.code(t)
	}
}

// startWorker starts a worker, with more environment and flags.
func (r *rack) startWorker(t testing.TB, env []string, flags ...string) *process {
	t.Helper()
	command := exec.Command(os.Args[0], append([]string{"--controller", r.at}, flags...)...)
	command.Env = append(append(os.Environ(), asService+"=1", "GORACE=atexit_sleep_ms=0"), env...)
	return start(t, command)
}

// waitForWorkers waits until so many workers serve tasks.
func (r *rack) waitForWorkers(t testing.TB, count int) {
	t.Helper()
	client := r.connect(t, Options{})
	defer client.Close()
	seen := map[string]bool{}
	waitFor(t, fmt.Sprintf("%d workers serve", count), func() bool {
		reply, err := client.Submit(t.Context(), 14, nil)
		seen[string(reply.Bytes)] = err == nil
		delete(seen, "")
		return len(seen) >= count
	})
}

// begun is how many tasks of the type slow have begun.
func (r *rack) begun() int {
	begun := 0
	for _, worker := range r.workers {
		begun += strings.Count(worker.said.String(), "it runs")
	}
	return begun
}

// connect connects a client. Unless the test says otherwise, it is as patient as a busy machine needs it.
func (r *rack) connect(t testing.TB, options Options) *Client {
	t.Helper()
	if options.Patience == 0 {
		options.Patience = limit
	}
	if options.Deadline == 0 {
		options.Deadline = limit
	}
	client, err := Connect(t.Context(), r.at, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// surely submits a task again as long as the queue is full, since it has certainly not run then: a machine that is too
// slow for the rack's timeouts fills its queues with second attempts.
func surely(ctx context.Context, client *Client, of Type, bytes []byte) (Reply, error) {
	for {
		reply, err := client.Submit(ctx, of, bytes)
		var refused *RefusedError
		if !errors.As(err, &refused) || refused.Why != QueueFull {
			return reply, err
		}
		time.Sleep(time.Millisecond)
	}
}

// waitFor waits for a state.
func waitFor(t testing.TB, what string, is func() bool) {
	t.Helper()
	for until := time.Now().Add(limit); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatalf("it does not come to this: %s", what)
		}
	}
}

// within ends with the test, and at a limit that no passing test reaches.
func within(t testing.TB, span time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), span)
	t.Cleanup(cancel)
	return ctx
}

func signalTo(t testing.TB, p *process, signal syscall.Signal) {
	t.Helper()
	if err := p.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}

// entries is how many entries a folder of /proc/self has: fd or task.
func entries(t testing.TB, folder string) int {
	t.Helper()
	found, err := os.ReadDir("/proc/self/" + folder)
	if err != nil {
		t.Fatal(err)
	}
	return len(found)
}
