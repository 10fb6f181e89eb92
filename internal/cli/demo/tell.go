package demo

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// teller runs the steps of a story.
type teller struct {
	namespace string
	view      *view
	observer  *observer
	kubectl   kubectl
	operators *running
}

// running are operators at work in this process.
type running struct {
	log string
	// stopped is closed when they have ended, which they must not while a story
	// is told; code is valid then.
	stopped chan struct{}
	code    int
}

// lastWords is how many lines of a log are shown.
const lastWords = 8

// ended says how the operators ended; they have.
func (r *running) ended() error {
	content, err := os.ReadFile(r.log)
	if err != nil {
		return fmt.Errorf("the operator has ended with exit code %d, and its log cannot be read: %w", r.code, err)
	}
	lines := strings.Split(strings.TrimSpace(string(content)), "\n")
	return fmt.Errorf("the operator has ended with exit code %d; the last lines of its log:\n  %s",
		r.code, strings.Join(lines[max(0, len(lines)-lastWords):], "\n  "))
}

// kubectl runs the real one, in the story's folder.
type kubectl struct{ binary, kubeconfig, dir string }

// run returns what kubectl printed, both streams together as a terminal has them.
func (k kubectl) run(ctx context.Context, c Command) (string, error) {
	var out bytes.Buffer
	command := exec.CommandContext(ctx, k.binary, c.Args...)
	command.Dir, command.Stdout, command.Stderr = k.dir, &out, &out
	// What kubectl remembers of a server is filed by address, and planes come and go.
	command.Env = append(command.Environ(), "KUBECONFIG="+k.kubeconfig, "KUBECACHEDIR="+filepath.Join(k.dir, "cache"))
	if c.Stdin != "" {
		command.Stdin = strings.NewReader(c.Stdin)
	}
	err := command.Run()
	if ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return out.String(), err
}

// tell runs the steps in order, up to the first that fails.
func (t *teller) tell(ctx context.Context, steps []Step) []outcome {
	var outcomes []outcome
	for i, s := range steps {
		t.view.say("\n%d. %s", i+1, s.Name)
		if s.Note != "" {
			t.view.say("  (%s)", s.Note)
		}
		o := t.step(ctx, s)
		outcomes = append(outcomes, o)
		if o.err != nil {
			break
		}
	}
	return outcomes
}

func (t *teller) step(ctx context.Context, s Step) outcome {
	ctx, cancel := context.WithTimeoutCause(ctx, cmp.Or(s.Within, DefaultDeadline), errDeadline)
	defer cancel()
	o := outcome{step: s, timed: s.Begins != nil}
	var conditions []Condition
	for _, c := range []Condition{s.Begins, s.Heals, s.Settles} {
		if c != nil {
			conditions = append(conditions, c)
		}
	}
	var watch *stopwatch
	if o.timed {
		watch = t.observer.start(conditions...)
	}
	defer t.view.waiting(s.Name)()
	if o.err = t.command(ctx, s); o.err != nil {
		return o
	}
	if !o.timed {
		watch = t.observer.start(conditions...)
	}
	if o.err = t.await(ctx, watch); o.err != nil {
		return o
	}
	if o.timed {
		o.settled = watch.at[len(watch.at)-1].Sub(watch.at[0])
		if s.Heals != nil {
			o.healed = watch.at[1].Sub(watch.at[0])
		}
	}
	for _, c := range s.Show {
		if _, o.err = t.spoken(ctx, c); o.err != nil {
			return o
		}
	}
	switch {
	case o.healed > 0:
		t.view.say("  healed after %s, settled after %s", duration(o.healed), duration(o.settled))
	case o.timed:
		t.view.say("  settled after %s", duration(o.settled))
	}
	return o
}

var errDeadline = errors.New("the deadline of the step has passed")

// command runs what the user does and checks that it was taken or refused.
func (t *teller) command(ctx context.Context, s Step) error {
	out, err := t.spoken(ctx, s.Run)
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case !s.Refused:
		return err
	case err == nil:
		return errors.New("it was accepted; it must be refused")
	case !exited:
		return err
	case !strings.Contains(out, s.Says):
		return fmt.Errorf("it was refused, but not because of %s", s.Says)
	}
	return nil
}

// spoken prints a command and what it printed.
func (t *teller) spoken(ctx context.Context, c Command) (string, error) {
	t.view.say("  $ kubectl %s", quoted(c))
	out, err := t.kubectl.run(ctx, c)
	t.view.quote(out)
	if err != nil {
		return out, fmt.Errorf("kubectl %s: %w", c.Args[0], err)
	}
	return out, nil
}

// await waits for a stopwatch.
func (t *teller) await(ctx context.Context, s *stopwatch) error {
	select {
	case <-s.done:
		return nil
	case <-t.operators.stopped:
		if ctx.Err() != nil {
			return context.Cause(ctx) // it was interrupted with the demo
		}
		return t.operators.ended()
	case <-ctx.Done():
		return fmt.Errorf("%w; seen: %s", context.Cause(ctx), t.observer.instead(s))
	}
}

// quoted is a command as it is typed into a shell.
func quoted(c Command) string {
	words := make([]string, len(c.Args))
	for i, a := range c.Args {
		if words[i] = a; strings.ContainsAny(a, " \"'{}[]()*\\$@") {
			words[i] = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
	}
	line := strings.Join(words, " ")
	if c.Stdin != "" {
		line += " <<EOF\n    " + strings.ReplaceAll(c.Stdin, "\n", "\n    ") + "EOF"
	}
	return line
}
