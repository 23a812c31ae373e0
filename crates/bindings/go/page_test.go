// docs/manual/go.md: each snippet stands in an example, and each command is run.

package sluice

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const root = "../../.."

// blocks are the code blocks of the page in this language.
func blocks(t *testing.T, language string) []string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/manual/go.md"))
	if err != nil {
		t.Skip("the manual is not here: ", err)
	}
	var found []string
	for _, behind := range strings.Split(string(page), "```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(behind, "```")
		found = append(found, block)
	}
	if len(found) == 0 {
		t.Fatalf("the page has no block in %s", language)
	}
	return found
}

func TestEachSnippetOfThePageStandsInAnExample(t *testing.T) {
	files, err := filepath.Glob("examples/*/main.go")
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, file := range append(files, "example_test.go") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(text)
	}
	for _, block := range blocks(t, "go") {
		if !strings.Contains(all.String(), block) {
			t.Errorf("no example has this:\n%s", block)
		}
	}
}

func TestTheCommandsOfThePageDoWhatItSays(t *testing.T) {
	sluice := sluicePath(t)
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	lines := blocks(t, "sh")
	// The first two blocks name folders of the reader's; scripts/test-go sets the same variables.
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "go mod edit ") || !strings.HasPrefix(lines[1], "export ") {
		t.Fatalf("the page has other blocks than this test runs: %q", lines)
	}
	useInAModuleOfItsOwn(t, strings.ReplaceAll(lines[0], "/path/to/sluice", absolute))
	var r *rack
	for _, line := range strings.Split(strings.TrimSpace(lines[2]), "\n") {
		line, comment, _ := strings.Cut(line, "#")
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "sluice switch "):
			plan := filepath.Join(root, strings.Fields(line)[2])
			r = startSwitch(t, sluice, plan, t.TempDir(), 0)
		case strings.HasSuffix(line, "&"):
			words := strings.Fields(strings.ReplaceAll(strings.TrimSuffix(line, "&"), "127.0.0.1:7400", r.at))
			start(t, inRoot(exec.Command(words[0], words[1:]...)))
		case r == nil:
			if said, err := inRoot(exec.Command("bash", "-ec", line)).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, said)
			}
		default:
			var said []byte
			words := strings.Fields(strings.ReplaceAll(line, "127.0.0.1:7400", r.at))
			waitFor(t, line, func() bool {
				said, err = inRoot(exec.Command(words[0], words[1:]...)).CombinedOutput()
				return err == nil
			})
			if strings.TrimSpace(string(said)) != strings.TrimSpace(comment) {
				t.Errorf("%s: %q, not %q", line, said, comment)
			}
		}
	}
	up := inRoot(exec.Command(sluice, "up", "crates/bindings/go/examples/reverse.toml", "--length", "300ms", "--out", t.TempDir()))
	said, err := up.CombinedOutput()
	// A short run on a busy machine may miss its gates (3) or stay undecided (5).
	if code := up.ProcessState.ExitCode(); code != 0 && code != 3 && code != 5 || !strings.Contains(string(said), "2 workers are ready") {
		t.Errorf("%v: %v\n%s", up.Args, err, said)
	}
}

func inRoot(command *exec.Cmd) *exec.Cmd {
	command.Dir = root
	return command
}

// useInAModuleOfItsOwn does what the page says to a module elsewhere, and builds a program there.
func useInAModuleOfItsOwn(t *testing.T, commands string) {
	t.Helper()
	folder := t.TempDir()
	text, err := os.ReadFile("examples/reverse_client/main.go")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "main.go"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	script := exec.Command("bash", "-ec", "go mod init example.org/app\n"+commands+"go build .")
	script.Dir = folder
	if said, err := script.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", commands, err, said)
	}
}
