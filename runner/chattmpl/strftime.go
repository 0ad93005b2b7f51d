package chattmpl

import (
	"fmt"
	"strings"
	"time"
)

func strftimeNow(x *exec, a args) any {
	format, ok := a.bind("strftime_now()", "f")["f"]
	if !ok {
		raise("TypeError", "strftime_now() missing 1 required positional argument: 'f'")
	}
	return strftime(x.now(), wantStr(format, "strftime_now"))
}

// layouts are the directives that a layout of the time package expresses.
var layouts = map[byte]string{
	'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'h': "Jan", 'd': "02", 'e': "_2", 'm': "01", 'y': "06",
	'Y': "2006", 'H': "15", 'I': "03", 'M': "04", 'S': "05", 'p': "PM", 'F': "2006-01-02", 'T': "15:04:05",
	'R': "15:04", 'D': "01/02/06", 'c': "Mon Jan _2 15:04:05 2006", 'x': "01/02/06", 'X': "15:04:05", 'f': "000000",
	'j': "002", 'r': "03:04:05 PM",
}

// strftime formats a time as Python does for a datetime without time zone in the C locale.
func strftime(t time.Time, format string) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		plain := format[i] == '-' && i+1 < len(format) // no padding
		if plain {
			i++
		}
		s := directive(t, format[i])
		if plain && len(s) > 1 {
			s = strings.TrimLeft(s[:len(s)-1], "0 ") + s[len(s)-1:]
		}
		b.WriteString(s)
	}
	return b.String()
}

func directive(t time.Time, c byte) string {
	if l, ok := layouts[c]; ok {
		if c == 'f' {
			return fmt.Sprintf("%06d", t.Nanosecond()/1000)
		}
		return t.Format(l)
	}
	switch c {
	case '%':
		return "%"
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'u':
		return fmt.Sprint((int(t.Weekday())+6)%7 + 1)
	case 'w':
		return fmt.Sprint(int(t.Weekday()))
	case 'C':
		return fmt.Sprintf("%02d", t.Year()/100)
	case 'G', 'V', 'g':
		y, w := t.ISOWeek()
		return fmt.Sprintf(map[byte]string{'G': "%04[1]d", 'V': "%02[2]d", 'g': "%02[3]d"}[c], y, w, y%100)
	case 'U':
		return fmt.Sprintf("%02d", (t.YearDay()+6-int(t.Weekday()))/7)
	case 'W':
		return fmt.Sprintf("%02d", (t.YearDay()+6-(int(t.Weekday())+6)%7)/7)
	case 's':
		return fmt.Sprint(t.Unix())
	case 'z', 'Z':
		return ""
	}
	return "%" + string(c)
}
