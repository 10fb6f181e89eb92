package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/homeostat-dev/homeostat/engine"
)

// contestantArg as the first argument makes this program a contestant: it says
// that it is ready, begins when it is told to on its standard input, answers
// with its usage, and ends with its input.
const contestantArg = "contestant"

// The kinds of contestants.
const (
	kindPosts     = "posts"
	kindApplies   = "applies"
	kindHomeostat = "homeostat"
	kindByHand    = "by-hand"
)

// entry says what a contestant is and works on.
type entry struct {
	kind, kubeconfig, namespace, agent, profile string
	// atOnce is the concurrency, 0 for the default.
	atOnce int
}

func (e *entry) flags() *flag.FlagSet {
	f := flag.NewFlagSet(contestantArg, flag.ContinueOnError)
	f.StringVar(&e.kind, "kind", e.kind, "what to be")
	f.StringVar(&e.kubeconfig, "kubeconfig", e.kubeconfig, "cluster")
	f.StringVar(&e.namespace, "namespace", e.namespace, "where the parents are")
	f.StringVar(&e.agent, "agent", e.agent, "user agent")
	f.StringVar(&e.profile, "profile", e.profile, "file for a CPU profile")
	f.IntVar(&e.atOnce, "at-once", e.atOnce, "concurrency")
	return f
}

func (e *entry) args() []string {
	args := []string{contestantArg}
	e.flags().VisitAll(func(f *flag.Flag) { args = append(args, "-"+f.Name+"="+f.Value.String()) })
	return args
}

func (e *entry) config() (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", e.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", e.kubeconfig, err)
	}
	config.QPS, config.UserAgent = -1, e.agent
	return config, nil
}

// usage is what a contestant has used since it began.
type usage struct {
	// CPU is in seconds, Heap and Idle are bytes of live heap now and before it
	// began, Peak is the most that was resident.
	CPU, Seconds     float64
	Heap, Idle, Peak uint64
}

type starter func(ctx context.Context) error

func contest(ctx context.Context) error {
	var e entry
	if err := e.flags().Parse(os.Args[2:]); err != nil {
		return err
	}
	start, react, err := e.prepare(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctrl.LoggerInto(ctx, logr.Discard()))
	defer cancel()
	ended := make(chan error, 1)
	var began time.Time
	var used usage
	profiled := func() {}
	say := json.NewEncoder(os.Stdout)
	idle := heap()
	if err := say.Encode(used); err != nil {
		return err
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		switch lines.Text() {
		case "go":
			if profiled, err = profile(e.profile); err != nil {
				return err
			}
			began, used = time.Now(), usage{CPU: processor(), Idle: idle}
			go func() { ended <- start(ctx) }()
			continue
		case "react":
			if err := react(ctx); err != nil {
				return err
			}
		case "usage":
		}
		profiled()
		profiled = func() {}
		now := usage{CPU: processor() - used.CPU, Seconds: time.Since(began).Seconds(), Idle: used.Idle}
		now.Heap, now.Peak = heap(), peak()
		if err := say.Encode(now); err != nil {
			return err
		}
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		return fmt.Errorf("contestant %s: %w", e.kind, err)
	}
	return nil
}

// prepare does what is not measured: it reads the configuration and makes clients.
func (e *entry) prepare(ctx context.Context) (start, react starter, err error) {
	config, err := e.config()
	if err != nil {
		return nil, nil, err
	}
	var mgr manager.Manager
	switch e.kind {
	case kindPosts, kindApplies:
		f, err := newFloor(ctx, config, *e)
		if err != nil {
			return nil, nil, err
		}
		return f.run, f.react, nil
	case kindByHand:
		mgr, err = handwritten(config, e.namespace, e.atOnce)
	case kindHomeostat:
		if mgr, err = manager.New(config, manager.Options{Metrics: metricsserver.Options{BindAddress: "0"}}); err != nil {
			return nil, nil, err
		}
		o := []engine.Option{engine.Namespace(e.namespace)}
		if e.atOnce > 0 {
			o = append(o, engine.Concurrency(e.atOnce))
		}
		err = engine.Add(mgr, trioOperator, o...)
	default:
		err = fmt.Errorf("there is no contestant %q", e.kind)
	}
	if err != nil {
		return nil, nil, err
	}
	return mgr.Start, func(context.Context) error { return nil }, nil
}

func profile(path string) (stop func(), err error) {
	if path == "" {
		return func() {}, nil
	}
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(f); err != nil {
		return nil, err
	}
	return func() {
		pprof.StopCPUProfile()
		_ = f.Close()
	}, nil
}

// processor is the processor time of this process in seconds.
func processor() float64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano()).Seconds()
}

func peak() uint64 {
	var r syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &r) != nil {
		return 0
	}
	return uint64(r.Maxrss) << 10
}

func heap() uint64 {
	runtime.GC()
	runtime.GC() // The second frees what the first found in pools and finalizers.
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// drain reads a stream to its end.
func drain(r io.ReadCloser) {
	_, _ = io.Copy(io.Discard, r)
	_ = r.Close()
}
