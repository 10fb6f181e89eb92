package engine

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/homeostat-dev/homeostat/operator"
)

// WhyPath is where records are served, beside the metrics and behind the same
// filters. The query names a parent: kind, namespace, name.
const WhyPath = "/homeostat/why"

// WhyAnswer is what is served there. Records are empty where Error says why.
type WhyAnswer struct {
	Records []Record `json:"records"`
	// Operators are those at work in the process, with the kind each looks after.
	Operators []Served `json:"operators"`
	Error     string   `json:"error,omitempty"`
}

// Served is one operator at work in a process.
type Served struct {
	Operator string `json:"operator"`
	Kind     string `json:"kind"`
}

// atWork are the cores that run in this process. It is one for the process, as
// the registry of metrics is: several managers have one metrics server.
var atWork directory

type directory struct {
	mu    sync.Mutex
	cores []*Core
}

// enter adds a core until the returned function is called.
func (d *directory) enter(c *Core) (leave func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.cores = append(d.cores, c)
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.cores = slices.DeleteFunc(d.cores, func(o *Core) bool { return o == c })
	}
}

// serveWhy puts the records beside the manager's metrics. The only ways to fail
// are that they are there already, for another operator of the manager, or that
// the manager has started; neither keeps an operator from its work.
func serveWhy(mgr manager.Manager, log logr.Logger) {
	if err := mgr.AddMetricsServerExtraHandler(WhyPath, &atWork); err != nil {
		log.V(1).Info("The records are served already, or the manager has started", "path", WhyPath, "why", err.Error())
	}
}

// ServeHTTP answers what is remembered about a parent.
func (d *directory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "only GET", http.StatusMethodNotAllowed)
		return
	}
	q := r.URL.Query()
	d.mu.Lock()
	cores := slices.Clone(d.cores)
	d.mu.Unlock()
	code, answer := why(cores, q.Get("kind"), types.NamespacedName{Namespace: q.Get("namespace"), Name: q.Get("name")})
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer) // It fails when the client is gone.
}

// why looks a parent up. Several operators may look after one kind.
func why(cores []*Core, kind string, name types.NamespacedName) (code int, answer WhyAnswer) {
	answer = WhyAnswer{Records: []Record{}, Operators: []Served{}}
	if kind == "" || name.Name == "" {
		answer.Error = "the query must have kind and name"
		return http.StatusBadRequest, answer
	}
	responsible, known := 0, true
	for _, c := range cores {
		answer.Operators = append(answer.Operators, Served{c.operator.Name, c.operator.Parent.String()})
		if !called(c.operator, kind) {
			continue
		}
		responsible++
		known = known && c.world.Known()
		at := name
		if c.operator.Parent.ClusterScoped {
			at.Namespace = ""
		}
		if r, ok := c.Record(at); ok {
			answer.Records = append(answer.Records, r)
		}
	}
	switch {
	case len(answer.Records) > 0:
		return http.StatusOK, answer
	case len(cores) == 0:
		answer.Error = "no operator is at work in this process; it may be waiting for the leader's lease"
		return http.StatusServiceUnavailable, answer
	case responsible == 0:
		answer.Error = fmt.Sprintf("no operator here looks after %s; here is: %s", kind, strings.Join(served(answer.Operators), ", "))
	case !known:
		answer.Error = "the operator has not yet listed all it watches"
		return http.StatusServiceUnavailable, answer
	default:
		answer.Error = fmt.Sprintf("the operator has seen no %s %s in %s", kind, name.Name, where(name.Namespace))
	}
	return http.StatusNotFound, answer
}

func served(all []Served) []string {
	var out []string
	for _, s := range all {
		out = append(out, fmt.Sprintf("%s for %s", s.Operator, s.Kind))
	}
	return out
}

// called reports whether a word is how people name a kind: Memcached, memcacheds,
// memcacheds.cache.example.com, or a short name of its definition.
func called(op *operator.Operator, word string) bool {
	kind, resource := op.Parent, op.Parent.GVR().Resource
	known := []string{kind.Kind, resource, kind.String(), resource + "." + kind.Group}
	if op.CRD != nil {
		known = append(append(known, op.CRD.Spec.Names.ShortNames...), op.CRD.Spec.Names.Singular)
	}
	return word != "" && slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(word, k) })
}
