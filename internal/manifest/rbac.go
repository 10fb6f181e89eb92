package manifest

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/homeostat-dev/homeostat/operator"
)

// What the engine does to each kind, and so what it may do; nothing else is granted.
var (
	// Every kind is listed and watched. A child that an answer proved newer than
	// the cache is read again, and so is a parent before anything is adopted.
	parentVerbs = []string{"get", "list", "watch"}
	// An apply that creates needs patch and create; Strip, Adopt and Release are patches.
	childVerbs = []string{"get", "list", "watch", "create", "patch", "delete"}
	readVerbs  = []string{"list", "watch"}
	// Children name their parent with blockOwnerDeletion, which takes the right
	// to update the parent's finalizers where that is enforced.
	finalizerVerbs = []string{"update"}
	statusVerbs    = []string{"patch"}
	// Fields of its own spec that the parent declares in ParentSets are patched.
	setVerbs   = []string{"patch"}
	eventVerbs = []string{"create"}
)

// target is one thing that rules speak of.
type target struct{ group, name string }

// grants are the verbs on each resource.
type grants map[target]map[string]bool

func (g grants) add(group, name string, verbs ...string) {
	r := target{group, name}
	if g[r] == nil {
		g[r] = map[string]bool{}
	}
	for _, v := range verbs {
		g[r][v] = true
	}
}

// Rules are what the operators' identity may do with parents, children and what
// they read. A kind that is used in several ways gets one rule.
func Rules(ops []*operator.Operator) []rbacv1.PolicyRule {
	g := grants{}
	for _, op := range ops {
		parent := op.Parent.GVR()
		g.add(parent.Group, parent.Resource, parentVerbs...)
		g.add(parent.Group, parent.Resource+"/status", statusVerbs...)
		if len(op.ParentSets) > 0 {
			g.add(parent.Group, parent.Resource, setVerbs...)
		}
		for _, c := range op.Children {
			g.add(parent.Group, parent.Resource+"/finalizers", finalizerVerbs...)
			g.add(c.Kind.Group, c.Kind.GVR().Resource, childVerbs...)
		}
		for _, r := range op.Reads {
			g.add(r.Kind.Group, r.Kind.GVR().Resource, readVerbs...)
		}
	}
	g.add(corev1.GroupName, "events", eventVerbs...)
	return g.rules()
}

// rules puts resources of one group with the same verbs into one rule, sorted.
func (g grants) rules() []rbacv1.PolicyRule {
	resources := map[[2]string][]string{}
	for r, verbs := range g {
		k := [2]string{r.group, strings.Join(ordered(verbs), " ")}
		resources[k] = append(resources[k], r.name)
	}
	out := make([]rbacv1.PolicyRule, 0, len(resources))
	for k, names := range resources {
		slices.Sort(names)
		out = append(out, rbacv1.PolicyRule{APIGroups: []string{k[0]}, Resources: names, Verbs: strings.Fields(k[1])})
	}
	slices.SortFunc(out, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), slices.Compare(a.Resources, b.Resources))
	})
	return out
}

// ordered are the verbs in the order in which people write them.
func ordered(verbs map[string]bool) []string {
	order := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	return slices.SortedFunc(maps.Keys(verbs), func(a, b string) int {
		return cmp.Compare(slices.Index(order, a), slices.Index(order, b))
	})
}

// leaseRules are what electing a leader takes, in the operators' own namespace.
// RBAC cannot confine a creation to a name; the rest is confined to the lease.
func leaseRules(lease string) []rbacv1.PolicyRule {
	group := coordinationv1.GroupName
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: eventVerbs},
		{APIGroups: []string{group}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{group}, Resources: []string{"leases"}, ResourceNames: []string{lease}, Verbs: []string{"get", "update"}},
	}
}

// Permissions are the operators' identity, its role and the binding of the two:
// cluster-wide, or in one namespace where Options.Watch names it; and the role
// for the lease in the namespace in which they run.
func Permissions(ops []*operator.Operator, o Options) []runtime.Object {
	name := Name(ops)
	out := []runtime.Object{&corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: o.Namespace, Labels: labels(name)},
	}}
	election := name + "-leader-election"
	return append(out,
		role(o.Watch, name, name, Rules(ops)),
		binding(o.Watch, name, name, o.Namespace),
		role(o.Namespace, election, name, leaseRules(name)),
		binding(o.Namespace, election, name, o.Namespace))
}

// role is a Role in a namespace or, where that is empty, a ClusterRole.
func role(namespace, name, program string, rules []rbacv1.PolicyRule) runtime.Object {
	meta := metav1.ObjectMeta{Name: name, Namespace: namespace, Labels: labels(program)}
	version := rbacv1.SchemeGroupVersion.String()
	if namespace == "" {
		return &rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRole"}, ObjectMeta: meta, Rules: rules}
	}
	return &rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "Role"}, ObjectMeta: meta, Rules: rules}
}

// binding gives the role of that name to a service account, in a namespace or,
// where that is empty, everywhere.
func binding(namespace, role, account, accountNamespace string) runtime.Object {
	meta := metav1.ObjectMeta{Name: role, Namespace: namespace, Labels: labels(account)}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: accountNamespace}}
	version := rbacv1.SchemeGroupVersion.String()
	if namespace == "" {
		return &rbacv1.ClusterRoleBinding{
			TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "ClusterRoleBinding"}, ObjectMeta: meta, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		}
	}
	return &rbacv1.RoleBinding{
		TypeMeta: metav1.TypeMeta{APIVersion: version, Kind: "RoleBinding"}, ObjectMeta: meta, Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
}
