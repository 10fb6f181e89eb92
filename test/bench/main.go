// Command bench measures the engine on a real API server against what the same
// writes cost by themselves and against a reconciler as people write it by hand,
// in one run and with the same watches open: time, requests, processor, memory,
// quiet, healing, and what poisoned parents cost the healthy. It asserts nothing
// and never runs against a cluster that it was not given or did not start. Its
// invariant: every figure it prints was measured in that run; requests are
// counted in the API server's own audit log, by user agent; each contestant is a
// process of its own, so that processor and memory are its own.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/homeostat-dev/homeostat/engine"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctrl.SetLogger(logr.Discard())
	run := conduct
	if len(os.Args) > 1 && os.Args[1] == contestantArg {
		run = contest
	}
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type options struct {
	kubeconfig, auditLog, planeDir, kubernetes string
	out, profiles                              string
	sizes                                      sizes
	alone                                      int
	raised, rounds, latencies, patience        int
	quiet                                      time.Duration
	only                                       string
}

// sizes are numbers of parents, written 300,2000.
type sizes []int

func (s *sizes) String() string { return strings.Trim(fmt.Sprint([]int(*s)), "[]") }

func (s *sizes) Set(text string) error {
	*s = nil
	for _, part := range strings.Split(text, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < 10 {
			return fmt.Errorf("%q is not a number of parents of at least 10", part)
		}
		*s = append(*s, n)
	}
	return nil
}

func parse(args []string) (options, error) {
	o := options{sizes: sizes{300, 2000}}
	flags := flag.NewFlagSet("bench", flag.ContinueOnError) // Not the default set: controller-runtime has flags in it.
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "cluster to measure; empty starts a local plane named bench")
	flags.StringVar(&o.auditLog, "audit-log", "", "audit log of that cluster's API server, for the requests; empty leaves them out")
	flags.StringVar(&o.planeDir, "plane-dir", "", "folder that is named in the command lines of that cluster's processes, for processor seconds; empty leaves them out")
	flags.Var(&o.sizes, "sizes", "numbers of parents for all contestants; the first is also run with poisoned parents")
	flags.IntVar(&o.alone, "alone", 0, "number of parents for Homeostat alone, such as 20000 (takes minutes); 0 for none")
	flags.IntVar(&o.raised, "raised", engine.DefaultConcurrency, "raised concurrency of the reconciler written by hand")
	flags.IntVar(&o.rounds, "rounds", 3, "rounds at the first size, of which the median counts; the others have one")
	flags.DurationVar(&o.quiet, "quiet", time.Minute, "how long to count requests at rest, at the last size")
	flags.IntVar(&o.latencies, "latencies", 200, "children to delete and parents to edit, one at a time")
	flags.IntVar(&o.patience, "patience", 4, "how often to repeat what others on the machine disturbed")
	flags.StringVar(&o.out, "out", "docs/benchmark.md", "file for the tables; empty prints them only")
	flags.StringVar(&o.profiles, "profiles", "", "folder for CPU profiles of the contestants; empty for none")
	flags.StringVar(&o.only, "only", "", "contestants to run besides the floor, by the start of their names; empty for all")
	err := flags.Parse(args)
	return o, err
}
