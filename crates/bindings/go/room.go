// Goroutines that wait until the library has room for a task of their type.
//
// The library keeps a bounded number of unsent tasks for each type. A thread that it blocked would cost Go a
// thread for each waiting goroutine, so goroutines wait here. Each outcome lets one goroutine of each type try
// again, and each that finds room lets the next one try: so room that is there is used, and no more than one
// goroutine a type tries in vain. A task that leaves makes room, too, of which the library tells nothing: so
// while goroutines wait, one of each type also tries again every so often.

package sluice

import (
	"container/list"
	"sync"
	"time"
)

// tryEvery is how long room may be there before a goroutine that waits finds it.
const tryEvery = time.Millisecond

type room struct {
	mu      sync.Mutex
	waiting map[Type]*list.List // of *turn
	looks   bool                // whether a goroutine looks every so often
}

// turn is a goroutine's place in the queue of its type.
type turn struct {
	come  chan struct{} // closed when the goroutine is to try again
	place *list.Element
}

// wait puts a goroutine into the queue of its type: at the end, or in front if its turn has come in vain.
func (r *room) wait(of Type, inVain bool) *turn {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == nil {
		r.waiting = make(map[Type]*list.List)
	}
	queue := r.waiting[of]
	if queue == nil {
		queue = list.New()
		r.waiting[of] = queue
	}
	t := &turn{come: make(chan struct{})}
	if inVain {
		t.place = queue.PushFront(t)
	} else {
		t.place = queue.PushBack(t)
	}
	return t
}

// keepLooking has a goroutine look for room as long as others wait for it.
func (r *room) keepLooking() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.looks {
		r.looks = true
		go r.look()
	}
}

// look lets one goroutine of each type try every so often, until none waits.
func (r *room) look() {
	for waits := true; waits; {
		time.Sleep(tryEvery)
		r.mu.Lock()
		waits = len(r.waiting) > 0
		r.looks = waits
		r.wakeAll()
		r.mu.Unlock()
	}
}

// leave takes a goroutine out of its queue. If its turn had come, the next one gets it.
func (r *room) leave(of Type, t *turn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case <-t.come:
		r.wake(of)
	default:
		r.remove(of, t)
	}
}

// next lets the next goroutine of a type try.
func (r *room) next(of Type) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wake(of)
}

// ended lets one goroutine of each type try, after an outcome: types may share room.
func (r *room) ended() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wakeAll()
}

func (r *room) wakeAll() {
	for of := range r.waiting {
		r.wake(of)
	}
}

func (r *room) wake(of Type) {
	if queue := r.waiting[of]; queue != nil {
		t := queue.Front().Value.(*turn)
		r.remove(of, t)
		close(t.come)
	}
}

// remove takes a turn out of its queue, and the queue away if it was the last.
func (r *room) remove(of Type, t *turn) {
	queue := r.waiting[of]
	if queue.Remove(t.place); queue.Len() == 0 {
		delete(r.waiting, of)
	}
}
