// Package sluice is a client of a Sluice rack, and runs services on its workers.
//
// A client submits tasks; a worker of the rack runs each, within microseconds:
//
//	client, err := sluice.Connect(ctx, "127.0.0.1:7400", sluice.Options{})
//	reply, err := client.Submit(ctx, 9, []byte("stressed"))
//
// Each task ends in exactly one way: with a Reply, with a *FailedError (the service ran and failed), with a
// *RefusedError (it certainly did not run) or with an *UnknownError (it may have run). A task may run more than
// once, but its client gets one outcome. The context's deadline is the task's; see Client.Submit.
//
// A program is a service by one call of RunService. The package calls the library libsluice through cgo;
// docs/manual/go.md says how to install it, and what a call costs.
package sluice
