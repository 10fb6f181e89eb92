package operator

import (
	"fmt"
	"strings"
)

// ParsePath reads a field path such as "spec.template.spec.containers": names
// of fields between dots, no list positions.
func ParsePath(path string) ([]string, error) {
	fields := strings.Split(path, ".")
	for _, f := range fields {
		if f == "" || strings.ContainsAny(f, "[]/ ") {
			return nil, fmt.Errorf("path %q: write field names between dots, such as spec.replicas", path)
		}
	}
	return fields, nil
}
