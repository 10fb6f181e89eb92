// Package manifest derives, from the declaration of operators, everything that
// must be in a cluster for them to run: definitions, identity, permissions and
// a Deployment. Its functions are pure: no client, no file, no clock. They never
// grant a wildcard or a verb that the engine does not use. Their invariant: the
// same declaration gives the same objects in the same order, an object after
// those it needs.
package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/homeostat-dev/homeostat/operator"
)

// Part is a group of objects that is installed together.
type Part string

// The parts, in the order of installation. Whoever may install the first two is
// often not who may install the third.
const (
	CRDs       Part = "crds"
	RBAC       Part = "rbac"
	Deployment Part = "deployment"
)

// Parts are all parts, in the order of installation.
func Parts() []Part { return []Part{CRDs, RBAC, Deployment} }

// Options are what the declaration does not say.
type Options struct {
	// Namespace is where the operators run; empty means Name of them.
	Namespace string
	// Watch is the one namespace they look after; empty means all.
	Watch string
	// Image and Replicas are those of the Deployment.
	Image    string
	Replicas int32
	// Only limits the result to some parts; empty means all.
	Only []Part
}

// nameLimit leaves room for suffixes in labels of at most 63 characters.
const nameLimit = 50

// Name is what the process that runs the operators is called: its namespace,
// service account, roles, lease and Deployment have this name.
func Name(ops []*operator.Operator) string {
	names := make([]string, 0, len(ops))
	for _, o := range ops {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	name := strings.Join(names, "-")
	if limit := nameLimit - len("-operator"); len(name) > limit {
		name = strings.TrimRight(name[:limit], "-")
	}
	return name + "-operator"
}

// Objects are the objects of the chosen parts.
func Objects(ops []*operator.Operator, o Options) ([]runtime.Object, error) {
	if o.Namespace == "" {
		o.Namespace = Name(ops)
	}
	if err := o.validate(ops); err != nil {
		return nil, err
	}
	var out []runtime.Object
	if o.has(CRDs) {
		out = append(out, Definitions(ops)...)
	}
	if o.has(RBAC) {
		out = append(out, namespace(o.Namespace))
		out = append(out, Permissions(ops, o)...)
	}
	if o.has(Deployment) {
		out = append(out, deployment(ops, o))
	}
	return out, nil
}

func (o Options) has(p Part) bool { return len(o.Only) == 0 || slices.Contains(o.Only, p) }

func (o Options) validate(ops []*operator.Operator) error {
	var errs []error
	for _, p := range o.Only {
		if !slices.Contains(Parts(), p) {
			errs = append(errs, fmt.Errorf("part %q is not known: use crds, rbac or deployment", p))
		}
	}
	for _, n := range []string{o.Namespace, o.Watch} {
		if n == "" {
			continue
		}
		for _, m := range validation.IsDNS1123Label(n) {
			errs = append(errs, fmt.Errorf("namespace %q: %s", n, m))
		}
	}
	if o.has(Deployment) && o.Image == "" {
		errs = append(errs, errors.New("the Deployment needs an image: give --image, or leave it out with --only crds,rbac"))
	}
	if o.Watch != "" {
		errs = append(errs, namespaced(ops))
	}
	return errors.Join(errs...)
}

// namespaced complains when the operators cannot be confined to a namespace.
func namespaced(ops []*operator.Operator) error {
	for _, op := range ops {
		for _, k := range op.Kinds() {
			if k.ClusterScoped {
				return fmt.Errorf("operator %s uses %v, which has no namespace: it cannot be confined to one", op.Name, k)
			}
		}
	}
	return nil
}

// Definitions are the CustomResourceDefinitions of the operators that own their
// parent's kind, each once, by name.
func Definitions(ops []*operator.Operator) []runtime.Object {
	byName := map[string]runtime.Object{}
	var names []string
	for _, op := range ops {
		if op.CRD == nil || byName[op.CRD.Name] != nil {
			continue
		}
		crd := op.CRD.DeepCopy()
		crd.APIVersion, crd.Kind = "apiextensions.k8s.io/v1", "CustomResourceDefinition"
		byName[crd.Name] = crd
		names = append(names, crd.Name)
	}
	slices.Sort(names)
	out := make([]runtime.Object, 0, len(names))
	for _, n := range names {
		out = append(out, byName[n])
	}
	return out
}

func namespace(name string) *corev1.Namespace {
	return &corev1.Namespace{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Namespace"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{
			"pod-security.kubernetes.io/enforce": "restricted",
		}},
	}
}

func labels(name string) map[string]string {
	return map[string]string{"app.kubernetes.io/name": name, "app.kubernetes.io/component": "operator"}
}
