package verb

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/homeostat-dev/homeostat/internal/command"
)

// outputFlag adds -o, which takes one of the formats and completes to them.
func outputFlag(c *cobra.Command, into *string, preset string, formats ...string) {
	*into = preset
	c.Flags().VarP(&choice{into, formats}, "output", "o", "output format: "+strings.Join(formats, ", "))
	complete(c, "output", formats...)
}

// complete makes a flag complete to a fixed list of words.
func complete(c *cobra.Command, flag string, words ...string) {
	// It fails only for a flag that does not exist: a defect that the tests of
	// completion show.
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
}

// choice is a flag that takes one of a few words.
type choice struct {
	value *string
	words []string
}

func (c *choice) String() string { return *c.value }
func (c *choice) Type() string   { return "string" }

func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return command.Usagef("it can be %s", strings.Join(c.words, " or "))
	}
	*c.value = word
	return nil
}

// encode writes a value as JSON or YAML.
func encode(w io.Writer, format string, v any) error {
	data, err := json.MarshalIndent(v, "", "  ")
	if err == nil && format == "yaml" {
		data, err = yaml.JSONToYAML(data)
	}
	if err != nil {
		return fmt.Errorf("encode the answer: %w", err)
	}
	_, err = fmt.Fprintln(w, strings.TrimSuffix(string(data), "\n"))
	return err
}
