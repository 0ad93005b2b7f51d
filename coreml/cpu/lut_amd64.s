//go:build !noasm

#include "textflag.h"

// Palettized weights: 32 indices become 32 fp16 numbers by byte look-ups (a
// table of the low bytes and one of the high bytes), then float32.
//
// Six-bit indices, least significant bit first: three bytes hold four. In
// each 32-bit word the first shuffle and multiplication bring indices 0 and 2
// to the low bytes of its halves, the second 1 and 3 to the high bytes.

DATA lutShuf1<>+0(SB)/8, $0x0504038002010080
DATA lutShuf1<>+8(SB)/8, $0x0b0a098008070680
DATA lutShuf1<>+16(SB)/8, $0x0504038002010080
DATA lutShuf1<>+24(SB)/8, $0x0b0a098008070680
GLOBL lutShuf1<>(SB), RODATA|NOPTR, $32

DATA lutShuf2<>+0(SB)/8, $0x8005040380020100
DATA lutShuf2<>+8(SB)/8, $0x800b0a0980080706
DATA lutShuf2<>+16(SB)/8, $0x8005040380020100
DATA lutShuf2<>+24(SB)/8, $0x800b0a0980080706
GLOBL lutShuf2<>(SB), RODATA|NOPTR, $32

DATA lutMask1<>+0(SB)/8, $0x03f03f0003f03f00
DATA lutMask1<>+8(SB)/8, $0x03f03f0003f03f00
DATA lutMask1<>+16(SB)/8, $0x03f03f0003f03f00
DATA lutMask1<>+24(SB)/8, $0x03f03f0003f03f00
GLOBL lutMask1<>(SB), RODATA|NOPTR, $32

DATA lutMask2<>+0(SB)/8, $0x00fc0fc000fc0fc0
DATA lutMask2<>+8(SB)/8, $0x00fc0fc000fc0fc0
DATA lutMask2<>+16(SB)/8, $0x00fc0fc000fc0fc0
DATA lutMask2<>+24(SB)/8, $0x00fc0fc000fc0fc0
GLOBL lutMask2<>(SB), RODATA|NOPTR, $32

DATA lutMul1<>+0(SB)/8, $0x1000010010000100
DATA lutMul1<>+8(SB)/8, $0x1000010010000100
DATA lutMul1<>+16(SB)/8, $0x1000010010000100
DATA lutMul1<>+24(SB)/8, $0x1000010010000100
GLOBL lutMul1<>(SB), RODATA|NOPTR, $32

DATA lutMul2<>+0(SB)/8, $0x0040000400400004
DATA lutMul2<>+8(SB)/8, $0x0040000400400004
DATA lutMul2<>+16(SB)/8, $0x0040000400400004
DATA lutMul2<>+24(SB)/8, $0x0040000400400004
GLOBL lutMul2<>(SB), RODATA|NOPTR, $32

