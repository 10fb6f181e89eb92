package command

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// Version is the command that says which build this is.
func Version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program and of what it is built from",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			info, ok := debug.ReadBuildInfo()
			if !ok {
				info = &debug.BuildInfo{}
			}
			_, err := fmt.Fprint(c.OutOrStdout(), describe(info))
			return err
		},
	}
}

func describe(info *debug.BuildInfo) string {
	version := info.Main.Version
	if version == "" {
		version = "(devel)"
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	out := fmt.Sprintf("%s %s\n", info.Main.Path, version)
	if r := settings["vcs.revision"]; r != "" {
		out += fmt.Sprintf("revision %s\n", r)
	}
	for _, m := range info.Deps {
		switch m.Path {
		case "github.com/homeostat-dev/homeostat", "k8s.io/apimachinery", "sigs.k8s.io/controller-runtime":
			out += fmt.Sprintf("with %s %s\n", m.Path, m.Version)
		}
	}
	return out + fmt.Sprintf("%s %s/%s\n", runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
