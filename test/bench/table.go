package main

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// markdown is the document: everything in it was measured or is about how.
func (r *results) markdown() string {
	var b strings.Builder
	write := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	write("# Benchmark\n")
	write("Written by `%s`; run that again instead of editing this.\n", r.command())
	write("%s, %s, %d processors (%s).", r.started.UTC().Format("2006-01-02 15:04 UTC"), commit(), runtime.NumCPU(), machine())
	write("API server %s, %s, client-go %s, controller-runtime %s.\n", r.kubernetes, runtime.Version(), version("k8s.io/client-go"), version("sigs.k8s.io/controller-runtime"))
	write("%s", method)
	var tried []string
	for _, n := range sortedInts(r.tried) {
		tried = append(tried, fmt.Sprintf("%d at once %.2f s", n, r.tried[n].Seconds()))
	}
	write("\nThe floor with %d parents, the better of two: %s; so %d at once is the floor.\n", r.options.sizes[0], strings.Join(tried, ", "), r.best)
	for _, size := range r.sizes {
		r.size(write, size)
	}
	if s := r.single; s != nil {
		write("## Homeostat alone, %d parents\n", s.parents)
		write("| time | per parent | requests | processor seconds of its own | API server | others | memory per 10,000 children | most resident |")
		write("|--:|--:|--:|--:|--:|--:|--:|--:|")
		write("| %s | %.2f ms | %d | %.1f | %.1f | %.1f | %s | %.0f MiB |\n", seconds(s), ms(s.took)/float64(s.parents), s.requests.total(),
			s.usage.CPU, s.processors["kube-apiserver"], s.others(), memory(s), mib(s.usage.Peak))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

const method = `Each parent wants three ConfigMaps with an owner reference and gets one status; the parents are there before a contestant
begins. *Time* is from the word to begin until a watch has shown the last parent's saved status; lists, discovery and caches are in
it, the start of the process is not. *The floor* is bare concurrent POSTs of the same children and one patch of the same status per
parent, encoded beforehand, answers thrown away, with the two watches open that an operator has. *Bare applies* is the same with
exclusive server-side applies, which is how the engine creates: what they cost over POSTs is the price of owned fields. *By hand* is
test/bench/handwritten.go: For, Owns, CreateOrUpdate, a status update when it changed; ConfigMaps in protobuf, which is
controller-runtime's default. Nobody's client is rate limited. Requests are from the audit log, without lists, watches, leases, and
events. Processor seconds are from the word to begin until the end; *others* is what runs on the machine beside all this; where that
is more than a tenth the run is repeated, a few times. Memory is live heap over what it was before, for 10,000 children and their parents.`

func (r *results) size(write func(string, ...any), all []*result) {
	floor := all[0]
	write("## %d parents, %d children\n", floor.parents, floor.parents*childrenPerParent)
	write("| | time | × floor | requests | × floor | by verb |")
	write("|---|--:|--:|--:|--:|---|")
	for _, one := range all {
		write("| %s | %s | %.2f | %d | %.3f | %s |", label(one), seconds(one), one.took.Seconds()/floor.took.Seconds(),
			one.requests.total(), float64(one.requests.total())/float64(floor.parents*(childrenPerParent+1)), one.requests)
	}
	write("\n| processor seconds | its own | API server | etcd | controller manager | bench | others | all of %d |", runtime.NumCPU())
	write("|---|--:|--:|--:|--:|--:|--:|--:|")
	for _, one := range all {
		p := one.processors
		write("| %s | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.0f %% |", label(one), one.usage.CPU, p["kube-apiserver"], p["etcd"],
			p["kube-controller-manager"], p[busyBench], one.others(), 100*p[busyAll]/one.took.Seconds()/float64(runtime.NumCPU()))
	}
	write("\n| afterwards | requests in %v at rest | memory per 10,000 children | a deleted child is back, p50 / p99 | × bare | a spec edit is in all children, p50 / p99 | × bare |", r.quiet)
	write("|---|--:|--:|--:|--:|--:|--:|")
	for _, one := range all {
		if one.kind == kindApplies {
			continue
		}
		write("| %s | %s | %s | %s | %s | %s | %s |", label(one), atRest(one), memory(one), spread(one.returns), ratio(one.returns, floor.returns),
			spread(one.follows), ratio(one.follows, floor.follows))
	}
	write("")
	r.poisonedTable(write, all)
}

func (r *results) poisonedTable(write func(string, ...any), all []*result) {
	if all[0].parents != r.options.sizes[0] {
		return
	}
	write("With a tenth more parents, poisoned: half of them make the operator panic, half want a child that the API server refuses.\n")
	write("| the healthy | p99 until ready, alone | with the poisoned | × | p99 of an edit, alone | with the poisoned | × |")
	write("|---|--:|--:|--:|--:|--:|--:|")
	for _, one := range all {
		if p := one.poisoned; p != nil {
			a, b := percentile(one.follows, 99), percentile(p.follows, 99)
			write("| %s | %.2f s | %.2f s | %.2f | %.1f ms | %.1f ms | %.2f |", label(one), one.p99.Seconds(), p.p99.Seconds(),
				p.p99.Seconds()/one.p99.Seconds(), ms(a), ms(b), ms(b)/ms(a))
		}
	}
	write("")
}

func label(r *result) string {
	switch r.kind {
	case kindPosts:
		return "floor: bare POSTs"
	case kindApplies:
		return "bare applies"
	case kindHomeostat:
		return "Homeostat"
	}
	if r.atOnce == 0 {
		return "by hand"
	}
	return fmt.Sprintf("by hand, %d at once", r.atOnce)
}

func seconds(r *result) string {
	if r.quickest == r.slowest {
		return fmt.Sprintf("%.2f s", r.took.Seconds())
	}
	return fmt.Sprintf("%.2f s (%.2f–%.2f)", r.took.Seconds(), r.quickest.Seconds(), r.slowest.Seconds())
}

func atRest(r *result) string {
	if r.quiet == nil {
		return "–"
	}
	return fmt.Sprint(r.quiet.total() + r.quiet["events"])
}

func memory(r *result) string {
	if r.kind == kindPosts {
		return "–"
	}
	const many = 10000
	return fmt.Sprintf("%.1f MiB", mib(r.usage.Heap-min(r.usage.Heap, r.usage.Idle))*many/float64(r.parents*childrenPerParent))
}

func spread(all []time.Duration) string {
	return fmt.Sprintf("%.1f / %.1f ms", ms(percentile(all, 50)), ms(percentile(all, 99)))
}

func ratio(all, bare []time.Duration) string {
	return fmt.Sprintf("%.2f", ms(percentile(all, 50))/ms(percentile(bare, 50)))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

func mib(bytes uint64) float64 { return float64(bytes) / (1 << 20) }

func (r *results) command() string {
	if len(os.Args) == 1 {
		return "make bench"
	}
	return "go run ./test/bench " + strings.Join(os.Args[1:], " ")
}

func version(module string) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Path == module {
				return m.Version
			}
		}
	}
	return "of unknown version"
}

// commit says which sources were measured.
func commit() string {
	revision, err := exec.Command("git", "rev-parse", "--short=12", "HEAD").Output()
	if err != nil {
		return "a commit unknown"
	}
	changed, err := exec.Command("git", "status", "--porcelain", "--", "engine", "operator", "test/bench").Output()
	if err != nil || len(changed) > 0 {
		return "commit " + strings.TrimSpace(string(revision)) + " with changes"
	}
	return "commit " + strings.TrimSpace(string(revision))
}
