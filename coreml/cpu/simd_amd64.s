//go:build !noasm

#include "textflag.h"

// Every loop runs over whole blocks; the Go side handles what is left.

// func cvtHalfAVX2(dst *float32, src *uint16, n int)
// n is a multiple of 16 above 0.
TEXT ·cvtHalfAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

cvtloop:
	VCVTPH2PS (SI), Y0
	VCVTPH2PS 16(SI), Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $32, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       cvtloop
	VZEROUPPER
	RET

// func roundHalfAVX2(x *float32, n int)
// n is a multiple of 16 above 0.
TEXT ·roundHalfAVX2(SB), NOSPLIT, $0-16
	MOVQ x+0(FP), DI
	MOVQ n+8(FP), CX

roundloop:
	VMOVUPS   (DI), Y0
	VMOVUPS   32(DI), Y1
	VCVTPS2PH $0, Y0, X0
	VCVTPS2PH $0, Y1, X1
	VCVTPH2PS X0, Y0
	VCVTPH2PS X1, Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       roundloop
	VZEROUPPER
	RET

// func narrowHalfAVX2(dst *uint16, src *float32, n int)
// n is a multiple of 16 above 0.
TEXT ·narrowHalfAVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

narrowloop:
	VMOVUPS   (SI), Y0
	VMOVUPS   32(SI), Y1
	VCVTPS2PH $0, Y0, (DI)
	VCVTPS2PH $0, Y1, 16(DI)
	ADDQ      $64, SI
	ADDQ      $32, DI
	SUBQ      $16, CX
	JNZ       narrowloop
	VZEROUPPER
	RET

// SUM adds the eight floats of Y0 into X0.
#define SUM \
	VEXTRACTF128 $1, Y0, X1 \
	VADDPS       X1, X0, X0 \
	VHADDPS      X0, X0, X0 \
	VHADDPS      X0, X0, X0

