package roles_test

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat"
	"github.com/homeostat-dev/homeostat/internal/command"
	"github.com/homeostat-dev/homeostat/internal/manifest"
	"github.com/homeostat-dev/homeostat/operator"
	"github.com/homeostat-dev/homeostat/test/planetest"
)

// world is a namespace with operators in it, and a client of the administrator's.
type world struct {
	t           *testing.T
	plane       *planetest.Plane
	namespace   string
	client      dynamic.Interface
	operators   []*operator.Operator
	permissions []runtime.Object
	proxy       *proxy
	config      string
	// stopped is closed when the operators have ended.
	stopped chan struct{}
}

// newWorld installs definitions, identity and role, which change may change first.
func newWorld(t *testing.T, ops []*operator.Operator, change func(*rbacv1.PolicyRule)) *world {
	t.Helper()
	plane := planetest.Start(t)
	client, err := dynamic.NewForConfig(plane.Config)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, plane: plane, client: client, operators: ops, namespace: plane.Namespace(t)}
	for _, crd := range manifest.Definitions(ops) {
		w.apply(crd)
	}
	for _, op := range ops {
		w.until(op.Parent.Kind+" is served", func() (bool, string) {
			_, err := client.Resource(op.Parent.GVR()).Namespace(w.namespace).List(t.Context(), metav1.ListOptions{Limit: 1})
			return err == nil, fmt.Sprint(err)
		})
	}
	w.permissions = manifest.Permissions(ops, manifest.Options{Namespace: w.namespace, Watch: w.namespace})
	for _, o := range w.permissions {
		if role, ok := o.(*rbacv1.Role); ok && change != nil {
			for i := range role.Rules {
				change(&role.Rules[i])
			}
		}
		w.apply(o)
	}
	w.proxy = newProxy(t, w)
	w.config = w.identity()
	return w
}

func (w *world) account() string { return manifest.Name(w.operators) }

func (w *world) user() string { return "system:serviceaccount:" + w.namespace + ":" + w.account() }

// identity writes a kubeconfig with which the operators reach the proxy.
func (w *world) identity() string {
	w.t.Helper()
	core, err := kubernetes.NewForConfig(w.plane.Config)
	if err != nil {
		w.t.Fatal(err)
	}
	token, err := core.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.t.Context(), w.account(), &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: w.proxy.address, CertificateAuthorityData: w.proxy.authority}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: token.Status.Token}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u", Namespace: w.namespace}
	config.CurrentContext = "x"
	path := filepath.Join(w.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		w.t.Fatal(err)
	}
	return path
}

// run runs the operators as their own program does, until stopped.
func (w *world) run() (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background()) // The test's own is over before the lease can be released.
	streams, _, _, log := genericiooptions.NewTestIOStreams()
	ended := make(chan int, 1)
	w.stopped = make(chan struct{})
	go func() {
		defer close(w.stopped)
		ended <- homeostat.Run(ctx, streams, []string{"run", "--kubeconfig", w.config, "--namespace", w.namespace,
			"--leader-elect", "--leader-election-namespace", w.namespace}, w.operators...)
	}()
	stop = sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != command.OK {
			w.t.Errorf("the program ended with exit code %d", code)
		}
		if w.t.Failed() {
			w.t.Logf("the operators said:\n%s", log)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

// proxy stands between operators and the API server and makes rare things happen.
type proxy struct {
	address   string
	authority []byte
	next      http.RoundTripper
	delete    func(resource, name string)

	mu    sync.Mutex
	once  map[string]bool
	going map[string]bool
	gets  map[string]bool
}

func newProxy(t *testing.T, w *world) *proxy {
	t.Helper()
	anonymous := rest.AnonymousClientConfig(w.plane.Config)
	transport, err := rest.TransportFor(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	target, _, err := rest.DefaultServerUrlFor(anonymous)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{next: transport, once: map[string]bool{}, going: map[string]bool{}, gets: map[string]bool{}}
	p.delete = func(resource, name string) {
		for _, op := range w.operators {
			if op.Parent.GVR().Resource == resource {
				w.remove(op.Parent.GVR(), name)
			}
		}
	}
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: target.Scheme, Host: target.Host}) },
		Transport: p, FlushInterval: -1,
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
	})
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	server.EnableHTTP2 = true
	server.StartTLS() // A kubeconfig's token is sent over TLS only.
	p.address = server.URL
	p.authority = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return p
}

// RoundTrip carries a request out, and whatever goes wrong with it.
func (p *proxy) RoundTrip(r *http.Request) (*http.Response, error) {
	segments := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	last := func(n int) string { return segments[max(0, len(segments)-n)] }
	switch {
	case r.Method == http.MethodGet && r.URL.Query().Has("sendInitialEvents") && p.first("stream of "+r.URL.Path):
		// As a server answers that does not send what there is in a watch.
		return answer(r, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)), nil
	case r.Method == http.MethodGet:
		p.note(last(2), last(1))
	case r.Method == http.MethodPatch && last(1) == "status" && p.isGoing(last(3), last(2)):
		p.delete(last(3), last(2))
	case r.Method == http.MethodPatch && last(1) != "status":
		return p.patch(r, last(2))
	}
	return p.next.RoundTrip(r)
}

// patch sends the first creation of a kind twice, as happens where an answer is lost on the way.
func (p *proxy) patch(r *http.Request, resource string) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	if bytes.Contains(body, []byte(`"resourceVersion":"1"`)) && p.first("creation of "+resource) {
		first := r.Clone(r.Context())
		first.Body = io.NopCloser(bytes.NewReader(body))
		response, err := p.next.RoundTrip(first)
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
	}
	return p.next.RoundTrip(r)
}

