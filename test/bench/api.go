package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// api sends requests with as little around them as there can be.
type api struct{ client *rest.RESTClient }

func newAPI(config *rest.Config) (*api, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer = serializer.NewCodecFactory(runtime.NewScheme()).WithoutConversion()
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	c, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, err
	}
	return &api{client: c}, nil
}

func trios(namespace string) []string {
	return []string{"/apis", group.Group, group.Version, "namespaces", namespace, "trios"}
}

func configMaps(namespace string) []string {
	return []string{"/api/v1/namespaces", namespace, "configmaps"}
}

func (a *api) send(ctx context.Context, r *rest.Request, body []byte, path ...string) error {
	r = r.AbsPath(path...)
	if body != nil {
		r = r.Body(body)
	}
	return r.Do(ctx).Error()
}

func (a *api) get(ctx context.Context, into any, path ...string) error {
	data, err := a.client.Get().AbsPath(path...).DoRaw(ctx)
	if err != nil {
		return err
	}
	return json.Unmarshal(data, into)
}

func (a *api) stream(ctx context.Context, path ...string) (io.ReadCloser, error) {
	const hours = "14400"
	return a.client.Get().AbsPath(path...).Param("watch", "true").Param("timeoutSeconds", hours).Stream(ctx)
}

// watch gives the events of the Trios and the ConfigMaps of a namespace, those
// that are there as added ones first, until the context ends.
func (a *api) watch(ctx context.Context, namespace string) (<-chan event, error) {
	const plenty = 1 << 17
	out := make(chan event, plenty)
	for _, path := range [][]string{trios(namespace), configMaps(namespace)} {
		stream, err := a.stream(ctx, path...)
		if err != nil {
			return nil, fmt.Errorf("watch %v: %w", path, err)
		}
		go func() {
			defer func() { _ = stream.Close() }()
			for in := json.NewDecoder(stream); ; {
				var e event
				if in.Decode(&e) != nil {
					return
				}
				e.seen = time.Now()
				select {
				case out <- e:
				case <-ctx.Done():
					return
				}
			}
		}()
	}
	return out, nil
}
