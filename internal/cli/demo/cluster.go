package demo

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/homeostat-dev/homeostat/internal/manifest"
)

const (
	fieldManager = "homeostat-demo"
	// readyWithin bounds the wait for a definition to be served.
	readyWithin = 30 * time.Second
	// tokenSeconds is how long the operator's identity lasts.
	tokenSeconds = 24 * 60 * 60
)

var definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// namespacePrefix begins the names of the namespaces of demos.
const namespacePrefix = "homeostat-demo-"

// stage is what the demo sets up in a cluster, and takes away again.
type stage struct {
	config    *rest.Config
	core      kubernetes.Interface
	dynamic   dynamic.Interface
	namespace string
	// installed are the kinds, by definition, that were not there before.
	installed map[string]schema.GroupVersionResource
}

func newStage(config *rest.Config) (*stage, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for %s: %w", config.Host, err)
	}
	return &stage{config: config, core: core, dynamic: client, installed: map[string]schema.GroupVersionResource{}}, nil
}

// set makes a namespace of the demo's own, installs the definitions of all
// stories and creates the operators' identities with exactly the derived roles.
// Kubernetes' garbage collector looks for new kinds only every 30 seconds:
// definitions that come together are waited for once.
func (s *stage) set(ctx context.Context, stories []Story) error {
	ns, err := s.core.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: namespacePrefix}}, metav1.CreateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("create a namespace: %w", err)
	}
	s.namespace = ns.Name
	for _, story := range stories {
		for _, crd := range manifest.Definitions(story.Operators) {
			if err := s.install(ctx, crd); err != nil {
				return err
			}
		}
	}
	for _, story := range stories {
		for _, o := range manifest.Permissions(story.Operators, manifest.Options{Namespace: s.namespace, Watch: s.namespace}) {
			if err := s.create(ctx, o); err != nil {
				return err
			}
		}
	}
	return nil
}

// install applies a definition that is not there, and waits until it is served.
// One that is there is somebody's and is left as it is.
func (s *stage) install(ctx context.Context, crd runtime.Object) error {
	u, err := asUnstructured(crd)
	if err != nil {
		return err
	}
	client := s.dynamic.Resource(definitions)
	_, err = client.Get(ctx, u.GetName(), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		if _, err := client.Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: fieldManager}); err != nil {
			return fmt.Errorf("install %s: %w", u.GetName(), err)
		}
		s.installed[u.GetName()] = kindOf(u)
	case err != nil:
		return fmt.Errorf("look for %s: %w", u.GetName(), err)
	}
	return s.served(ctx, u.GetName())
}

func (s *stage) served(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, readyWithin)
	defer cancel()
	_, err := watchtools.UntilWithSync(ctx, s.only(definitions, name), &unstructured.Unstructured{}, nil, func(e watch.Event) (bool, error) {
		crd := &apiextensionsv1.CustomResourceDefinition{}
		u, ok := e.Object.(*unstructured.Unstructured)
		if !ok || runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, crd) != nil {
			return false, nil
		}
		for _, c := range crd.Status.Conditions {
			if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
				return true, nil
			}
		}
		return false, nil
	})
	if err != nil {
		return fmt.Errorf("wait for %s to be served: %w", name, err)
	}
	return nil
}

func (s *stage) create(ctx context.Context, o runtime.Object) error {
	u, err := asUnstructured(o)
	if err != nil {
		return err
	}
	gvr, _ := meta.UnsafeGuessKindToResource(u.GroupVersionKind())
	if _, err := s.dynamic.Resource(gvr).Namespace(s.namespace).Apply(ctx, u.GetName(), u, metav1.ApplyOptions{FieldManager: fieldManager}); err != nil {
		return fmt.Errorf("create %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return nil
}

// identity is a kubeconfig for the operators' service account.
func (s *stage) identity(ctx context.Context, account string) (*clientcmdapi.Config, error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))}}
	answer, err := s.core.CoreV1().ServiceAccounts(s.namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("get a token for service account %s: %w", account, err)
	}
	return s.kubeconfig(&clientcmdapi.AuthInfo{Token: answer.Status.Token})
}

