package engine_test

import (
	"net/http"

	"k8s.io/apimachinery/pkg/types"

	"github.com/homeostat-dev/homeostat/operator"
)

func operatorName(prefix string, uid types.UID, key string) string {
	return operator.Name(prefix, uid, key)
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
