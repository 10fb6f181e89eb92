package verb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"github.com/homeostat-dev/homeostat/engine"
	"github.com/homeostat-dev/homeostat/internal/command"
)

const (
	// defaultAddress is where an operator started with the port of the manifests
	// answers on this machine.
	defaultAddress = "http://127.0.0.1:8080"
	defaultPort    = "8080"
	// whyTimeout bounds the question, and maxAnswer what is read of the answer.
	whyTimeout = 15 * time.Second
	maxAnswer  = 8 << 20
)

type whyOptions struct{ address, pod, output string }

// Why is the command that asks a running operator about one parent.
func Why(program string) *cobra.Command {
	o := &whyOptions{}
	cluster := connection(true)
	c := &cobra.Command{
		Use:   "why KIND NAME",
		Short: "Ask a running operator what it did last for an object, and why",
		Long: `Ask a running operator what woke an object last, what was decided, what was written
with the fields that changed, and when the object is looked at again. Nothing is
changed, and no field of a Secret is shown.

The operator answers where it serves its metrics. On this machine run it with
--metrics-bind-address :8080; in a cluster name its pod, which is reached through
the API server and takes the right to get pods/proxy. Of several replicas the
leader knows.

` + command.Codes,
		Example: examples(program, `
# An operator on this machine.
{} why memcached memcached-sample

# One in a cluster, about an object in another namespace, for a program.
{} why memcached cache -n shop --pod memcached-operator/memcached-operator-7d9c4 -o json`),
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error { return o.run(c, cluster, args[0], args[1]) },
	}
	cluster.AddFlags(c.Flags())
	f := c.Flags()
	f.StringVar(&o.address, "address", defaultAddress, "where the operator serves its metrics")
	f.StringVar(&o.pod, "pod", "", "the operator's pod as NAMESPACE/NAME or NAMESPACE/NAME:PORT, reached through the API server")
	c.MarkFlagsMutuallyExclusive("address", "pod")
	outputFlag(c, &o.output, "text", "text", "json", "yaml")
	return c
}

func (o *whyOptions) run(c *cobra.Command, cluster *genericclioptions.ConfigFlags, kind, name string) error {
	namespace, _, err := cluster.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return fmt.Errorf("find the namespace: %w; give --namespace", err)
	}
	ctx, cancel := context.WithTimeout(c.Context(), whyTimeout)
	defer cancel()
	query := url.Values{"kind": {kind}, "namespace": {namespace}, "name": {name}}
	var answer engine.WhyAnswer
	if o.pod == "" {
		answer, err = askAddress(ctx, o.address, query)
	} else {
		answer, err = o.askPod(ctx, cluster, query)
	}
	if err != nil {
		return err
	}
	if o.output != "text" {
		return encode(c.OutOrStdout(), o.output, answer.Records)
	}
	_, err = io.WriteString(c.OutOrStdout(), because(answer.Records, time.Now()))
	return err
}

// askAddress asks an operator that can be reached directly.
func askAddress(ctx context.Context, address string, query url.Values) (engine.WhyAnswer, error) {
	base, err := url.Parse(address)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return engine.WhyAnswer{}, command.Usagef("--address is %q; it must be like %s", address, defaultAddress)
	}
	at := base.JoinPath(engine.WhyPath)
	at.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return engine.WhyAnswer{}, fmt.Errorf("ask %s: %w", address, err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return engine.WhyAnswer{}, fmt.Errorf("no operator answers at %s: %w; run it with --metrics-bind-address, or name its pod with --pod", address, err)
	}
	defer response.Body.Close() //nolint:errcheck // The answer has been read.
	body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return engine.WhyAnswer{}, fmt.Errorf("read the answer of %s: %w", address, err)
	}
	return understand(address, response.StatusCode, body)
}

// askPod asks an operator through the API server's proxy.
func (o *whyOptions) askPod(ctx context.Context, cluster *genericclioptions.ConfigFlags, query url.Values) (engine.WhyAnswer, error) {
	var none engine.WhyAnswer
	namespace, name, ok := strings.Cut(o.pod, "/")
	if !ok || namespace == "" || name == "" || strings.Contains(name, "/") {
		return none, command.Usagef("--pod is %q; it must be NAMESPACE/NAME or NAMESPACE/NAME:PORT", o.pod)
	}
	if !strings.Contains(name, ":") {
		name += ":" + defaultPort
	}
	config, err := configOf(cluster)
	if err != nil {
		return none, err
	}
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return none, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	request := client.Get().AbsPath("/api/v1/namespaces", namespace, "pods", name, "proxy", engine.WhyPath)
	for k, v := range query {
		request.Param(k, v[0])
	}
	var code int
	result := request.Do(ctx).StatusCode(&code)
	body, _ := result.Raw()
	err = result.Error()
	if code == 0 || !json.Valid(body) || isStatus(body) {
		if err == nil {
			err = errors.New("the answer is no record")
		}
		advice := "see that the pod runs and serves its metrics at that port"
		if apierrors.IsForbidden(err) {
			advice = "it takes the right to get pods/proxy"
		}
		return none, fmt.Errorf("ask pod %s: %w; %s", o.pod, err, advice)
	}
	return understand("pod "+o.pod, code, body)
}