DATA lutNibble<>+0(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA lutNibble<>+8(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA lutNibble<>+16(SB)/8, $0x0f0f0f0f0f0f0f0f
DATA lutNibble<>+24(SB)/8, $0x0f0f0f0f0f0f0f0f
GLOBL lutNibble<>(SB), RODATA|NOPTR, $32

// UNPACK6 turns 24 bytes at SI into 32 indices in Y8. It reads 28 bytes.
#define UNPACK6 \
	VMOVDQU     (SI), X8 \
	VINSERTI128 $1, 12(SI), Y8, Y8 \
	VPSHUFB     lutShuf1<>(SB), Y8, Y9 \
	VPSHUFB     lutShuf2<>(SB), Y8, Y10 \
	VPAND       lutMask1<>(SB), Y9, Y9 \
	VPAND       lutMask2<>(SB), Y10, Y10 \
	VPMULHUW    lutMul1<>(SB), Y9, Y9 \
	VPMULLW     lutMul2<>(SB), Y10, Y10 \
	VPOR        Y9, Y10, Y8

// LOOKUP6 turns the indices in Y8 into low bytes in Y11 and high bytes in
// Y12; the tables are in Y0 to Y3 (low) and Y4 to Y7 (high).
#define LOOKUP6 \
	VPSLLW    $3, Y8, Y9 \
	VPSLLW    $2, Y8, Y10 \
	VPSHUFB   Y8, Y0, Y11 \
	VPSHUFB   Y8, Y1, Y12 \
	VPBLENDVB Y9, Y12, Y11, Y11 \
	VPSHUFB   Y8, Y2, Y12 \
	VPSHUFB   Y8, Y3, Y13 \
	VPBLENDVB Y9, Y13, Y12, Y12 \
	VPBLENDVB Y10, Y12, Y11, Y11 \
	VPSHUFB   Y8, Y4, Y12 \
	VPSHUFB   Y8, Y5, Y13 \
	VPBLENDVB Y9, Y13, Y12, Y12 \
	VPSHUFB   Y8, Y6, Y13 \
	VPSHUFB   Y8, Y7, Y8 \
	VPBLENDVB Y9, Y8, Y13, Y13 \
	VPBLENDVB Y10, Y13, Y12, Y12

// UNPACK4 turns 16 bytes at SI into 32 indices in Y8.
#define UNPACK4 \
	VMOVDQU     (SI), X8 \
	VPAND       lutNibble<>(SB), X8, X9 \
	VPSRLW      $4, X8, X10 \
	VPAND       lutNibble<>(SB), X10, X10 \
	VPUNPCKLBW  X10, X9, X8 \
	VPUNPCKHBW  X10, X9, X11 \
	VINSERTI128 $1, X11, Y8, Y8

// LOOKUP4 is LOOKUP6 for 16 entries, in Y0 (low) and Y4 (high).
#define LOOKUP4 \
	VPSHUFB Y8, Y0, Y11 \
	VPSHUFB Y8, Y4, Y12

// WIDEN joins the bytes in Y11 and Y12 to 32 floats in Y8 to Y11, in order.
#define WIDEN \
	VPUNPCKLBW   Y12, Y11, Y13 \
	VPUNPCKHBW   Y12, Y11, Y12 \
	VCVTPH2PS    X13, Y8 \
	VCVTPH2PS    X12, Y9 \
	VEXTRACTI128 $1, Y13, X13 \
	VEXTRACTI128 $1, Y12, X12 \
	VCVTPH2PS    X13, Y10 \
	VCVTPH2PS    X12, Y11

// MULADD adds the products of Y8 to Y11 with 32 floats at DX to Y14 and Y15.
#define MULADD \
	VFMADD231PS (DX), Y8, Y14 \
	VFMADD231PS 32(DX), Y9, Y15 \
	VFMADD231PS 64(DX), Y10, Y14 \
	VFMADD231PS 96(DX), Y11, Y15

#define TABLES6 \
	VBROADCASTI128 (R8), Y0 \
	VBROADCASTI128 16(R8), Y1 \
	VBROADCASTI128 32(R8), Y2 \
	VBROADCASTI128 48(R8), Y3 \
	VBROADCASTI128 64(R8), Y4 \
	VBROADCASTI128 80(R8), Y5 \
	VBROADCASTI128 96(R8), Y6 \
	VBROADCASTI128 112(R8), Y7

#define TABLES4 \
	VBROADCASTI128 (R8), Y0 \
	VBROADCASTI128 16(R8), Y4

// func dotLUT6AVX2(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)
// For each of rows rows, one after the other, the sum of its 32*blocks weights
// times x. table holds the low bytes of all entries, then the high bytes.
TEXT ·dotLUT6AVX2(SB), NOSPLIT, $0-48
	MOVQ y+0(FP), DI
	MOVQ idx+8(FP), SI
	MOVQ table+16(FP), R8
	MOVQ x+24(FP), R9
	MOVQ blocks+32(FP), R10
	MOVQ rows+40(FP), R11
	TABLES6

rowlut6:
	MOVQ   R9, DX
	MOVQ   R10, CX
	VXORPS Y14, Y14, Y14
	VXORPS Y15, Y15, Y15

dotlut6:
	UNPACK6
	LOOKUP6
	WIDEN
	MULADD
	ADDQ $24, SI
	ADDQ $128, DX
	DECQ CX
	JNZ  dotlut6
	VADDPS       Y14, Y15, Y15
	VEXTRACTF128 $1, Y15, X8
	VADDPS       X8, X15, X8
	VHADDPS      X8, X8, X8
	VHADDPS      X8, X8, X8
	VMOVSS       X8, (DI)
	ADDQ         $4, DI
	DECQ         R11
	JNZ          rowlut6
	VZEROUPPER
	RET

// func lookupLUT6AVX2(dst *float32, idx *byte, table *byte, blocks int)
// The 32*blocks weights themselves.
TEXT ·lookupLUT6AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ idx+8(FP), SI
	MOVQ table+16(FP), R8
	MOVQ blocks+24(FP), CX
	TABLES6

lookuplut6:
	UNPACK6
	LOOKUP6
	WIDEN
	VMOVUPS Y8, (DI)
	VMOVUPS Y9, 32(DI)
	VMOVUPS Y10, 64(DI)
	VMOVUPS Y11, 96(DI)
	ADDQ $24, SI
	ADDQ $128, DI
	DECQ CX
	JNZ  lookuplut6
	VZEROUPPER
	RET

// func dotLUT4AVX2(y *float32, idx *byte, table *byte, x *float32, blocks, rows int)
// For each of rows rows, one after the other, the sum of its 32*blocks weights
// times x. table holds the low bytes of all entries, then the high bytes.
TEXT ·dotLUT4AVX2(SB), NOSPLIT, $0-48
	MOVQ y+0(FP), DI
	MOVQ idx+8(FP), SI
	MOVQ table+16(FP), R8
	MOVQ x+24(FP), R9
	MOVQ blocks+32(FP), R10
	MOVQ rows+40(FP), R11
	TABLES4

rowlut4:
	MOVQ   R9, DX
	MOVQ   R10, CX
	VXORPS Y14, Y14, Y14
	VXORPS Y15, Y15, Y15

dotlut4:
	UNPACK4
	LOOKUP4
	WIDEN
	MULADD
	ADDQ $16, SI
	ADDQ $128, DX
	DECQ CX
	JNZ  dotlut4
	VADDPS       Y14, Y15, Y15
	VEXTRACTF128 $1, Y15, X8
	VADDPS       X8, X15, X8
	VHADDPS      X8, X8, X8
	VHADDPS      X8, X8, X8
	VMOVSS       X8, (DI)
	ADDQ         $4, DI
	DECQ         R11
	JNZ          rowlut4
	VZEROUPPER
	RET

// func lookupLUT4AVX2(dst *float32, idx *byte, table *byte, blocks int)
// The 32*blocks weights themselves.
TEXT ·lookupLUT4AVX2(SB), NOSPLIT, $0-32
	MOVQ dst+0(FP), DI
	MOVQ idx+8(FP), SI
	MOVQ table+16(FP), R8
	MOVQ blocks+24(FP), CX
	TABLES4

lookuplut4:
	UNPACK4
	LOOKUP4
	WIDEN
	VMOVUPS Y8, (DI)
	VMOVUPS Y9, 32(DI)
	VMOVUPS Y10, 64(DI)
	VMOVUPS Y11, 96(DI)
	ADDQ $16, SI
	ADDQ $128, DI
	DECQ CX
	JNZ  lookuplut4
	VZEROUPPER
	RET

