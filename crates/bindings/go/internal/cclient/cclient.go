// Package cclient is a client in C, beside which the one in Go is measured.
package cclient

/*
#cgo pkg-config: sluice
#include <stdlib.h>
#include <string.h>
#include <sluice.h>

static const char task[] = "stressed";

// Connects with the controller at this address.
static int cclient_connect(const char *controller, sluice_client *client, sluice_queue *queue) {
  sluice_options options;
  if (sluice_options_new(&options) || sluice_options_set(options, "controller", controller)) return 1;
  // Long enough for a busy machine.
  if (sluice_options_set(options, "patience", "60s") || sluice_options_set(options, "deadline", "60s")) return 1;
  int failed = sluice_client_connect(options, client) || sluice_queue_new(queue);
  sluice_options_free(options);
  return failed;
}

// Runs tasks one after the other.
static int cclient_one(sluice_client client, uint64_t count) {
  sluice_spec spec = {.type = 9};
  char reply[sizeof task];
  for (uint64_t i = 0; i < count; i++) {
    sluice_outcome outcome;
    if (sluice_submit(client, &spec, task, strlen(task), reply, sizeof reply, &outcome)) return 1;
    if (outcome.kind != SLUICE_KIND_REPLY) return 1;
    sluice_outcome_free(&outcome);
  }
  return 0;
}

// Runs tasks of which so many are under way, over a queue.
static int cclient_many(sluice_client client, sluice_queue queue, uint64_t count, uint64_t at_once) {
  sluice_spec spec = {.type = 9};
  sluice_outcome outcomes[64];
  uint64_t sent = 0, ended = 0;
  while (ended < count) {
    for (; sent < count && sent - ended < at_once; sent++) {
      if (sluice_queue_submit(client, queue, sent, &spec, task, strlen(task))) return 1;
    }
    size_t taken = 0;
    if (sluice_queue_wait(queue, outcomes, 64, SLUICE_FOREVER, &taken)) return 1;
    for (size_t i = 0; i < taken; i++) {
      if (outcomes[i].kind != SLUICE_KIND_REPLY) return 1;
      sluice_outcome_free(&outcomes[i]);
    }
    ended += taken;
  }
  return 0;
}
*/
import "C"

import (
	"errors"
	"unsafe"
)

// Client is a client whose tasks all start and end in C.
type Client struct {
	client C.sluice_client
	queue  C.sluice_queue
}

var errFailed = errors.New("a call in C failed")

// Connect registers a client with the controller at this address.
func Connect(controller string) (*Client, error) {
	text := C.CString(controller)
	defer C.free(unsafe.Pointer(text))
	c := &Client{}
	return c, failed(C.cclient_connect(text, &c.client, &c.queue))
}

// One runs tasks one after the other.
func (c *Client) One(count int) error { return failed(C.cclient_one(c.client, C.uint64_t(count))) }

// Many runs tasks of which so many are under way.
func (c *Client) Many(count, atOnce int) error {
	return failed(C.cclient_many(c.client, c.queue, C.uint64_t(count), C.uint64_t(atOnce)))
}

// Close ends the client.
func (c *Client) Close() {
	C.sluice_client_free(c.client)
	C.sluice_queue_free(c.queue)
}

func failed(code C.int) error {
	if code != 0 {
		return errFailed
	}
	return nil
}
