package netperf

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

const banner = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 10.8.1.11 () port 0 AF_INET\n"

const streamTable = `Recv   Send    Send
Socket Socket  Message  Elapsed
Size   Size    Size     Time     Throughput
bytes  bytes   bytes    secs.    10^6bits/sec

 87380  16384  16384    10.00    27175.27
`

const rrTable = `Local /Remote
Socket Size   Request  Resp.   Elapsed  Trans.
Send   Recv   Size     Size    Time     Rate
bytes  Bytes  bytes    bytes   secs.    per sec

16384  87380  1        1       10.00    59421.52
16384  87380
`

const udpTable = `Socket  Message  Elapsed      Messages
Size    Size     Time         Okay Errors   Throughput
bytes   bytes    secs            #      #   10^6bits/sec

124928   32768   10.00      105672      0    2770.20
135168           10.00      104844           2748.50
`

const warning = `!!! WARNING
!!! Desired confidence was not achieved within the specified iterations.
!!! This implies that there was variability in the test environment that
!!! must be investigated before going further.
`

func TestParse(t *testing.T) {
	type result struct {
		Bits          float64
		LowConfidence bool
		Err           string
	}
	tests := map[string]struct {
		given string
		want  result
	}{
		"TCP_STREAM for people":         {banner + streamTable, result{Bits: 27175270000}},
		"no banner":                     {streamTable, result{Bits: 27175270000}},
		"keys":                          {banner + "THROUGHPUT=27175.27\nTHROUGHPUT_UNITS=10^6bits/s\n", result{Bits: 27175270000}},
		"keys with Windows line ends":   {"THROUGHPUT=1\r\nTHROUGHPUT_UNITS=10^3bits/s\r\n", result{Bits: 1000}},
		"keys in gigabits":              {"THROUGHPUT=9.4\nTHROUGHPUT_UNITS=10^9bits/s", result{Bits: 9400000000}},
		"keys in megabytes":             {"THROUGHPUT=1\nTHROUGHPUT_UNITS=MBytes/s", result{Bits: 8388608}},
		"a warning before the table":    {warning + banner + streamTable, result{Bits: 27175270000, LowConfidence: true}},
		"a warning before keys":         {warning + "THROUGHPUT=1\nTHROUGHPUT_UNITS=10^6bits/s", result{Bits: 1000000, LowConfidence: true}},
		"TCP_RR":                        {"MIGRATED TCP REQUEST/RESPONSE TEST\n" + rrTable, result{Err: "table of a TCP_STREAM"}},
		"TCP_RR with keys":              {"THROUGHPUT=59421.52\nTHROUGHPUT_UNITS=Trans/s", result{Err: `"Trans/s" is not a unit`}},
		"UDP_STREAM":                    {"MIGRATED UDP STREAM TEST\n" + udpTable, result{Err: "table of a TCP_STREAM"}},
		"nothing":                       {"", result{Err: "there is none"}},
		"eight blank lines":             {strings.Repeat("\n", 8), result{Err: "there is none"}},
		"words":                         {"netperf output", result{Err: `begins with "netperf output"`}},
		"a table cut off":               {banner + streamTable[:strings.Index(streamTable, "\n\n")], result{Err: "no line of results"}},
		"a line cut off":                {strings.Replace(streamTable, "    27175.27", "", 1), result{Err: "4 columns"}},
		"words in place of numbers":     {strings.Replace(streamTable, "27175.27", "fast", 1), result{Err: `"fast" is not a number`}},
		"units only":                    {"THROUGHPUT_UNITS=10^6bits/s", result{Err: "missing"}},
		"throughput only":               {"THROUGHPUT=1", result{Err: "missing"}},
		"an empty throughput and units": {"THROUGHPUT=\nTHROUGHPUT_UNITS=10^6bits/s", result{Err: "neither"}},
		"the same key twice":            {"THROUGHPUT=1\nTHROUGHPUT=2\nTHROUGHPUT_UNITS=10^6bits/s", result{Err: "twice"}},
		"zero, as through a virtual IP": {"THROUGHPUT=0.00\nTHROUGHPUT_UNITS=10^6bits/s", result{Err: "no data"}},
		"not a number":                  {"THROUGHPUT=NaN\nTHROUGHPUT_UNITS=10^6bits/s", result{Err: "is not one"}},
		"infinite":                      {"THROUGHPUT=Inf\nTHROUGHPUT_UNITS=10^6bits/s", result{Err: "is not one"}},
		"negative":                      {"THROUGHPUT=-1\nTHROUGHPUT_UNITS=10^6bits/s", result{Err: "is not one"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			m, err := parse(tt.given)
			got := result{Bits: m.bitsPerSecond, LowConfidence: m.lowConfidence}
			if err != nil {
				got = result{Err: err.Error()}
				if tt.want.Err != "" && strings.Contains(got.Err, tt.want.Err) {
					got.Err = tt.want.Err
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{banner + streamTable, rrTable, udpTable, warning, "THROUGHPUT=1\nTHROUGHPUT_UNITS=10^6bits/s"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, output string) {
		m, err := parse(output)
		if err == nil && !(m.bitsPerSecond > 0) {
			t.Errorf("%v bits per second without an error", m.bitsPerSecond)
		}
	})
}

func TestForeignTextIsBounded(t *testing.T) {
	got := bounded(strings.Repeat("ü", 4000))
	if len(got) > maxMessage+len("…") || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}
