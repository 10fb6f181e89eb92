package operator

import (
	"crypto/sha256"
	"encoding/base32"
	"strings"

	"k8s.io/apimachinery/pkg/types"
)

// nameHashLength characters of base32 are 50 bits: among 10,000 names under one
// prefix a clash has a chance of about 5 in 10^8, and a clash is only a name taken.
const nameHashLength = 10

// nameEncoding is Crockford's alphabet in lower case: no i, l, o or u, which
// are misread or make words.
var nameEncoding = base32.NewEncoding("0123456789abcdefghjkmnpqrstvwxyz").WithPadding(base32.NoPadding)

// Name is a generated name that is the same every time it is asked for: prefix
// plus a hash of the parent's UID and key. A lost response therefore never
// means a second object. The prefix is cut where the name would pass 63
// characters, the limit of a label's value. When the name is taken (see
// [Request.IsTaken]) pick another key.
func Name(prefix string, parent types.UID, key string) string {
	sum := sha256.Sum256([]byte(string(parent) + "\x00" + key))
	hash := nameEncoding.EncodeToString(sum[:])[:nameHashLength]
	if limit := 63 - nameHashLength; len(prefix) > limit {
		prefix = strings.TrimRight(prefix[:limit-1], "-.") + "-"
	}
	return prefix + hash
}