// kubeconfig reaches the stage's cluster and namespace as a user.
func (s *stage) kubeconfig(user *clientcmdapi.AuthInfo) (*clientcmdapi.Config, error) {
	config := rest.CopyConfig(s.config)
	if err := rest.LoadTLSFiles(config); err != nil {
		return nil, fmt.Errorf("read the cluster's certificates: %w", err)
	}
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's address: %w", err)
	}
	const name = "demo"
	out := clientcmdapi.NewConfig()
	out.Clusters[name] = &clientcmdapi.Cluster{
		Server: host.String(), CertificateAuthorityData: config.CAData,
		InsecureSkipTLSVerify: config.Insecure, TLSServerName: config.ServerName,
	}
	out.AuthInfos[name] = user
	out.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: s.namespace}
	out.CurrentContext = name
	return out, nil
}

// kindOf is the resource that a definition defines, at its stored version.
func kindOf(crd *unstructured.Unstructured) schema.GroupVersionResource {
	out := schema.GroupVersionResource{}
	out.Group, _, _ = unstructured.NestedString(crd.Object, "spec", "group")
	out.Resource, _, _ = unstructured.NestedString(crd.Object, "spec", "names", "plural")
	versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
	for _, v := range versions {
		if version, ok := v.(map[string]any); ok && version["storage"] == true {
			out.Version, _, _ = unstructured.NestedString(version, "name")
		}
	}
	return out
}

// clear takes away what set made, and waits until the namespace is gone. A
// definition goes only when nobody uses it by then: its objects go with it.
func (s *stage) clear(ctx context.Context) error {
	var errs []error
	if s.namespace != "" {
		errs = append(errs, s.remove(ctx, corev1.SchemeGroupVersion.WithResource("namespaces"), s.namespace))
	}
	for name, kind := range s.installed {
		used, err := s.used(ctx, kind)
		if err == nil && !used {
			err = s.remove(ctx, definitions, name)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// used says whether there are objects of the kind, or another demo that may be
// about to make some.
func (s *stage) used(ctx context.Context, kind schema.GroupVersionResource) (bool, error) {
	objects, err := s.dynamic.Resource(kind).List(ctx, metav1.ListOptions{Limit: 1})
	if apierrors.IsNotFound(err) {
		return false, nil // it is gone already
	}
	if err != nil {
		return true, fmt.Errorf("look whether there are %s left: %w", kind.Resource, err)
	}
	namespaces, err := s.core.CoreV1().Namespaces().List(ctx, metav1.ListOptions{})
	if err != nil {
		return true, fmt.Errorf("look for other demos: %w", err)
	}
	other := slices.ContainsFunc(namespaces.Items, func(ns corev1.Namespace) bool {
		return ns.Name != s.namespace && strings.HasPrefix(ns.Name, namespacePrefix)
	})
	return other || len(objects.Items) > 0, nil
}

func (s *stage) remove(ctx context.Context, gvr schema.GroupVersionResource, name string) error {
	if err := s.dynamic.Resource(gvr).Delete(ctx, name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete %s %s: %w", gvr.Resource, name, err)
	}
	missing := func(store cache.Store) (bool, error) { return len(store.ListKeys()) == 0, nil }
	deleted := func(e watch.Event) (bool, error) { return e.Type == watch.Deleted, nil }
	if _, err := watchtools.UntilWithSync(ctx, s.only(gvr, name), &unstructured.Unstructured{}, missing, deleted); err != nil {
		return fmt.Errorf("wait for %s %s to be gone: %w", gvr.Resource, name, err)
	}
	return nil
}

// only lists and watches one cluster-scoped object.
func (s *stage) only(gvr schema.GroupVersionResource, name string) cache.ListerWatcher {
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	client := s.dynamic.Resource(gvr)
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return client.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return client.Watch(ctx, o)
		},
	}, s.dynamic)
}

func asUnstructured(o runtime.Object) (*unstructured.Unstructured, error) {
	values, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		return nil, fmt.Errorf("encode %T: %w", o, err)
	}
	u := &unstructured.Unstructured{Object: values}
	delete(u.Object, "status")
	unstructured.RemoveNestedField(u.Object, "metadata", "creationTimestamp")
	return u, nil
}

// save writes a kubeconfig that only its owner may read.
func save(config *clientcmdapi.Config, path string) error {
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
