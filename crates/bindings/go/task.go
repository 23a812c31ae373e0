// What a task is, and what comes back.

package sluice

import "time"

// Type is a task's type: its number in the rack's plan, which says which slice takes it.
type Type uint16

// Reply is a worker's answer.
type Reply struct {
	Bytes      []byte        // the service's answer; the caller's own
	Worker     uint32        // the number of the worker that answered
	Attempts   int           // how many times the task was sent
	SwitchWait time.Duration // how long it waited in the switch
	WorkerWait time.Duration // how long it waited at its worker
	Service    time.Duration // how long its service ran
}

// TaskOption is what a task is beyond its type and bytes.
type TaskOption struct {
	is     optionKind
	number uint64
	labels *Labels
}

type optionKind uint8

const (
	optionClass optionKind = iota + 1
	optionWork
	optionBudget
	optionLabels
)

// Class gives a task a class of the rack; class 0 goes first.
func Class(class uint8) TaskOption { return TaskOption{is: optionClass, number: uint64(class)} }

// Work says how long the task's service is expected to run; the rack's plan maps times to classes.
func Work(expected time.Duration) TaskOption {
	return TaskOption{is: optionWork, number: nanoseconds(expected)}
}

// Budget is for how long the task is worth beginning, from when it is submitted: at most 67 ms. A task whose
// budget is spent is refused as Late.
func Budget(within time.Duration) TaskOption {
	return TaskOption{is: optionBudget, number: max(nanoseconds(within), 1)}
}

// Needing asks for a worker that has these labels.
func Needing(labels *Labels) TaskOption { return TaskOption{is: optionLabels, labels: labels} }

// task is a task as the library takes it.
type task struct {
	of        Type
	urgencyIs uint16
	urgency   uint64
	budget    time.Duration // 0: none
	since     time.Time     // when the budget began
	labels    *Labels
}

// The values of sluice_urgency.
const (
	urgencyClass = 1
	urgencyWork  = 2
)

func newTask(of Type, options []TaskOption) task {
	t := task{of: of}
	for _, o := range options {
		switch o.is {
		case optionClass:
			t.urgencyIs, t.urgency = urgencyClass, o.number
		case optionWork:
			t.urgencyIs, t.urgency = urgencyWork, o.number
		case optionBudget:
			t.budget, t.since = time.Duration(o.number), time.Now()
		case optionLabels:
			t.labels = o.labels
		}
	}
	return t
}

func nanoseconds(span time.Duration) uint64 { return uint64(max(span, 0)) }

// outcome is how a task ended.
type outcome struct {
	reply Reply
	err   error
}
