package wire_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/anepkg/anepkg/coreml/diag"
	"github.com/anepkg/anepkg/coreml/wire"
)

func TestEach(t *testing.T) {
	var msg []byte
	msg = protowire.AppendVarint(protowire.AppendTag(msg, 1, protowire.VarintType), 300)
	msg = protowire.AppendBytes(protowire.AppendTag(msg, 2, protowire.BytesType), []byte{1, 0x80, 2})
	msg = protowire.AppendFixed32(protowire.AppendTag(msg, 3, protowire.Fixed32Type), 7)
	msg = protowire.AppendFixed64(protowire.AppendTag(msg, 4, protowire.Fixed64Type), 8)
	src := wire.NewSource("m.bin", msg)
	var nums []int
	err := src.Each(src.Message(), func(f wire.Field) error {
		nums = append(nums, f.Num)
		switch {
		case f.Num == 1 && (f.Int() != 300 || f.IsBytes()), f.Num == 3 && f.Uint != 7, f.Num == 4 && f.Uint != 8:
			t.Errorf("field %d is %d", f.Num, f.Uint)
		case f.Num == 2:
			got, err := src.Varints(nil, f)
			if err != nil || !cmp.Equal(got, []int64{1, 256}) {
				t.Errorf("packed varints: %v, %v", got, err)
			}
			if pos := src.Pos(f.Bytes).String(); pos != "m.bin:0x5" {
				t.Errorf("position %s, want m.bin:0x5", pos)
			}
		}
		return nil
	})
	if err != nil || !cmp.Equal(nums, []int{1, 2, 3, 4}) {
		t.Errorf("fields %v, %v", nums, err)
	}
}

func TestEachErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		data []byte
		want string
	}{
		"cut tag":      {[]byte{0x08, 1, 0x80}, "m.bin:0x2: protobuf: unexpected EOF"},
		"cut bytes":    {[]byte{0x12, 5, 1}, "m.bin:0x0: protobuf field 2: unexpected EOF"},
		"end of group": {[]byte{0x0c}, "m.bin:0x0: protobuf field 1: "},
	} {
		t.Run(name, func(t *testing.T) {
			src := wire.NewSource("m.bin", tt.data)
			err := src.Each(src.Message(), func(wire.Field) error { return nil })
			if diag.CodeOf(err) != diag.Malformed || !strings.HasPrefix(err.Error(), tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}
