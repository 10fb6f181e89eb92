package main

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// The names under which processor seconds are kept besides the components'.
const (
	busyAll   = "all"
	busyBench = "bench"
)

const ticksPerSecond = 100 // USER_HZ, the same on all of Linux.

// processors are the processor seconds used so far by the processes of the plane,
// by their program, by this process, and by everything on the machine. Without
// a plane's folder there are no components, and without /proc nothing.
func processors(planeDir string) map[string]float64 {
	out := map[string]float64{busyBench: processor()}
	if data, err := os.ReadFile("/proc/stat"); err == nil {
		first, _, _ := strings.Cut(string(data), "\n")
		for i, f := range strings.Fields(first) {
			if i >= 1 && i != 4 && i != 5 && i <= 7 { // Not idle, not waiting for a disk, nothing twice.
				out[busyAll] += number(f)
			}
		}
	}
	if planeDir == "" {
		return out
	}
	folders, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range folders {
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || !bytes.Contains(line, []byte(planeDir+"/")) {
			continue
		}
		program, _, _ := bytes.Cut(line, []byte{0})
		stat, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		const user, system = 11, 12 // Counted from the state, which follows the name.
		if len(fields) > system {
			out[filepath.Base(string(program))] += number(fields[user]) + number(fields[system])
		}
	}
	return out
}

func number(ticks string) float64 {
	n, _ := strconv.ParseFloat(ticks, 64) // The kernel writes numbers.
	return n / ticksPerSecond
}

func since(now, before map[string]float64) map[string]float64 {
	out := map[string]float64{}
	for k, v := range now {
		out[k] = v - before[k]
	}
	return out
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// machine says what was measured on.
func machine() string {
	name := "unknown processor"
	if data, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(data)) {
			if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == "model name" {
				name = strings.TrimSpace(v)
				break
			}
		}
	}
	memory := ""
	if data, err := os.ReadFile("/proc/meminfo"); err == nil {
		fields := strings.Fields(string(data))
		if len(fields) > 1 {
			kib, _ := strconv.ParseFloat(fields[1], 64)
			memory = fmt.Sprintf(", %.0f GiB", kib/(1<<20))
		}
	}
	return name + memory
}
