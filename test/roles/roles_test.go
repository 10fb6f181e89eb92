// Package roles_test holds the derived roles against what is really called.
// Each shipped operator lives through a typical life on a real API server, as
// its own program would run, under a service account that has exactly the role
// that is derived from its declaration; the API server's audit log has what was
// called. A proxy before the API server makes the rare happen: a server that
// knows only plain lists, a request that arrives twice, a parent that goes while
// its status is written. The package never grants anything besides. Its
// invariant: what is granted and what is called are the same.
package roles_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/machine"
	"github.com/homeostat-dev/homeostat/operators/memcached"
	"github.com/homeostat-dev/homeostat/operators/netperf"
	"github.com/homeostat-dev/homeostat/operators/webserver"
	"github.com/homeostat-dev/homeostat/test/planetest"
)

// lives are the processes in which shipped operators run, and what happens to each.
var lives = map[string]struct {
	operators []*operator.Operator
	life      func(*world)
}{
	"memcached": {[]*operator.Operator{memcached.Operator}, memcachedLife},
	"webserver": {[]*operator.Operator{webserver.Operator}, webserverLife},
	"netperf":   {[]*operator.Operator{netperf.Operator}, netperfLife},
	"machines":  {[]*operator.Operator{machine.Machine, machine.Switch}, machineLife},
}

// call is a verb on a resource or a subresource.
type call struct{ group, resource, verb string }

func (c call) String() string {
	if c.group == "" {
		return c.verb + " " + c.resource
	}
	return c.verb + " " + c.resource + "." + c.group
}

// inPassing are verbs that no request carries, and so no audit log: the API
// server asks for them while it carries out another one.
func inPassing(c call, ops []*operator.Operator) (why string) {
	for _, op := range ops {
		for _, child := range op.Children {
			switch c {
			case call{child.Kind.Group, child.Kind.GVR().Resource, "create"}:
				return "an apply that creates is a patch; see TestApplyThatCreatesNeedsCreate"
			case call{op.Parent.Group, op.Parent.GVR().Resource + "/finalizers", "update"}:
				return "a child's owner reference blocks the parent's deletion, which the admission plugin " +
					"OwnerReferencesPermissionEnforcement allows to those who may update its finalizers; this plane runs without the plugin"
			}
		}
	}
	return ""
}

func TestCallsAreTheRole(t *testing.T) {
	for name, l := range lives {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, l.operators, nil)
			begin := time.Now()
			stop := w.run()
			l.life(w)
			stop()
			differences, table := compare(granted(w), used(t, w, begin), l.operators)
			t.Logf("verbs granted, and how often each was called:\n%s", strings.Join(table, "\n"))
			for _, d := range differences {
				t.Error(d)
			}
		})
	}
}

// compare lists every difference between the two that has no reason, and tells
// what was called how often.
func compare(granted map[call]bool, used map[call]int, ops []*operator.Operator) (differences, table []string) {
	differ := func(format string, args ...any) { differences = append(differences, fmt.Sprintf(format, args...)) }
	rows := map[string][]string{}
	for c := range granted {
		why := inPassing(c, ops)
		what, mark := c.resource, fmt.Sprintf("%s %d", c.verb, used[c])
		if c.group != "" {
			what += "." + c.group
		}
		switch {
		case used[c] == 0 && why == "":
			differ("%v is granted and was never called: grant it no more in internal/manifest, or let the life of the operator need it", c)
		case used[c] == 0:
			mark = c.verb + " in passing"
		case why != "":
			differ("%v was called, although it is listed as something that no request carries: %s", c, why)
		}
		rows[what] = append(rows[what], mark)
	}
	for c := range used {
		if !granted[c] {
			differ("%v was called and is not granted", c)
		}
	}
	for _, what := range slices.Sorted(maps.Keys(rows)) {
		slices.Sort(rows[what])
		table = append(table, fmt.Sprintf("%-50s %s", what, strings.Join(rows[what], ", ")))
	}
	return differences, table
}

