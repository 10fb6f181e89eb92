package demo

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestSample keeps the demo at the documented sample.
func TestSample(t *testing.T) {
	file, err := os.ReadFile("../../../operators/memcached/samples/" + sampleFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(file), sample); diff != "" {
		t.Errorf("the demo's sample is not the operator's (-file +demo)\n%s", diff)
	}
}

// TestStory holds the table to what the runner relies on.
func TestStory(t *testing.T) {
	for _, s := range Memcached().Steps {
		switch {
		case s.Settles == nil:
			t.Errorf("step %q waits for nothing", s.Name)
		case s.Begins == nil && s.Heals != nil:
			t.Errorf("step %q heals from a moment that nothing marks", s.Name)
		case s.Refused && s.Says == "":
			t.Errorf("step %q may be refused for any reason", s.Name)
		}
	}
}

func TestQuoted(t *testing.T) {
	for want, c := range map[string]Command{
		`scale deployment web --replicas 1`:      Kubectl("scale", "deployment", "web", "--replicas", "1"),
		`patch memcached a -p '{"spec":{}}'`:     Kubectl("patch", "memcached", "a", "-p", `{"spec":{}}`),
		"apply -f - <<EOF\n    kind: A\n    EOF": {Args: []string{"apply", "-f", "-"}, Stdin: "kind: A\n"},
	} {
		if got := quoted(c); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}
