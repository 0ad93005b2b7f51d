package inspect_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/anepkg/anepkg/coreml/sharedtest"
	"github.com/anepkg/anepkg/inspect"
)

// covered says for every entry of the dossiers which rules look for it, or
// after a dash why none does (docs/rules.md tells users the same).
var covered = map[string]string{
	// coreml-llm.md section 7
	"A1": "PKG005 WGT004", "A2": "PKG002 PKG020", "A3": "PKG002", "A4": "MIL004 MIL025 CFG010", "A5": "MIL007", "A6": "PKG005", "A7": "PKG013",
	"A8": "PKG013 PKG014", "A9": "PKG014", "A10": "PKG014", "A11": "CFG030", "A12": "CFG023 CFG030", "A13": "CFG030", "A14": "CFG032",
	"A15": "MIL003 MIL011 MIL023 MIL025", "A16": "MIL025", "A17": "MIL023", "A18": "MIL022 MIL024", "A19": "MIL011 PKG020", "A20": "MIL022",
	"A21": "MIL002 MIL025", "A22": "TOK001 TOK012", "A23": "CFG013 CFG019 TOK003 PKG013", "A24": "PKG009 PKG020", "A25": "PKG021",
	"A26": "PKG006 PKG007 PKG008 WGT001", "A27": "PKG022", "A28": "CFG033",
	"B1": "PKG003", "B2": "RUN005", "B3": "- inspect --memory", "B4": "RUN035", "B5": "RUN036", "B6": "MIL019", "B7": "RUN034", "B8": "RUN049",
	"B9": "RUN018", "B10": "RUN018", "B11": "RUN019", "B12": "RUN017", "B13": "RUN004", "B14": "RUN020 RUN048", "B15": "WGT008 WGT010", "B16": "MIL020",
	"B17": "RUN014 RUN015", "B18": "RUN041", "B19": "RUN027", "B20": "RUN043", "B21": "RUN016", "B22": "RUN031", "B23": "RUN023", "B24": "RUN023",
	"B25": "RUN024", "B26": "RUN028", "B27": "RUN003 RUN033", "B28": "- second-hand, every package has them", "B29": "RUN026", "B30": "RUN029",
	"B31": "RUN030", "B32": "RUN025", "B33": "- every package has them", "B34": "- contradicted", "B35": "- no advice", "B36": "- superseded",
	"B37": "- private interface", "B38": "RUN001 MIL014", "B39": "- inspect --memory", "B40": "- a choice of the runtime", "B41": "- inspect --memory",
	"B42": "RUN039", "B43": "WGT014", "B44": "- needs MLComputePlan on a Mac", "B45": "RUN040", "B46": "RUN042", "B47": "- a choice of the runtime",
	"B48": "- a choice of the runtime", "B49": "- a choice of the runtime", "B50": "- a choice of the runtime",
	// anemll.md section 9
	"V01": "CFG001", "V02": "CFG003", "V03": "CFG003 CFG004", "V04": "PKG002 PKG011", "V05": "PKG004 PKG009", "V06": "PKG005 PKG006 PKG011", "V07": "WGT001 WGT005",
	"V08": "CFG010 CFG011 CFG012 CFG013 CFG015", "V09": "MIL002 RUN002", "V10": "CFG016 CFG017", "V11": "CFG018", "V12": "CFG017", "V13": "RUN010",
	"V14": "CFG025", "V15": "CFG025", "V16": "CFG025", "V17": "RUN011", "V18": "TOK001 TOK006 TOK007 TOK010 TOK014 TOK015", "V19": "PKG012", "V20": "RUN005",
	"V21": "RUN001", "V22": "WGT013", "V23": "CFG024", "V24": "CFG005", "V25": "CFG035", "V26": "RUN009", "V27": "PKG001",
	// anemll.md section 7
	"7.1": "CFG010", "7.2": "- anepkg doctor", "7.3": "RUN001", "7.4": "RUN011", "7.5": "MIL013", "7.6": "RUN033", "7.7": "- inspect --memory", "7.8": "RUN010",
	"7.9": "CFG010 MIL010 CFG036", "7.10": "RUN050", "7.11": "MIL002 RUN010", "7.12": "- anepkg run", "7.13": "RUN033", "7.14": "RUN005", "7.15": "MIL020",
	"7.16": "WGT001 WGT004", "7.17": "- anepkg doctor", "7.18": "RUN002", "7.19": "RUN005", "7.20": "- no file tells it", "7.21": "- no file tells it",
	"7.22": "PKG006", "7.23": "TOK006 TOK015", "7.24": "- another language", "7.25": "- anepkg doctor", "7.26": "RUN044 RUN020",
	// measured-defects.md
	"m1": "RUN007", "m2": "RUN006", "m3": "CFG025", "m4": "WGT013", "m5": "MIL004", "m6": "- no error: readers swap the suffix", "m7": "RUN012", "m8": "RUN012",
	"m9": "RUN037", "m10": "RUN013 WGT010", "m11": "RUN038", "m12": "RUN012",
}

// TestDossiers: every entry of the dossiers' lists has a rule or a reason.
func TestDossiers(t *testing.T) {
	var want []string
	collect := func(file, section, entry, prefix string) {
		data, err := os.ReadFile(sharedtest.Path(t, "reference/"+file))
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if section != "" {
			_, text, _ = strings.Cut(text, section)
			text, _, _ = strings.Cut(text, "\n## ")
		}
		n := 0
		for _, m := range regexp.MustCompile(entry).FindAllStringSubmatch(text, -1) {
			want = append(want, prefix+m[1])
			n++
		}
		if n < 10 {
			t.Fatalf("%s: found %d entries", file, n)
		}
	}
	collect("coreml-llm.md", "\n## 7.", `(?m)^\| ([AB]\d+) \|`, "")
	collect("anemll.md", "\n## 9.", `\b(V\d\d)\b`, "")
	collect("anemll.md", "\n## 7.", `(?m)^\| (\d+) \|`, "7.")
	collect("measured-defects.md", "", `(?m)^(\d+)\. `, "m")
	for _, id := range want {
		if covered[id] == "" {
			t.Errorf("%s is covered by nothing", id)
		}
	}
	for id, by := range covered {
		if !slices.Contains(want, id) {
			t.Errorf("%s is in no dossier", id)
		}
		if strings.HasPrefix(by, "- ") {
			continue
		}
		for _, rule := range strings.Fields(by) {
			if _, err := inspect.Explain(rule); err != nil {
				t.Errorf("%s: %v", id, err)
			}
		}
	}
}