// isStatus reports whether an answer is the API server's own, not the pod's.
func isStatus(body []byte) bool {
	var meta struct{ Kind, APIVersion string }
	return json.Unmarshal(body, &meta) == nil && meta.Kind == "Status" && meta.APIVersion == "v1"
}

// understand tells an operator's answer from everything else that may answer there.
func understand(who string, code int, body []byte) (engine.WhyAnswer, error) {
	var answer engine.WhyAnswer
	err := json.Unmarshal(body, &answer)
	switch {
	case err == nil && answer.Error != "":
		return answer, fmt.Errorf("%s: %s", who, answer.Error)
	case err == nil && len(answer.Records) > 0:
		return answer, nil
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return answer, fmt.Errorf("%s does not let you see its metrics (%d), and so not its records", who, code)
	}
	return answer, fmt.Errorf("what answers at %s (%d) is no operator that serves records", who, code)
}

// because is the records for people.
func because(records []engine.Record, now time.Time) string {
	var b strings.Builder
	for i, r := range records {
		if i > 0 {
			b.WriteString("\n")
		}
		about(&b, r, now)
	}
	return b.String()
}

func about(b *strings.Builder, r engine.Record, now time.Time) {
	line := func(label, format string, args ...any) {
		_, _ = fmt.Fprintf(b, "%-9s %s\n", label, fmt.Sprintf(format, args...))
	}
	at := r.Name
	if r.Namespace != "" {
		at = r.Namespace + "/" + r.Name
	}
	_, _ = fmt.Fprintf(b, "%s %s (operator %s)\n", r.Kind, at, r.Operator)
	if last := r.Last; last != nil {
		line("woken", "%s, %s", last.Woken, ago(last.Began, now))
		line("decided", "%s", decided(last))
		line("written", "%s", sum(last))
		operations(b, last)
		line("ended", "%s (pass %d, %s)", ending(last), last.Pass, last.Ended.Sub(last.Began).Round(10*time.Microsecond))
	} else {
		line("woken", "%s; no pass has ended yet", r.Woken)
	}
	line("next", "%s", next(r, now))
	if w := r.Wrote; w != nil {
		b.WriteString("\n")
		line("before", "the last write besides status was in pass %d, %s, woken by: %s", w.Pass, ago(w.Began, now), w.Woken)
		operations(b, w)
		if !w.Settled {
			line("", "it ended: %s", ending(w))
		}
	}
}

func decided(p *engine.PassRecord) string {
	switch d := p.Decided; {
	case d == nil:
		return "nothing: there is no usable answer"
	case d.Until != nil:
		return fmt.Sprintf("%s, until %s", children(d.Children), d.Until.Local().Format(time.RFC3339))
	default:
		return children(d.Children) + ", as long as nothing changes"
	}
}

func children(n int) string {
	if n == 1 {
		return "1 child"
	}
	return fmt.Sprintf("%d children", n)
}

func sum(p *engine.PassRecord) string {
	n := len(p.Operations) + p.Omitted
	switch {
	case n == 0:
		return "nothing, all was as decided"
	case p.Omitted > 0:
		return fmt.Sprintf("%d operations, the last %d of them:", n, len(p.Operations))
	case n == 1:
		return "1 operation"
	}
	return fmt.Sprintf("%d operations in %d rounds", n, p.Rounds)
}

func operations(b *strings.Builder, p *engine.PassRecord) {
	for _, op := range p.Operations {
		at := op.Name
		if op.Namespace != "" {
			at = op.Namespace + "/" + op.Name
		}
		_, _ = fmt.Fprintf(b, "  %s %s %s: %s → %s\n", op.Verb, op.Kind, at, op.Reason, op.Answer)
		for _, c := range op.Changes {
			if c.From == c.To && !strings.HasPrefix(c.From, "(") {
				_, _ = fmt.Fprintf(b, "      %s: %s\n", c.Path, unowned)
				continue
			}
			_, _ = fmt.Fprintf(b, "      %s: %s → %s\n", c.Path, orAbsent(c.From), orAbsent(c.To))
		}
		if op.Omitted > 0 {
			_, _ = fmt.Fprintf(b, "      and %d more\n", op.Omitted)
		}
	}
}

func orAbsent(text string) string {
	if text == "" {
		return value(nil)
	}
	return text
}

func ending(p *engine.PassRecord) string {
	if p.Settled {
		return "all is written as decided"
	}
	return "not as desired: " + p.Trouble
}

func next(r engine.Record, now time.Time) string {
	switch r.State {
	case engine.Running:
		return "it is being looked at now"
	case engine.Due:
		return "it is due now, woken by: " + r.Woken
	case engine.Waiting:
		when := "now"
		if left := r.Next.Sub(now); left > 0 {
			when = "in " + duration.HumanDuration(left)
		}
		if r.Failures > 0 {
			return fmt.Sprintf("again %s, after %d passes that did not bring it to rest, or when something changes", when, r.Failures)
		}
		return "again " + when + ", or when something changes"
	}
	return "when something changes"
}

func ago(t, now time.Time) string { return duration.HumanDuration(now.Sub(t)) + " ago" }
