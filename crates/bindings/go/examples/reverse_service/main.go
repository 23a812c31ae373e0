// A whole service: answers each task of type 9 with its bytes in reverse. Run it with --controller ADDRESS.
package main

import (
	"os"
	"slices"

	"sluice.dev/sluice"
)

func main() {
	os.Exit(sluice.RunService(map[sluice.Type]sluice.Handler{9: reverse}))
}

func reverse(task *sluice.Task) ([]byte, error) {
	slices.Reverse(task.Bytes)
	return task.Bytes, nil
}
