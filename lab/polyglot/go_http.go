// go_http: an HTTP server in Go for stacks and categories. Every request does some arithmetic, and,
// with the fault lock, sleeps while it holds a mutex.
package main

import (
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

type faults map[string]int

func (f faults) String() string { return "" }
func (f faults) Set(text string) error {
	name, value, _ := strings.Cut(text, "=")
	if name != "cpu" && name != "lock" {
		return fmt.Errorf("unknown fault '%s'; there are: cpu, lock", name)
	}
	number, err := strconv.Atoi(value)
	f[name] = number
	return err
}

//go:noinline
func burnCPU(steps int) uint64 {
	x := uint64(88172645463325252)
	for i := 0; i < steps; i++ {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
	}
	return x
}

var tableMutex sync.Mutex

//go:noinline
func waitHoldingLock(pause time.Duration) {
	tableMutex.Lock()
	defer tableMutex.Unlock()
	time.Sleep(pause)
}

func main() {
	given := faults{}
	port := flag.Int("port", 0, "TCP port on 127.0.0.1; 0 takes a free one")
	work := flag.Int("work", 20000, "steps of honest work per request")
	flag.Var(given, "fault", "cpu=STEPS more work, lock=MICROSECONDS asleep under one mutex")
	flag.Parse()
	listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", *port))
	if err != nil {
		fmt.Fprintln(os.Stderr, "go_http:", err)
		os.Exit(1)
	}
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := burnCPU(*work + given["cpu"])
		if given["lock"] > 0 {
			waitHoldingLock(time.Duration(given["lock"]) * time.Microsecond)
		}
		fmt.Fprintf(w, "%d\n", x)
	})}
	fmt.Printf("listening %s\n", listener.Addr())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go server.Serve(listener)
	<-signals
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	server.Shutdown(ctx)
}
