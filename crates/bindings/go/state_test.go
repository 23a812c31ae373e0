package sluice

import (
	"context"
	"errors"
	"io"
	"testing"
)

func TestAWordOfTheLibraryIsAConstantOfGo(t *testing.T) {
	words := []string{
		string(QueueFull), string(NoRoom), string(NoWorkers), string(StaleTokens), string(Unserved), string(NoSlice),
		string(Busy), string(NeverSent), string(Late), string(LongBudget), string(TooLong), string(UnknownLabel),
		string(NoClass), string(Deadline), string(ReplyGone), string(TooOld),
	}
	for i, word := range words {
		if told := whyWord(i + 1); told != word {
			t.Errorf("%d is %q in C and %q in Go", i+1, told, word)
		}
	}
	if told := whyWord(len(words) + 1); told != whyWord(1000) {
		t.Errorf("C has a word that Go has not: %q", told)
	}
}

func TestErrorsAreToldApart(t *testing.T) {
	cases := []struct {
		err    error
		is     []error
		is_not []error
	}{
		{&RefusedError{Why: Busy}, []error{ErrBusy}, []error{ErrTooLong, ErrClosed, context.Canceled}},
		{&RefusedError{Why: TooLong}, []error{ErrTooLong}, []error{ErrBusy}},
		{neverSent(context.Canceled), []error{context.Canceled}, []error{ErrBusy, context.DeadlineExceeded}},
		{&UnknownError{Why: Deadline}, []error{context.DeadlineExceeded}, []error{context.Canceled, ErrClosed}},
		{mayRun(context.Canceled), []error{context.Canceled}, []error{context.DeadlineExceeded}},
		{mayRun(context.DeadlineExceeded), []error{context.DeadlineExceeded}, []error{context.Canceled}},
		{&FailedError{Text: "x"}, nil, []error{ErrBusy, ErrTooLong, ErrClosed}},
		{&ConnectError{Why: "system", cause: io.EOF}, []error{io.EOF}, []error{ErrClosed}},
	}
	for _, of := range cases {
		for _, target := range of.is {
			if !errors.Is(of.err, target) {
				t.Errorf("%v is not %v", of.err, target)
			}
		}
		for _, target := range of.is_not {
			if errors.Is(of.err, target) {
				t.Errorf("%v is %v", of.err, target)
			}
		}
	}
	var refused *RefusedError
	if err := neverSent(context.Canceled); !errors.As(err, &refused) || refused.Why != NeverSent {
		t.Errorf("%v", err)
	}
	var unknown *UnknownError
	if err := mayRun(context.Canceled); !errors.As(err, &unknown) || unknown.Why != Canceled {
		t.Errorf("%v", err)
	}
}

// gocql #388, #468: what comes late must not reach the next request of the same number, and numbers must come
// back.
func TestATagOfATaskThatWasAbandonedNeverMeetsALaterTask(t *testing.T) {
	var p pending
	first, second := &call{}, &call{}
	tag := p.add(first)
	if !p.abandon(tag) {
		t.Fatal("it is under way")
	}
	waiting := make([]*call, 2)
	if p.end([]uint64{tag}, waiting); waiting[0] != nil {
		t.Fatal("nobody waits for it")
	}
	next := p.add(second)
	if len(p.slots) != 1 || next == tag {
		t.Fatalf("%d slots, tags %x and %x", len(p.slots), tag, next)
	}
	if p.end([]uint64{tag}, waiting); waiting[0] != nil || p.underWay != 1 {
		t.Fatal("the old tag met the new task")
	}
	if p.abandon(tag) {
		t.Fatal("the old tag abandoned the new task")
	}
	if p.end([]uint64{next, 77}, waiting); waiting[0] != second || p.underWay != 0 {
		t.Fatal("the new task did not end")
	}
	if p.abandon(next) {
		t.Fatal("it ended before it was abandoned")
	}
}

func TestWhoWaitsForAllTasksIsToldOnce(t *testing.T) {
	var p pending
	<-p.whenIdle()
	tag := p.add(&call{})
	idle := p.whenIdle()
	select {
	case <-idle:
		t.Fatal("a task is under way")
	default:
	}
	p.drop(tag)
	<-idle
	<-p.whenIdle()
}

func TestATurnThatNobodyTakesGoesToTheNextInItsQueue(t *testing.T) {
	var r room
	hasCome := func(turn *turn) bool {
		select {
		case <-turn.come:
			return true
		default:
			return false
		}
	}
	first, second, third, other := r.wait(1, false), r.wait(1, false), r.wait(1, false), r.wait(2, false)
	r.ended()
	if !hasCome(first) || hasCome(second) || !hasCome(other) {
		t.Fatal("an outcome lets one of each type try")
	}
	r.leave(1, first)
	if !hasCome(second) {
		t.Fatal("the first left with its turn")
	}
	// It found no room: it is the next again.
	second = r.wait(1, true)
	if r.ended(); !hasCome(second) || hasCome(third) {
		t.Fatal("who tried in vain comes before who did not")
	}
	r.leave(1, second)
	if !hasCome(third) {
		t.Fatal("the second left with its turn")
	}
	r.next(1)
	r.ended()
	if len(r.waiting) != 0 {
		t.Fatalf("%d queues are left", len(r.waiting))
	}
}
