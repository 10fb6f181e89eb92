package layers

// clients are the packages by which one talks to a cluster or to anything else.
var clients = []string{"k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net", "os/exec"}

// shell are the files of the engine's shell, which may read the clock: they
// carry time, events and operations between the core and the world.
var shell = []string{"engine/engine.go", "engine/preview.go", "engine/measure.go"}

// Rules are the arrows of the design.
var Rules = []Rule{
	{
		In: []string{"operators"}, Tests: true,
		Forbid: []string{"./engine", "./internal", "./cmd", "k8s.io/client-go", "sigs.k8s.io/controller-runtime", "net/http", "os/exec"},
		Reason: "An operator is a function: it sees package operator and its own API types, nothing that talks to a cluster.",
	},
	{
		In: []string{"operators"}, Tests: true, Siblings: true,
		Reason: "Operators do not import each other.",
	},
	{
		In: []string{"operator"}, Forbid: append([]string{"./engine", "./operators", "./internal", "./sim", "./cmd"}, clients...),
		Reason: "The contract holds values only; whatever runs it depends on it, never the other way.",
	},
	{
		In: []string{"engine/plan", "engine/world", "engine/report"}, Forbid: clients,
		Reason: "Deciding what to do is pure; only engine/apply and the engine's shell talk to a cluster.",
	},
	{
		In: []string{"operator", "engine", "operators"}, Except: []string{"engine/apply"}, Files: shell,
		Forbid: []string{"time.Now", "time.Since", "time.Until", "time.Sleep"},
		Reason: "Time is an input: operator.Request.Now, Core.Next(now). The engine's shell is the one place that reads a clock.",
	},
	{
		In: []string{"engine"}, Tests: true, Forbid: []string{"./operators", "./sim", "./internal/cli", "./cmd"},
		Reason: "The engine knows no operator and no simulator.",
	},
	{
		In: []string{""}, Except: []string{"engine", "internal/verb", "internal/cli", "internal/plane", "test", "cmd", "localplane"},
		Forbid: []string{"k8s.io/client-go/dynamic", "k8s.io/client-go/kubernetes", "k8s.io/client-go/rest"},
		Allow:  []string{"k8s.io/client-go/kubernetes/scheme"},
		Reason: "Only the engine writes to a cluster for operators; only commands and tests talk to one besides.",
	},
	{
		In: []string{""}, Except: []string{"cmd", "internal/cli"}, Tests: true, Forbid: []string{"./cmd", "./internal/cli"},
		Reason: "Nothing imports the command line program; what others need of it is a package of its own.",
	},
	{
		In: []string{"localplane"}, Tests: true, Forbid: []string{"."}, Allow: []string{"./localplane"},
		Reason: "localplane carries all of Kubernetes in its go.mod and is used across a process boundary: neither imports the other.",
	},
	{
		In: []string{""}, Except: []string{"localplane"}, Tests: true, Forbid: []string{"./localplane", "k8s.io/kubernetes"},
		Reason: "localplane carries all of Kubernetes in its go.mod and is used across a process boundary: neither imports the other.",
	},
	{
		In: []string{""}, Except: []string{"operator/operatortest", "test"}, Forbid: []string{"testing"},
		Reason: "Test support is in packages named …test, so that programs do not carry the testing package.",
	},
	{
		In: []string{""}, Except: []string{"test/bench"}, Tests: true, Forbid: []string{"github.com/stretchr/testify", "github.com/onsi"},
		Reason: "Tests compare with go-cmp and say what they wanted.",
	},
}
