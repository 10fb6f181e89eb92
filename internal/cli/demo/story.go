package demo

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/homeostat-dev/homeostat/operator"
)

// Story is what an operator does, told in steps.
type Story struct {
	// Name is one word, for the command line and the table.
	Name string
	// Title is the first line.
	Title string
	// Operators are run, confined to one namespace, with exactly the role that
	// is derived from them.
	Operators []*operator.Operator
	// Watch are the kinds whose objects the conditions of steps speak of.
	Watch []operator.Kind
	// Files are written to the folder in which commands run, by name.
	Files map[string]string
	// Steps are told in order; one that fails ends the story.
	Steps []Step
	// Encore are commands that leave something to look at, for --keep.
	Encore []Command
}

// collectorNote is for the first step of a story that deletes a parent.
const collectorNote = "the children go by Kubernetes' garbage collector, which looks for new kinds every 30 s;\n" +
	"   a cluster that has just learnt the kind may take that long, once"

// Stories are all of them, in the order in which they are told.
func Stories() []Story { return []Story{Memcached(), WebServer()} }

// Step is one thing that a user does, and what must come of it.
type Step struct {
	// Name is a few words for the table.
	Name string
	// Note, where set, is said before: what a reader would wonder about.
	Note string
	// Run is what the user does.
	Run Command
	// Refused is true when the command must fail, mentioning Says.
	Refused bool
	Says    string
	// Begins, where set, holds once what the user did is seen; times count from
	// then. Heals holds when the operator has done its part, where it has one,
	// Settles when the cluster has followed. A step whose command changes nothing
	// has Settles only, and no time.
	Begins, Heals, Settles Condition
	// Show are commands that print the result.
	Show []Command
	// Within is the deadline; zero means DefaultDeadline.
	Within time.Duration
}

// DefaultDeadline is generous: a cluster with real nodes pulls images.
const DefaultDeadline = 3 * time.Minute

// Command is a kubectl command line, without the word kubectl.
type Command struct {
	Args []string
	// Stdin is given to the command and shown with it.
	Stdin string
}

// Kubectl makes a Command.
func Kubectl(args ...string) Command { return Command{Args: args} }

// Condition looks at the world and says whether it holds and, for people, what
// there is instead. It must not keep the objects.
type Condition func(World) (holds bool, seen string)

// World is what has been observed in the story's namespace.
type World map[schema.GroupVersionKind]map[string]Object

// Object is an observed object, as JSON values.
type Object map[string]any

// at is the object of a kind, nil when there is none.
func (w World) at(kind operator.Kind, name string) Object { return w[kind.GroupVersionKind][name] }

// get is a field of the object, nil when it is absent.
func (o Object) get(path ...string) any {
	var v any = map[string]any(o)
	for _, p := range path {
		m, ok := v.(map[string]any)
		if !ok {
			return nil
		}
		v = m[p]
	}
	return v
}

// list is a field that is a list of objects, nil when it is absent.
func (o Object) list(path ...string) []Object {
	var out []Object
	items, _ := o.get(path...).([]any)
	for _, item := range items {
		if m, ok := item.(map[string]any); ok {
			out = append(out, m)
		}
	}
	return out
}

// number is a field as an integer, zero when it is absent.
func (o Object) number(path ...string) int64 {
	n, _ := o.get(path...).(int64)
	return n
}

// all holds when every condition does; what is seen is said of the first that
// does not.
func all(conditions ...Condition) Condition {
	return func(w World) (bool, string) {
		for _, c := range conditions {
			if ok, seen := c(w); !ok {
				return false, seen
			}
		}
		return true, ""
	}
}

// gone holds when there is no object of the kinds.
func gone(kinds ...operator.Kind) Condition {
	return func(w World) (bool, string) {
		for _, k := range kinds {
			for name := range w[k.GroupVersionKind] {
				return false, fmt.Sprintf("%s %s is still there", k.Kind, name)
			}
		}
		return true, ""
	}
}

// absent holds when one object is not there.
func absent(kind operator.Kind, name string) Condition {
	return func(w World) (bool, string) {
		return w.at(kind, name) == nil, fmt.Sprintf("%s %s is there", kind.Kind, name)
	}
}

// field holds when a field of an object has the value.
func field(kind operator.Kind, name string, want any, path ...string) Condition {
	return func(w World) (bool, string) {
		o := w.at(kind, name)
		if o == nil {
			return false, fmt.Sprintf("there is no %s %s", kind.Kind, name)
		}
		got := o.get(path...)
		return got == want, fmt.Sprintf("%s %s has %v = %v, not %v", kind.Kind, name, path, got, want)
	}
}
