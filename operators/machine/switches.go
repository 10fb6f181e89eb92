package machine

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/operators/machine/v1alpha1"
)

// noLetter stands for a switch whose position begins with nothing that can be
// shown, so that the third letter is always the third switch.
const noLetter = '?'

// positions are the first letters of the live switches, which come sorted by name.
func positions(switches []*v1alpha1.Switch) string {
	var letters strings.Builder
	for _, s := range live(switches) {
		first, _ := utf8.DecodeRuneInString(s.Spec.Position)
		if first == utf8.RuneError || !unicode.IsGraphic(first) || unicode.IsSpace(first) {
			first = noLetter
		}
		letters.WriteRune(first)
	}
	return letters.String()
}

func live(switches []*v1alpha1.Switch) []*v1alpha1.Switch {
	return slices.DeleteFunc(slices.Clone(switches), going)
}

func going(s *v1alpha1.Switch) bool { return s.DeletionTimestamp != nil }

// keep are the n oldest live switches, sorted by name. One that somebody made by
// hand counts like any other.
func keep(n int, switches []*v1alpha1.Switch) []*v1alpha1.Switch {
	oldest := live(switches)
	slices.SortStableFunc(oldest, func(a, b *v1alpha1.Switch) int {
		return cmp.Or(a.CreationTimestamp.Time.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Name, b.Name))
	})
	kept := oldest[:min(n, len(oldest))]
	slices.SortFunc(kept, func(a, b *v1alpha1.Switch) int { return cmp.Compare(a.Name, b.Name) })
	return kept
}

// missing are the names of the switches to make: the first that are free. One
// that is still going away keeps its name and comes back under it.
func missing(m *v1alpha1.Machine, r operator.Request, kept []*v1alpha1.Switch) []string {
	var names []string
	for slot := 0; len(kept)+len(names) < int(m.Spec.Switches); slot++ {
		name := operator.Name("switch-", m.UID, strconv.Itoa(slot))
		isKept := slices.ContainsFunc(kept, func(s *v1alpha1.Switch) bool { return s.Name == name })
		if !isKept && !operator.IsTaken[v1alpha1.Switch](r, name) {
			names = append(names, name)
		}
	}
	return names
}

func newSwitch(m *v1alpha1.Machine, name string) *v1alpha1.Switch {
	return &v1alpha1.Switch{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{machineLabel: m.Name}},
		Spec:       v1alpha1.SwitchSpec{Position: down},
	}
}

// keepAll leaves switches as they are: a machine that wants none may still have
// some from before, or from somebody else.
func keepAll(switches []*v1alpha1.Switch) []operator.Object {
	var out []operator.Object
	for _, s := range switches {
		out = append(out, operator.Keep(s))
	}
	return out
}
