// The tasks that have no outcome yet, by the tag that the library gives back with the outcome.

package sluice

import "sync"

// call is where one submitter waits for its outcome.
type call struct {
	done    chan struct{} // one message: outcome is there
	outcome outcome
}

var calls = sync.Pool{New: func() any { return &call{done: make(chan struct{}, 1)} }}

// pending has a slot for each task under way. A tag names a slot and the slot's generation, so that what ends
// late never meets a later task.
type pending struct {
	mu       sync.Mutex
	slots    []slot
	free     []uint32
	underWay int
	idle     chan struct{} // closed when none is under way, if somebody waits for that
}

type slot struct {
	call       *call // nil: nobody waits for it any more
	generation uint32
	taken      bool
}

// add makes room for a task and returns its tag.
func (p *pending) add(c *call) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := uint32(len(p.slots))
	if last := len(p.free) - 1; last >= 0 {
		at, p.free = p.free[last], p.free[:last]
	} else {
		p.slots = append(p.slots, slot{})
	}
	s := &p.slots[at]
	s.call, s.taken = c, true
	p.underWay++
	return uint64(s.generation)<<32 | uint64(at)
}

// abandon says that nobody waits for this task any more. It returns false if the task has ended already: its
// outcome is then in the call, or will be at once.
func (p *pending) abandon(tag uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.slot(tag)
	if s == nil {
		return false
	}
	s.call = nil
	return true
}

// end frees the slots of ended tasks, and puts who waits for each into waiting; nil for one that was abandoned.
func (p *pending) end(tags []uint64, waiting []*call) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, tag := range tags {
		waiting[i] = nil
		s := p.slot(tag)
		if s == nil {
			continue
		}
		waiting[i] = s.call
		*s = slot{generation: s.generation + 1}
		p.free = append(p.free, uint32(tag))
		p.underWay--
	}
	if p.underWay == 0 && p.idle != nil {
		close(p.idle)
		p.idle = nil
	}
}

// drop frees the slot of a task that the library did not take.
func (p *pending) drop(tag uint64) {
	p.end([]uint64{tag}, make([]*call, 1))
}

// whenIdle returns a channel that is closed when no task is under way.
func (p *pending) whenIdle() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.underWay == 0 {
		idle := make(chan struct{})
		close(idle)
		return idle
	}
	if p.idle == nil {
		p.idle = make(chan struct{})
	}
	return p.idle
}

// slot returns the slot of a task under way, or nil.
func (p *pending) slot(tag uint64) *slot {
	at := uint32(tag)
	if int(at) >= len(p.slots) {
		return nil
	}
	s := &p.slots[at]
	if !s.taken || s.generation != uint32(tag>>32) {
		return nil
	}
	return s
}
