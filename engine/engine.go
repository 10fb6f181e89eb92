package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/homeostat-dev/homeostat/engine/apply"
	"github.com/homeostat-dev/homeostat/engine/plan"
	"github.com/homeostat-dev/homeostat/operator"
)

// DefaultConcurrency is how many parents are worked on at once. An API server
// with two processors is busy with about thirty-two writes in flight.
const DefaultConcurrency = 32

// Option changes how Add runs an operator.
type Option func(*settings)

type settings struct {
	core        CoreOptions
	concurrency int
	namespace   string
	private     bool
}

// Concurrency sets how many parents are worked on at once.
func Concurrency(n int) Option { return func(s *settings) { s.concurrency = n } }

// Namespace confines the operator to the objects of one namespace.
func Namespace(name string) Option { return func(s *settings) { s.namespace = name } }

// Private keeps the records of what was done for each parent to the process.
// Otherwise the manager's metrics server has them, at [WhyPath]: they quote the
// fields that were changed, of Secrets excepted.
func Private() Option { return func(s *settings) { s.private = true } }

// WithCore sets the options of the core.
func WithCore(o CoreOptions) Option { return func(s *settings) { s.core = o } }

// Add adds an operator to a manager: it starts when the manager does, on the
// leader only, with informers, workers and timers of its own. What is wrong with
// the declaration is an error here, before anything runs.
func Add(mgr manager.Manager, op *operator.Operator, options ...Option) error {
	e, err := newEngine(mgr.GetConfig(), mgr.GetHTTPClient(), mgr.GetLogger(), op, options...)
	if err != nil {
		return err
	}
	if err := mgr.AddReadyzCheck("operator-"+op.Name, e.ready); err != nil {
		return fmt.Errorf("add the readiness of operator %s to the manager: %w", op.Name, err)
	}
	if err := mgr.Add(e); err != nil {
		return fmt.Errorf("add operator %s to the manager: %w", op.Name, err)
	}
	if !e.settings.private {
		serveWhy(mgr, e.log)
	}
	return nil
}

// engine is the shell around a core: it feeds it what informers see, gives it
// the time, and carries out its passes in workers.
type engine struct {
	core     *Core
	applier  *apply.Applier
	client   dynamic.Interface
	settings settings
	log      logr.Logger
	wake     chan struct{}
	started  atomic.Bool
}

func newEngine(config *rest.Config, client *http.Client, log logr.Logger, op *operator.Operator, options ...Option) (*engine, error) {
	s := settings{concurrency: DefaultConcurrency}
	for _, o := range options {
		o(&s)
	}
	if s.concurrency < 1 {
		return nil, fmt.Errorf("operator %s: concurrency is %d, at least 1 is needed", op.Name, s.concurrency)
	}
	core, err := NewCore(op, s.core)
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	config.QPS = -1 // The server's priority and fairness is the limit; a fixed one here only makes it slow.
	applier, err := apply.New(config, client)
	if err != nil {
		return nil, err
	}
	dynamicClient, err := dynamic.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	return &engine{
		core: core, applier: applier, client: dynamicClient, settings: s,
		log: log.WithName(op.Name), wake: make(chan struct{}, 1),
	}, nil
}

// NeedLeaderElection makes the manager run the engine on the leader only. Two
// engines at once are safe, but do everything twice.
func (e *engine) NeedLeaderElection() bool { return true }

// Start runs the engine until the context ends, and returns when every worker
// has finished the operation it was at.
func (e *engine) Start(ctx context.Context) error {
	e.started.Store(true)
	e.log.Info("Started", "looksAfter", e.core.operator.Parent.String(), "namespace", cmp.Or(e.settings.namespace, "all"))
	var workers sync.WaitGroup
	defer workers.Wait()
	for _, kind := range e.core.Kinds() {
		workers.Go(func() { e.reflect(ctx, kind) })
	}
	unregister := e.measure()
	defer unregister()
	if !e.settings.private {
		defer atWork.enter(e.core)()
	}
	e.dispatch(ctx, &workers)
	return nil
}

// ready is the answer to a readiness probe. An engine that stands by is ready;
// one that works is once it has seen every kind that it needs to see.
func (e *engine) ready(*http.Request) error {
	if !e.started.Load() {
		return nil
	}
	for _, k := range e.core.Kinds() {
		switch err := e.core.world.Missing(k.GroupVersionKind); {
		case err != nil && !apierrors.IsNotFound(err):
			return fmt.Errorf("%v cannot be listed; apply the role that manifests --only rbac prints", k)
		case err != nil && k.GroupVersionKind == e.core.operator.Parent.GroupVersionKind:
			return fmt.Errorf("%v is not served; apply what manifests --only crds prints", k)
		}
	}
	if !e.core.world.Known() {
		return fmt.Errorf("not every kind has been listed yet")
	}
	return nil
}

// dispatch hands passes to workers as they become due.
func (e *engine) dispatch(ctx context.Context, workers *sync.WaitGroup) {
	slots := make(chan struct{}, e.settings.concurrency)
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			return
		}
		pass := e.await(ctx, timer)
		if pass == nil {
			return
		}
		workers.Go(func() {
			e.run(ctx, pass)
			<-slots
		})
	}
}

// await waits for a pass that is due; nil means that the context has ended.
func (e *engine) await(ctx context.Context, timer *time.Timer) *Pass {
	for ctx.Err() == nil {
		pass, at := e.core.Next(time.Now())
		if pass != nil {
			return pass
		}
		wait := time.Hour
		if !at.IsZero() {
			wait = time.Until(at)
		}
		timer.Reset(wait)
		select {
		case <-e.wake:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	return nil
}

// run carries out one pass. When the context ends the pass is left where it is;
// a new engine starts from the world.
func (e *engine) run(ctx context.Context, pass *Pass) {
	start := time.Now()
	log := e.log.WithValues("pass", pass.Number(), "parent", pass.Parent().String())
	log.V(1).Info("Syncing", "woken", pass.Woken(), "tells", pass.Tells())
	for ctx.Err() == nil {
		op, more := pass.Step()
		if !more {
			break
		}
		result := e.do(ctx, log, op)
		pass.Done(result)
	}
	if err := pass.Err(); err != nil && ctx.Err() == nil {
		log.Info("Not as desired", "why", err.Error(), "stack", pass.Stack())
	}
	if !pass.Tells() {
		e.count(pass, time.Since(start))
	}
	e.core.Finish(pass, time.Now())
	e.notify()
}

func (e *engine) do(ctx context.Context, log logr.Logger, op plan.Op) plan.Result {
	log = log.WithValues("op", string(op.Verb), "object", op.Ref().String(), "reason", op.Reason)
	log.V(1).Info("Calling")
	result := e.applier.Do(ctx, op)
	switch {
	case !op.Writes() || ctx.Err() != nil:
	case result.Err == nil:
		log.Info("Wrote")
	case behind(op, result.Err):
		log.V(1).Info("Was behind", "why", quote(op, result.Err))
	default:
		log.Info("Refused", "why", quote(op, result.Err))
	}
	countOp(e.core.operator.Name, op, result)
	return result
}

// notify wakes the dispatcher; one pending wake-up is as good as many.
func (e *engine) notify() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}
