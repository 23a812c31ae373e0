// The snippets of docs/manual/go.md: page_test.go holds the page to them, and runs them.

package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"testing"
	"time"

	"sluice.dev/sluice"
)

// rack is the controller's address in examples.
var rack = "127.0.0.1:7400"

func ExampleConnect() {
	ctx := context.Background()

	client, err := sluice.Connect(ctx, rack, sluice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	reply, err := client.Submit(ctx, 9, []byte("stressed"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s\n", reply.Bytes)
}

func ExampleClient_Submit_errors() {
	client, err := sluice.Connect(context.Background(), rack, sluice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Submit(context.Background(), 10, []byte("nothing"))

	var failed *sluice.FailedError
	var refused *sluice.RefusedError
	var unknown *sluice.UnknownError
	switch {
	case err == nil:
		fmt.Println("it ran")
	case errors.As(err, &failed):
		fmt.Println("it ran, and says:", failed.Text)
	case errors.Is(err, sluice.ErrBusy):
		fmt.Println("it did not run: hold back")
	case errors.As(err, &refused):
		fmt.Println("it did not run:", refused.Why)
	case errors.As(err, &unknown):
		fmt.Println("it may have run:", unknown.Why)
	default:
		fmt.Println("it was not taken:", err) // ErrTooLong, ErrClosed
	}
}

func ExampleClient_Submit_many() {
	client, err := sluice.Connect(context.Background(), rack, sluice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	words := []string{"stressed", "reviled", "drawer"}
	replies := make([]string, len(words))
	var group sync.WaitGroup
	for i, word := range words {
		group.Add(1)
		go func() {
			defer group.Done()
			reply, err := client.Submit(context.Background(), 9, []byte(word))
			if err != nil {
				log.Print(err)
			}
			replies[i] = string(reply.Bytes)
		}()
	}
	group.Wait()
	fmt.Println(replies)
}

func ExampleTaskOption() {
	client, err := sluice.Connect(context.Background(), rack, sluice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	gpu, err := sluice.NewLabels("gpu") // once, for all tasks that need it
	if err != nil {
		log.Fatal(err)
	}
	_, err = client.Submit(context.Background(), 9, []byte("stressed"),
		sluice.Budget(200*time.Microsecond), sluice.Work(10*time.Microsecond), sluice.Needing(gpu))
	fmt.Println(err)
}

func TestExamples(t *testing.T) {
	rack = sluice.StartExampleRack(t)
	examples := []struct {
		run  func()
		says string
	}{
		{ExampleConnect, "desserts\n"},
		{ExampleClient_Submit_errors, "it ran, and says: told to fail: nothing\n"},
		{ExampleClient_Submit_many, "[desserts deliver reward]\n"},
		{ExampleTaskOption, "sluice: refused (unknown-label)"},
	}
	for _, of := range examples {
		if said := whatItSays(t, of.run); len(said) < len(of.says) || said[:len(of.says)] != of.says {
			t.Errorf("%q, not %q", said, of.says)
		}
	}
}

// whatItSays is what a function writes to stdout.
func whatItSays(t *testing.T, run func()) string {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	before := os.Stdout
	os.Stdout = writer
	run()
	os.Stdout = before
	writer.Close()
	said, err := io.ReadAll(reader)
	if err != nil {
		t.Fatal(err)
	}
	return string(said)
}
