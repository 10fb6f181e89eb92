package command_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat/internal/command"
)

func tree(err error) *cobra.Command {
	root := &cobra.Command{Use: "prog"}
	root.AddCommand(&cobra.Command{Use: "work", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return err }})
	return root
}

func TestRun(t *testing.T) {
	cases := map[string]struct {
		args   []string
		err    error
		code   int
		stderr string
	}{
		"success":               {args: []string{"work"}, code: command.OK},
		"a failure":             {args: []string{"work"}, err: errors.New("it broke"), code: command.Failed, stderr: "error: it broke\n"},
		"a code of its own":     {args: []string{"work"}, err: &command.Exit{Code: command.Changes}, code: command.Changes},
		"an unknown flag":       {args: []string{"work", "--x"}, code: command.Misused, stderr: "error: unknown flag: --x\nRun 'prog work --help' for usage and examples.\n"},
		"an argument too many":  {args: []string{"work", "x"}, code: command.Misused, stderr: "Run 'prog work --help'"},
		"an unknown command":    {args: []string{"wor"}, code: command.Misused, stderr: `prog has no command "wor"; did you mean "work"?`},
		"misuse found by RunE":  {args: []string{"work"}, err: command.Usagef("no file"), code: command.Misused, stderr: "error: no file\n"},
		"no command shows help": {args: nil, code: command.OK},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			streams, _, _, stderr := genericiooptions.NewTestIOStreams()
			if code := command.Run(t.Context(), streams, c.args, tree(c.err)); code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			if got := stderr.String(); !strings.Contains(got, c.stderr) || c.stderr == "" && got != "" {
				t.Errorf("stderr is %q, want %q", got, c.stderr)
			}
			if n := strings.Count(stderr.String(), "error: "); n > 1 {
				t.Errorf("the error is printed %d times", n)
			}
		})
	}
}

func TestInterrupt(t *testing.T) {
	reason := errors.New("interrupt signal received")
	for name, c := range map[string]struct {
		err    error
		code   int
		stderr string
	}{
		"the reason is not an error":  {fmt.Errorf("waiting: %w", reason), command.Interrupted, "interrupted\n"},
		"nor is what follows from it": {fmt.Errorf("get: %w", context.Canceled), command.Interrupted, "interrupted\n"},
		"but another is":              {errors.New("clean up: no"), command.Interrupted, "error: clean up: no\ninterrupted\n"},
		"one that was run until then": {nil, command.OK, ""},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			root := &cobra.Command{Use: "prog", RunE: func(*cobra.Command, []string) error { cancel(reason); return c.err }}
			streams, _, _, stderr := genericiooptions.NewTestIOStreams()
			if code := command.Run(ctx, streams, nil, root); code != c.code || stderr.String() != c.stderr {
				t.Errorf("exit code %d and %q, want %d and %q", code, stderr.String(), c.code, c.stderr)
			}
		})
	}
}
