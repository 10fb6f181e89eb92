package demo

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// TestSamples keeps the demo at the documented samples.
func TestSamples(t *testing.T) {
	for path, sample := range map[string]string{
		"memcached/samples/" + memcachedFile: memcachedSample,
		"webserver/samples/" + webserverFile: webserverSample,
	} {
		file, err := os.ReadFile("../../../operators/" + path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(file), sample); diff != "" {
			t.Errorf("the demo's sample is not %s (-file +demo)\n%s", path, diff)
		}
	}
}

// TestStories holds the tables to what the runner relies on.
func TestStories(t *testing.T) {
	for _, story := range Stories() {
		for _, s := range story.Steps {
			switch {
			case s.Settles == nil:
				t.Errorf("%s, step %q: it waits for nothing", story.Name, s.Name)
			case s.Begins == nil && s.Heals != nil:
				t.Errorf("%s, step %q: it heals from a moment that nothing marks", story.Name, s.Name)
			case s.Refused && s.Says == "":
				t.Errorf("%s, step %q: it may be refused for any reason", story.Name, s.Name)
			}
		}
	}
}

func TestChosen(t *testing.T) {
	for only, want := range map[string][]string{"": {"memcached", "webserver"}, "webserver": {"webserver"}, "nginx": nil} {
		stories, err := chosen(Stories(), only)
		if diff := cmp.Diff(want, names(stories), cmpopts.EquateEmpty()); diff != "" || (err == nil) == (want == nil) {
			t.Errorf("--only %q: %v\n(-want +got)\n%s", only, err, diff)
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