// TestCompareCatches seeds one difference of each kind.
func TestCompareCatches(t *testing.T) {
	ops := []*operator.Operator{memcached.Operator}
	list, create := call{"apps", "deployments", "list"}, call{"apps", "deployments", "create"}
	for name, c := range map[string]struct {
		granted map[call]bool
		used    map[call]int
		want    int
	}{
		"the same":                {map[call]bool{list: true}, map[call]int{list: 1}, 0},
		"granted and not called":  {map[call]bool{list: true}, nil, 1},
		"called and not granted":  {nil, map[call]int{list: 1}, 1},
		"asked in passing":        {map[call]bool{create: true}, nil, 0},
		"in passing, yet called":  {map[call]bool{create: true}, map[call]int{create: 1}, 1},
		"one of each, two faults": {map[call]bool{list: true}, map[call]int{{"", "pods", "list"}: 1}, 2},
	} {
		if differences, _ := compare(c.granted, c.used, ops); len(differences) != c.want {
			t.Errorf("%s: %d differences, want %d: %v", name, len(differences), c.want, differences)
		}
	}
}

// granted are the verbs of all roles of the operators' identity.
func granted(w *world) map[call]bool {
	out := map[call]bool{}
	for _, o := range w.permissions {
		role, ok := o.(*rbacv1.Role)
		if !ok {
			continue
		}
		for _, r := range role.Rules {
			for _, group := range r.APIGroups {
				for _, resource := range r.Resources {
					for _, verb := range r.Verbs {
						out[call{group, resource, verb}] = true
					}
				}
			}
		}
	}
	return out
}

// used are the calls of the operators' identity; one that was forbidden fails the test.
func used(t *testing.T, w *world, since time.Time) map[call]int {
	t.Helper()
	out := map[call]int{}
	for _, r := range w.plane.Requests(t, planetest.Match{User: w.user()}, since) {
		if r.Code == http.StatusForbidden {
			t.Errorf("forbidden: %v", r)
		}
		if r.Resource == "" {
			continue // What the server serves, which everybody may ask.
		}
		c := call{r.Group, r.Resource, r.Verb}
		if r.Subresource != "" {
			c.resource += "/" + r.Subresource
		}
		out[c]++
	}
	if len(out) == 0 {
		t.Fatalf("the audit log has no call of %s", w.user())
	}
	return out
}

// TestApplyThatCreatesNeedsCreate takes the verb away that no request carries.
func TestApplyThatCreatesNeedsCreate(t *testing.T) {
	w := newWorld(t, []*operator.Operator{memcached.Operator}, func(r *rbacv1.PolicyRule) {
		if slices.Contains(r.Resources, "deployments") {
			r.Verbs = slices.DeleteFunc(r.Verbs, func(v string) bool { return v == "create" })
		}
	})
	begin := time.Now()
	stop := w.run()
	w.create(memcacheds, "{apiVersion: cache.example.com/v1alpha1, kind: Memcached, metadata: {name: m}, spec: {size: 1}}")
	w.until("the condition says that the Deployment is forbidden", func() (bool, string) {
		message := w.condition(memcacheds, "m", "Stalled", "Forbidden")
		return strings.Contains(message, "create Deployment"), message
	})
	stop()
	for _, r := range w.plane.Requests(t, planetest.Match{User: w.user()}, begin) {
		if r.Resource == "deployments" && r.Code == http.StatusForbidden && r.Verb == "patch" {
			return
		}
	}
	t.Error("no apply was forbidden")
}

// TestNothingBesides keeps the role from going beyond the declared kinds.
func TestNothingBesides(t *testing.T) {
	for name, l := range lives {
		for _, r := range manifest.Rules(l.operators) {
			for _, all := range [][]string{r.APIGroups, r.Resources, r.Verbs} {
				if slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, "*") }) {
					t.Errorf("%s: a wildcard in %v", name, r)
				}
			}
		}
	}
}
