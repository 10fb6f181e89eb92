package netperf

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// measurement is a throughput as netperf measured it.
type measurement struct {
	bitsPerSecond float64
	// lowConfidence: netperf warned that the measurements varied too much.
	lowConfidence bool
}

// bitsPer are the units in which netperf gives throughputs (its option -f), in
// bits. KBytes and the like are powers of 1024, as netperf counts them.
var bitsPer = map[string]float64{
	"10^3bits/s": 1e3, "10^6bits/s": 1e6, "10^9bits/s": 1e9,
	"KBytes/s": 8 << 10, "MBytes/s": 8 << 20, "GBytes/s": 8 << 30,
}

// parse reads the output of netperf: the KEY=VALUE lines of its option -k, or
// the table that a TCP_STREAM test prints for people. Whatever else it is (a
// rate of transactions, a UDP test with two results, half an output) is an error.
func parse(output string) (measurement, error) {
	var lines []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, line)
		}
	}
	if len(lines) == 0 {
		return measurement{}, errors.New("there is none")
	}
	value, unit, err := keyed(lines)
	if err == nil && value == "" {
		value, err = table(lines)
		unit = "10^6bits/s"
	}
	if err != nil {
		return measurement{}, err
	}
	bits, err := throughput(value, unit)
	return measurement{bitsPerSecond: bits, lowConfidence: strings.Contains(output, "!!! WARNING")}, err
}

// keyed finds THROUGHPUT and THROUGHPUT_UNITS; both are empty when neither is there.
func keyed(lines []string) (value, unit string, err error) {
	found := map[string]string{}
	for _, line := range lines {
		key, v, ok := strings.Cut(line, "=")
		if !ok || key != "THROUGHPUT" && key != "THROUGHPUT_UNITS" {
			continue
		}
		if _, twice := found[key]; twice {
			return "", "", fmt.Errorf("%s is there twice", key)
		}
		found[key] = v
	}
	if len(found) == 1 {
		return "", "", errors.New("one of THROUGHPUT and THROUGHPUT_UNITS is missing")
	}
	return found["THROUGHPUT"], found["THROUGHPUT_UNITS"], nil
}

// streamHeader is the last line of the head of a TCP_STREAM table.
const streamHeader = "bytes bytes bytes secs. 10^6bits/sec"

// table finds the throughput in the table of a TCP_STREAM test: five columns,
// the last one in 10^6 bits per second.
func table(lines []string) (string, error) {
	for i, line := range lines {
		if strings.Join(strings.Fields(line), " ") != streamHeader {
			continue
		}
		if i+1 == len(lines) {
			return "", errors.New("the table has no line of results")
		}
		columns := strings.Fields(lines[i+1])
		if len(columns) != 5 {
			return "", fmt.Errorf("the result has %d columns, not 5: %.100q", len(columns), lines[i+1])
		}
		return columns[4], nil
	}
	return "", fmt.Errorf("neither THROUGHPUT=… nor the table of a TCP_STREAM test; it begins with %.100q", lines[0])
}

// throughput is a number with its unit, in whole bits per second.
func throughput(value, unit string) (float64, error) {
	factor, ok := bitsPer[unit]
	if !ok {
		return 0, fmt.Errorf("%.40q is not a unit of throughput", unit)
	}
	number, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0, fmt.Errorf("the throughput %.40q is not a number", value)
	}
	bits := math.Round(number * factor)
	if math.IsNaN(bits) || math.IsInf(bits, 0) || bits < 0 {
		return 0, fmt.Errorf("the throughput %.40q is not one", value)
	}
	if bits == 0 {
		return 0, errors.New("the throughput is 0: no data got through")
	}
	return bits, nil
}
