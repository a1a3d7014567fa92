// Prints thousands of quantities as Kubernetes' own implementation reads them: the table that
// mbcas/base/quantity_test.cc compares with. Run by `make goldens`.
//
// Columns, separated by tabs: the input; "error", or its value in units of 1n; Value(); MilliValue();
// the canonical text. "-" stands where Go has no faithful answer: a 64-bit overflow, a negative
// value as an integer, or a canonical text that does not read back (it drops suffixes beyond E).
package main

import (
	"bufio"
	"fmt"
	"math/big"
	"math/rand"
	"os"
	"strings"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

// As mbcas::Quantity: what does not fit 127 bits of nano-units is refused there.
var limit = new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 127), big.NewInt(1))

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	seen := map[string]bool{}
	for _, text := range inputs() {
		if !seen[text] && len(text) <= 256 {
			seen[text] = true
			describe(out, text)
		}
	}
}

func describe(out *bufio.Writer, text string) {
	q, err := resource.ParseQuantity(text)
	if err != nil {
		fmt.Fprintf(out, "%s\terror\n", text)
		return
	}
	dec := new(inf.Dec).Round(q.AsDec(), 9, inf.RoundUp)
	nanos := dec.UnscaledBig()
	if nanos.CmpAbs(limit) > 0 {
		fmt.Fprintf(out, "%s\terror\n", text)
		return
	}
	fmt.Fprintf(out, "%s\t%s\t%s\t%s\t%s\n", text, nanos, rounded(dec, 0, q.Value()),
		rounded(dec, 3, q.MilliValue()), canonical(text))
}

// Go's own 64-bit answer, unless the value does not fit 64 bits, or is negative: there Go is right or
// wildly wrong depending on which of its two representations it uses (-1Pi has Value() -2882303760).
func rounded(dec *inf.Dec, scale inf.Scale, answer int64) string {
	exact := new(inf.Dec).Round(dec, scale, inf.RoundUp)
	if !exact.UnscaledBig().IsInt64() || dec.Sign() < 0 {
		return "-"
	}
	return fmt.Sprint(answer)
}

func canonical(text string) string {
	q := resource.MustParse(text)
	value := q.DeepCopy()
	number, suffix := q.CanonicalizeBytes(nil)
	form := string(number) + string(suffix)
	again, err := resource.ParseQuantity(form)
	if err != nil || again.Cmp(value) != 0 {
		return "-"
	}
	return form
}

func inputs() []string {
	suffixes := []string{"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
		"e0", "e3", "E3", "e-3", "E-9", "e+6", "e12", "e-12", "e18", "e-30", "e40", "e-300"}
	numbers := []string{"0", "00", "1", "-1", "+1", "001", "0.", ".5", "-.5", ".", "+", "-", "1.", "0.0", "1.5",
		"1.500", "100", "1000", "1024", "1023", "1025", "1048576", "1000000", "999", "0.1", "0.001", "0.0005",
		"0.0000000001", "0.00000000049", "1.0005", "1.0000000001", "9223372036854775807",
		"9223372036854775808", "18446744073709551616", "123456789.987654321", "-123456789.987654321",
		"0.000000001", "-0.0000000001", "999999999999999999", "1000000000000000000", "0.333333333333333333",
		"7.999999999999999999999999999999999999999999999999", "170141183460469231731",
		"170141183460469231731687303715.884105727", "170141183460469231731687303715.884105728",
		"00000000000000000000000000000000000000000000000000000000000000000000000000000001"}
	var all []string
	for _, number := range numbers {
		for _, suffix := range suffixes {
			all = append(all, number+suffix)
		}
	}
	// What must be refused, and what is refused by few.
	all = append(all, "", " 1", "1 ", "1K", "1mi", "1ki", "1KI", "1e", "1ee3", "1Ee3", "1e3m", "1m3", "1i", "1Kib",
		"1e+", "1e-", "1e+-3", "1e--3", "e3", "Ki", "m", "--1", "+-1", "1.2.3", "1,5", "0x10", "1_000", "NaN", "Inf",
		"1e3.5", "1.e3", "½", "1\u00a0", "1E1E1", "1e99999999999999999999", "1nn", "1um", "1u", "1µ", "1eE",
		strings.Repeat("9", 30), strings.Repeat("9", 200), "0."+strings.Repeat("0", 200)+"1",
		strings.Repeat("1", 100)+"e-95", strings.Repeat("7", 250)+"e-250")
	random := rand.New(rand.NewSource(1))
	digits := func(most int) string {
		text := ""
		for n := random.Intn(most); n > 0; n-- {
			text += string(rune('0' + random.Intn(10)))
		}
		return text
	}
	for len(all) < 6000 {
		text := []string{"", "", "", "-", "+"}[random.Intn(5)] + digits(14)
		if random.Intn(2) == 0 {
			text += "." + digits(14)
		}
		switch random.Intn(4) {
		case 0:
			text += fmt.Sprintf("e%d", random.Intn(40)-20)
		case 1, 2:
			text += suffixes[random.Intn(16)]
		}
		all = append(all, text)
	}
	// Nearly grammatical noise.
	const alphabet = "0123456789.+-eEinumkKMGTP "
	for len(all) < 8000 {
		text := ""
		for n := 1 + random.Intn(7); n > 0; n-- {
			text += string(alphabet[random.Intn(len(alphabet))])
		}
		all = append(all, text)
	}
	return all
}
