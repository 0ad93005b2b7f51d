package main

import (
	"runtime"
	"runtime/debug"

	"github.com/urfave/cli/v2"
)

// versionName is set by release builds: -ldflags "-X main.versionName=0.1.0".
var versionName = "0.1.0-dev"

type versionJSON struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"`
	Go       string `json:"go"`
	OS       string `json:"os"`
	Arch     string `json:"arch"`
}

func (t *tool) versionCommand() *cli.Command {
	return &cli.Command{
		Name:  "version",
		Usage: "print the version and how it was built",
		Action: func(c *cli.Context) error {
			if c.NArg() > 0 {
				return usagef("version takes no arguments")
			}
			v := buildVersion()
			if t.global.json {
				t.writeJSON("anepkg.version/1", v)
				return nil
			}
			t.printf("anepkg %s\n", v.Version)
			if v.Commit != "" {
				modified := ""
				if v.Modified {
					modified = " (modified)"
				}
				t.printf("commit %s%s\n", v.Commit, modified)
			}
			t.printf("%s %s/%s\n", v.Go, v.OS, v.Arch)
			return nil
		},
	}
}

// buildVersion reads what the Go linker recorded.
func buildVersion() versionJSON {
	v := versionJSON{Version: versionName, Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Commit = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
