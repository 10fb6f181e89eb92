package homeostat_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/homeostat-dev/homeostat"
	"github.com/homeostat-dev/homeostat/operators/machine"
	"github.com/homeostat-dev/homeostat/operators/memcached"
)

// TestMain makes programs of operators for the scripts.
func TestMain(m *testing.M) {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	testscript.Main(m, map[string]func(){
		"memcached": func() {
			os.Exit(homeostat.Run(context.Background(), streams, os.Args[1:], memcached.Operator))
		},
		"machines": func() {
			os.Exit(homeostat.Run(context.Background(), streams, os.Args[1:], machine.Machine, machine.Switch))
		},
	})
}

// TestScripts runs whole commands as users do. With UPDATE_SCRIPTS set in the
// environment the expected output is written anew.
func TestScripts(t *testing.T) {
	_, update := os.LookupEnv("UPDATE_SCRIPTS")
	testscript.Run(t, testscript.Params{Dir: "testdata/script", UpdateScripts: update, RequireExplicitExec: true, RequireUniqueNames: true,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"exec-code": execCode}})
}

// execCode runs a program that must end with the exit code.
func execCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exec-code CODE PROGRAM [ARGUMENT...]")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else if err != nil {
		ts.Fatalf("%v: %v", args[1:], err)
	}
	if got != want {
		ts.Fatalf("%v: exit code %d, want %d", args[1:], got, want)
	}
}