func answer(r *http.Request, refusal *apierrors.StatusError) *http.Response {
	status := refusal.Status()
	status.APIVersion, status.Kind = "v1", "Status"
	body, err := yaml.Marshal(status)
	if err == nil {
		body, err = yaml.YAMLToJSON(body)
	}
	if err != nil {
		body = nil
	}
	return &http.Response{
		StatusCode: int(status.Code), Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)),
	}
}

func (p *proxy) first(what string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.once[what]
	p.once[what] = true
	return !was
}

func (p *proxy) deleteBeforeStatus(resource, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.going[resource+"/"+name] = true
}

func (p *proxy) isGoing(resource, name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	going := p.going[resource+"/"+name]
	delete(p.going, resource+"/"+name)
	return going
}

func (p *proxy) note(resource, name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gets[resource+"/"+name] = true
}

func (p *proxy) sawGet(resource, name string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gets[resource+"/"+name]
}

func (w *world) apply(o runtime.Object) {
	w.t.Helper()
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		w.t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: values}
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	client := dynamic.ResourceInterface(w.client.Resource(gvr))
	if u.GetNamespace() != "" {
		client = w.client.Resource(gvr).Namespace(u.GetNamespace())
	}
	if _, err := client.Apply(w.t.Context(), u.GetName(), u, metav1.ApplyOptions{FieldManager: "test", Force: true}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create(resource schema.GroupVersionResource, manifest string) *unstructured.Unstructured {
	w.t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &o.Object); err != nil {
		w.t.Fatal(err)
	}
	created, err := w.client.Resource(resource).Namespace(w.namespace).Create(w.t.Context(), o, metav1.CreateOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return created
}

func (w *world) patch(resource schema.GroupVersionResource, name, patch string, subresources ...string) {
	w.t.Helper()
	data, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.client.Resource(resource).Namespace(w.namespace).Patch(w.t.Context(), name, types.MergePatchType, data,
		metav1.PatchOptions{FieldManager: "user"}, subresources...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(resource schema.GroupVersionResource, name string) {
	if err := w.client.Resource(resource).Namespace(w.namespace).Delete(w.t.Context(), name, metav1.DeleteOptions{}); err != nil {
		w.t.Errorf("delete %s %s: %v", resource.Resource, name, err)
	}
}

// get is an object, nil when it is not there.
func (w *world) get(resource schema.GroupVersionResource, name string) *unstructured.Unstructured {
	o, err := w.client.Resource(resource).Namespace(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return o
}

// list are the names of all objects of a resource.
func (w *world) list(resource schema.GroupVersionResource) []string {
	list, err := w.client.Resource(resource).Namespace(w.namespace).List(w.t.Context(), metav1.ListOptions{})
	if err != nil {
		return nil
	}
	var names []string
	for _, o := range list.Items {
		names = append(names, o.GetName())
	}
	return names
}

// until waits for a condition of the cluster, with a deadline.
func (w *world) until(what string, condition func() (ok bool, seen string)) {
	w.t.Helper()
	deadline := time.After(30 * time.Second)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, seen := condition()
		if ok {
			return
		}
		select {
		case <-w.stopped:
			w.t.Fatalf("%s: the operators have ended", what)
		case <-deadline:
			w.t.Fatalf("%s: not within 30 s; last seen: %s", what, seen)
		case <-tick.C:
		}
	}
}

func (w *world) untilField(resource schema.GroupVersionResource, name string, want any, path ...string) {
	w.t.Helper()
	w.until(fmt.Sprintf("%s of %s %s is %v", strings.Join(path, "."), resource.Resource, name, want), func() (bool, string) {
		o := w.get(resource, name)
		if o == nil {
			return false, "it is not there"
		}
		got, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
		return got == want, fmt.Sprint(got)
	})
}

func (w *world) gone(resource schema.GroupVersionResource, name string) {
	w.t.Helper()
	w.until(resource.Resource+" "+name+" is gone", func() (bool, string) { return w.get(resource, name) == nil, "it is there" })
}

// condition is the message of a condition that is True for a reason; empty when it is not.
func (w *world) condition(resource schema.GroupVersionResource, name, kind, reason string) string {
	o := w.get(resource, name)
	if o == nil {
		return ""
	}
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, e := range list {
		if c, ok := e.(map[string]any); ok && c["type"] == kind && c["status"] == "True" && c["reason"] == reason {
			return fmt.Sprintf("%s: %v", reason, c["message"])
		}
	}
	return ""
}

func (w *world) ready(resource schema.GroupVersionResource, name string) {
	w.t.Helper()
	w.until(resource.Resource+" "+name+" is ready", func() (bool, string) {
		return w.condition(resource, name, "Ready", "Ready") != "", "it is not"
	})
}

func (w *world) untilEvent(about, reason string) {
	w.t.Helper()
	w.until("an event "+reason+" about "+about, func() (bool, string) {
		list, err := w.client.Resource(events).Namespace(w.namespace).List(w.t.Context(), metav1.ListOptions{})
		if err != nil {
			return false, err.Error()
		}
		var seen []string
		for _, e := range list.Items {
			name, _, _ := unstructured.NestedString(e.Object, "involvedObject", "name")
			if name == about && e.Object["reason"] == reason {
				return true, ""
			}
			seen = append(seen, fmt.Sprint(name, " ", e.Object["reason"]))
		}
		return false, strings.Join(seen, ", ")
	})
}