// func dotAVX2(a, b *float32, n int) float32
// n is a multiple of 32 above 0.
TEXT ·dotAVX2(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DI
	MOVQ   n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

dotloop:
	VMOVUPS     (SI), Y4
	VMOVUPS     32(SI), Y5
	VMOVUPS     64(SI), Y6
	VMOVUPS     96(SI), Y7
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y5, Y1
	VFMADD231PS 64(DI), Y6, Y2
	VFMADD231PS 96(DI), Y7, Y3
	ADDQ        $128, SI
	ADDQ        $128, DI
	SUBQ        $32, CX
	JNZ         dotloop
	VADDPS      Y1, Y0, Y0
	VADDPS      Y3, Y2, Y2
	VADDPS      Y2, Y0, Y0
	SUM
	VMOVSS      X0, ret+24(FP)
	VZEROUPPER
	RET

// func dotHalfAVX2(a *uint16, b *float32, n int) float32
// n is a multiple of 32 above 0.
TEXT ·dotHalfAVX2(SB), NOSPLIT, $0-28
	MOVQ   a+0(FP), SI
	MOVQ   b+8(FP), DI
	MOVQ   n+16(FP), CX
	VXORPS Y0, Y0, Y0
	VXORPS Y1, Y1, Y1
	VXORPS Y2, Y2, Y2
	VXORPS Y3, Y3, Y3

dothloop:
	VCVTPH2PS   (SI), Y4
	VCVTPH2PS   16(SI), Y5
	VCVTPH2PS   32(SI), Y6
	VCVTPH2PS   48(SI), Y7
	VFMADD231PS (DI), Y4, Y0
	VFMADD231PS 32(DI), Y5, Y1
	VFMADD231PS 64(DI), Y6, Y2
	VFMADD231PS 96(DI), Y7, Y3
	ADDQ        $64, SI
	ADDQ        $128, DI
	SUBQ        $32, CX
	JNZ         dothloop
	VADDPS      Y1, Y0, Y0
	VADDPS      Y3, Y2, Y2
	VADDPS      Y2, Y0, Y0
	SUM
	VMOVSS      X0, ret+24(FP)
	VZEROUPPER
	RET

// func tile4AVX2(y *float32, ys int, w *float32, ws int, x *float32, k int)
// See tile4Portable; ys and ws in bytes.
TEXT ·tile4AVX2(SB), NOSPLIT, $0-48
	MOVQ    y+0(FP), DI
	MOVQ    ys+8(FP), R8
	MOVQ    w+16(FP), SI
	MOVQ    ws+24(FP), R9
	MOVQ    x+32(FP), DX
	MOVQ    k+40(FP), CX
	LEAQ    (R9)(R9*2), R11
	LEAQ    (R8)(R8*2), R12
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS (DI)(R8*1), Y2
	VMOVUPS 32(DI)(R8*1), Y3
	VMOVUPS (DI)(R8*2), Y4
	VMOVUPS 32(DI)(R8*2), Y5
	VMOVUPS (DI)(R12*1), Y6
	VMOVUPS 32(DI)(R12*1), Y7

tileloop:
	VMOVUPS      (DX), Y8
	VMOVUPS      32(DX), Y9
	VBROADCASTSS (SI), Y10
	VBROADCASTSS (SI)(R9*1), Y11
	VBROADCASTSS (SI)(R9*2), Y12
	VBROADCASTSS (SI)(R11*1), Y13
	VFMADD231PS  Y8, Y10, Y0
	VFMADD231PS  Y9, Y10, Y1
	VFMADD231PS  Y8, Y11, Y2
	VFMADD231PS  Y9, Y11, Y3
	VFMADD231PS  Y8, Y12, Y4
	VFMADD231PS  Y9, Y12, Y5
	VFMADD231PS  Y8, Y13, Y6
	VFMADD231PS  Y9, Y13, Y7
	ADDQ         $4, SI
	ADDQ         $64, DX
	DECQ         CX
	JNZ          tileloop
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, (DI)(R8*1)
	VMOVUPS      Y3, 32(DI)(R8*1)
	VMOVUPS      Y4, (DI)(R8*2)
	VMOVUPS      Y5, 32(DI)(R8*2)
	VMOVUPS      Y6, (DI)(R12*1)
	VMOVUPS      Y7, 32(DI)(R12*1)
	VZEROUPPER
	RET

// func axpyHalfAVX2(y *float32, w *float32, x *uint16, xs int, k int)
// y[t] += sum over k of w[k]*x[k][t] for 64 columns t; xs is the distance of
// rows of x in bytes.
TEXT ·axpyHalfAVX2(SB), NOSPLIT, $0-40
	MOVQ    y+0(FP), DI
	MOVQ    w+8(FP), SI
	MOVQ    x+16(FP), DX
	MOVQ    xs+24(FP), R10
	MOVQ    k+32(FP), CX
	VMOVUPS (DI), Y0
	VMOVUPS 32(DI), Y1
	VMOVUPS 64(DI), Y2
	VMOVUPS 96(DI), Y3
	VMOVUPS 128(DI), Y4
	VMOVUPS 160(DI), Y5
	VMOVUPS 192(DI), Y6
	VMOVUPS 224(DI), Y7

axpyloop:
	VBROADCASTSS (SI), Y15
	VCVTPH2PS    (DX), Y8
	VCVTPH2PS    16(DX), Y9
	VCVTPH2PS    32(DX), Y10
	VCVTPH2PS    48(DX), Y11
	VFMADD231PS  Y8, Y15, Y0
	VFMADD231PS  Y9, Y15, Y1
	VFMADD231PS  Y10, Y15, Y2
	VFMADD231PS  Y11, Y15, Y3
	VCVTPH2PS    64(DX), Y8
	VCVTPH2PS    80(DX), Y9
	VCVTPH2PS    96(DX), Y10
	VCVTPH2PS    112(DX), Y11
	VFMADD231PS  Y8, Y15, Y4
	VFMADD231PS  Y9, Y15, Y5
	VFMADD231PS  Y10, Y15, Y6
	VFMADD231PS  Y11, Y15, Y7
	ADDQ         $4, SI
	ADDQ         R10, DX
	DECQ         CX
	JNZ          axpyloop
	VMOVUPS      Y0, (DI)
	VMOVUPS      Y1, 32(DI)
	VMOVUPS      Y2, 64(DI)
	VMOVUPS      Y3, 96(DI)
	VMOVUPS      Y4, 128(DI)
	VMOVUPS      Y5, 160(DI)
	VMOVUPS      Y6, 192(DI)
	VMOVUPS      Y7, 224(DI)
	VZEROUPPER
	RET

// func scaleAVX2(x *float32, n int, scale, offset float32)
// x = scale*(x - offset); n is a multiple of 8 above 0.
TEXT ·scaleAVX2(SB), NOSPLIT, $0-24
	MOVQ         x+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSS scale+16(FP), Y1
	VBROADCASTSS offset+20(FP), Y2

scaleloop:
	VMOVUPS (DI), Y0
	VSUBPS  Y2, Y0, Y0
	VMULPS  Y1, Y0, Y0
	VMOVUPS Y0, (DI)
	ADDQ    $32, DI
	SUBQ    $8, CX
	JNZ     scaleloop
	VZEROUPPER
	RET

// func cvtInt8AVX2(dst *float32, src *byte, n int)
// n is a multiple of 16 above 0.
TEXT ·cvtInt8AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

i8loop:
	VPMOVSXBD (SI), Y0
	VPMOVSXBD 8(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $16, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       i8loop
	VZEROUPPER
	RET

// func cvtUint8AVX2(dst *float32, src *byte, n int)
// n is a multiple of 16 above 0.
TEXT ·cvtUint8AVX2(SB), NOSPLIT, $0-24
	MOVQ dst+0(FP), DI
	MOVQ src+8(FP), SI
	MOVQ n+16(FP), CX

u8loop:
	VPMOVZXBD (SI), Y0
	VPMOVZXBD 8(SI), Y1
	VCVTDQ2PS Y0, Y0
	VCVTDQ2PS Y1, Y1
	VMOVUPS   Y0, (DI)
	VMOVUPS   Y1, 32(DI)
	ADDQ      $16, SI
	ADDQ      $64, DI
	SUBQ      $16, CX
	JNZ       u8loop
	VZEROUPPER
	RET
