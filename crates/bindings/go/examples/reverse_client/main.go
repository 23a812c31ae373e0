// A whole client: has a word reversed by whoever serves type 9. Run it with the controller's address and a word.
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"sluice.dev/sluice"
)

func main() {
	if len(os.Args) != 3 {
		log.Fatal("usage: reverse_client ADDRESS WORD")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	client, err := sluice.Connect(ctx, os.Args[1], sluice.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()
	reply, err := client.Submit(ctx, 9, []byte(os.Args[2]))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(reply.Bytes))
}
