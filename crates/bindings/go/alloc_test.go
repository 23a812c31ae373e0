//go:build !race

// What a task allocates; the race detector allocates by itself.

package sluice

import (
	"testing"
	"time"
)

func TestATaskCostsOneAllocation(t *testing.T) {
	r := startRack(t, plan, 1)
	client := r.connect(t, Options{})
	ctx, task := within(t, limit), []byte("stressed")
	ways := map[string]func(){
		"plain":        func() { client.Submit(t.Context(), 9, task) },
		"deadline":     func() { client.Submit(ctx, 9, task) },
		"with options": func() { client.Submit(ctx, 9, task, Class(0), Budget(50*time.Millisecond)) },
	}
	for name, submit := range ways {
		// AllocsPerRun rounds down.
		if allocations := testing.AllocsPerRun(300, submit); allocations > 1 {
			t.Errorf("%s: %v allocations, and one is the reply's bytes", name, allocations)
		}
	}
}
