package sluice

import "testing"

// StartExampleRack starts a rack with two workers, and returns its controller's address.
func StartExampleRack(t testing.TB) string { return startRack(t, plan, 2).at }
