// Package command runs a tree of cobra commands as a program: one exit code per
// outcome, an error printed once with what to do, results on stdout and
// progress on stderr. It never exits the process and holds no command of its
// own. Its invariant: what a user typed wrongly is code 2, whatever noticed it.
package command

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

// The exit codes.
const (
	// OK also means that there was nothing to do or nothing was found.
	OK = 0
	// Failed means that what was asked could not be done.
	Failed = 1
	// Misused means that the command line is wrong.
	Misused = 2
	// Changes means that there is something to do; only commands that look
	// without changing anything return it.
	Changes = 3
	// Interrupted means that a signal ended the command before it was done, as
	// shells have it. A command that runs until it is interrupted is done then.
	Interrupted = 130
)

// Codes is the paragraph of --help on exit codes; CodesWithPlan is that of plan
// and of programs that have it.
const (
	Codes         = begin + "\n130 interrupted."
	CodesWithPlan = begin + "\n3 there are changes to make (plan only), 130 interrupted."
	begin         = "Exit codes: 0 done (also: nothing to do), 1 failed, 2 the command line is wrong,"
)

// Usage is an error in the command line.
type Usage struct{ Err error }

func (u *Usage) Error() string { return u.Err.Error() }
func (u *Usage) Unwrap() error { return u.Err }

// Usagef makes an error in the command line.
func Usagef(format string, args ...any) error { return &Usage{fmt.Errorf(format, args...)} }

// Exit ends a command with a code and without a message: all has been said.
type Exit struct{ Code int }

func (e *Exit) Error() string { return fmt.Sprintf("exit code %d", e.Code) }

// Run runs root with args and returns the exit code.
func Run(ctx context.Context, streams genericiooptions.IOStreams, args []string, root *cobra.Command) int {
	prepare(root)
	root.SetIn(streams.In)
	root.SetOut(streams.Out)
	root.SetErr(streams.ErrOut)
	root.SetArgs(args)
	ran, err := root.ExecuteContextC(ctx)
	if err == nil {
		return OK
	}
	if exit, ok := errors.AsType[*Exit](err); ok {
		return exit.Code
	}
	if ctx.Err() != nil {
		if !errors.Is(err, context.Cause(ctx)) && !errors.Is(err, context.Canceled) {
			_, _ = fmt.Fprintf(streams.ErrOut, "error: %v\n", err) // such as what could not be cleaned up
		}
		_, _ = fmt.Fprintln(streams.ErrOut, "interrupted")
		return Interrupted
	}
	_, _ = fmt.Fprintf(streams.ErrOut, "error: %v\n", err)
	if _, ok := errors.AsType[*Usage](err); ok {
		_, _ = fmt.Fprintf(streams.ErrOut, "Run '%s --help' for usage and examples.\n", typed(ran))
		return Misused
	}
	return Failed
}

// typed is a command as the user types it.
func typed(c *cobra.Command) string {
	root := c.Root()
	path := c.CommandPath()
	if name := root.Annotations[cobra.CommandDisplayNameAnnotation]; name != "" && c == root {
		return name
	}
	return path
}

// prepare makes every command of the tree report misuse as such.
func prepare(c *cobra.Command) {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &Usage{err} })
	if check := c.Args; check != nil {
		c.Args = func(c *cobra.Command, args []string) error {
			if err := check(c, args); err != nil {
				return &Usage{err}
			}
			return nil
		}
	}
	if !c.Runnable() && c.HasSubCommands() {
		group(c)
	}
	for _, sub := range c.Commands() {
		prepare(sub)
	}
}

// group makes a command that only has subcommands show its help, and refuse a
// subcommand that it does not have.
func group(c *cobra.Command) {
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 0 {
			return c.Help()
		}
		if c.SuggestionsMinimumDistance <= 0 {
			c.SuggestionsMinimumDistance = 2
		}
		message := fmt.Sprintf("%s has no command %q", typed(c), args[0])
		for _, s := range c.SuggestionsFor(args[0]) {
			message += fmt.Sprintf("; did you mean %q?", s)
		}
		return Usagef("%s", message)
	}
}
