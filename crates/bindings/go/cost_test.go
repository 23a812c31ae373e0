// What a task costs in Go, beside a client in C on the same rack in the same run.

package sluice

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"sluice.dev/sluice/internal/cclient"
)

// costRounds is how often each client has its turn: they take turns, so that what else the machine does meets both.
const costRounds = 9

// BenchmarkCost reports how long a task takes, and how much processor time this process spends on it, in Go and in C.
func BenchmarkCost(b *testing.B) {
	// Else the queue holds what a worker does in 20 ms, which is less than is under way here if it is slow.
	r := startRack(b, plan+"limit = 4096\n", 1)
	client := r.connect(b, Options{})
	inC, err := cclient.Connect(r.at)
	if err != nil {
		b.Fatal(err)
	}
	defer inC.Close()
	var failures atomic.Int64
	one := func(count int) {
		for range count {
			if _, err := client.Submit(b.Context(), 9, []byte("stressed")); err != nil {
				failures.Add(1)
			}
		}
	}
	many := func(atOnce int) func(int) {
		return func(count int) {
			var group sync.WaitGroup
			for range atOnce {
				group.Add(1)
				go func() { defer group.Done(); one(count / atOnce) }()
			}
			group.Wait()
		}
	}
	told := func(err error) {
		if err != nil {
			failures.Add(1)
		}
	}
	for _, atOnce := range []int{1, 16, 64} {
		b.Run(fmt.Sprintf("%d-at-once", atOnce), func(b *testing.B) {
			ways := [2]func(int){many(atOnce), func(count int) { told(inC.Many(count/atOnce*atOnce, atOnce)) }}
			if atOnce == 1 {
				ways = [2]func(int){one, func(count int) { told(inC.One(count)) }}
			}
			var spans, busy [2][]float64
			for range costRounds {
				for i, way := range ways {
					began, used := time.Now(), processorTime()
					way(b.N)
					spans[i] = append(spans[i], float64(time.Since(began).Nanoseconds())/float64(b.N))
					busy[i] = append(busy[i], float64((processorTime()-used).Nanoseconds())/float64(b.N))
				}
			}
			b.ReportMetric(0, "ns/op")
			report := func(unit string, of [2][]float64) {
				b.ReportMetric(median(of[0]), "go-"+unit)
				b.ReportMetric(median(of[1]), "c-"+unit)
				b.ReportMetric(median(of[0])/median(of[1]), "go/c-"+unit)
			}
			report("ns", spans)
			report("cpu-ns", busy)
		})
	}
	if failed := failures.Load(); failed > 0 {
		b.Errorf("%d tasks failed", failed)
	}
}

func median(of []float64) float64 {
	sorted := slices.Sorted(slices.Values(of))
	return sorted[len(sorted)/2]
}

// processorTime is how long this process has run on processors.
func processorTime() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
