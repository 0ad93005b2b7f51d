package compile

import (
	"strconv"
	"strings"

	"github.com/anepkg/anepkg/coreml/mil"
)

// redefined lists, for each opset, the operations of which Apple's compiler
// has a definition new in it; every operation has one of iOS 15. The keys of
// histograms name the newest. What real metadata.json files show is taken from
// them (127 functions); the rest follows the kind of operation.
var redefined = map[int]map[string]bool{
	16: words(`
	abs acos add asin atan atanh avg_pool batch_norm cast ceil clamped_relu clip constexpr_affine_dequantize
	constexpr_cast constexpr_lut_to_dense constexpr_sparse_to_dense conv conv_transpose cos cosh crop_resize
	einsum elu equal erf exp exp2 fill_like floor floor_div gather gather_along_axis gather_nd gelu greater
	greater_equal gru instance_norm inverse l2_norm l2_pool layer_norm leaky_relu less less_equal linear
	linear_activation local_response_norm log logical_and logical_not logical_or logical_xor lstm matmul max_pool
	maximum minimum mod mul not_equal pixel_unshuffle pow prelu real_div reduce_argmax reduce_argmin
	reduce_l1_norm reduce_l2_norm reduce_log_sum reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_prod
	reduce_sum reduce_sum_square relu relu6 resample reshape reshape_like rnn round rsqrt scaled_tanh sigmoid
	sigmoid_hard sign silu sin sinh softmax softplus softplus_parametric softsign sqrt square sub tan tanh
	threshold thresholded_relu topk upsample_bilinear`),
	17: words(`
	add avg_pool batch_norm cast ceil clamped_relu clip concat conv conv_transpose crop_resize dequantize einsum
	elu equal expand_dims floor floor_div gather gather_along_axis gather_nd greater greater_equal gru
	instance_norm inverse l2_norm l2_pool layer_norm leaky_relu less less_equal linear linear_activation
	local_response_norm log logical_and logical_not logical_or logical_xor lstm matmul max_pool maximum minimum
	mod mul non_maximum_suppression not_equal pow prelu quantize real_div reduce_argmax reduce_argmin resample
	reshape reshape_like resize reverse reverse_sequence rnn round rsqrt scaled_tanh scatter scatter_along_axis
	scatter_nd sigmoid_hard slice_by_index slice_by_size sliding_windows softplus_parametric squeeze sub
	thresholded_relu topk transpose`),
	18: words(`
	abs acos add asin atan atanh avg_pool batch_norm cast ceil clamped_relu clip concat
	constexpr_blockwise_shift_scale constexpr_cast constexpr_lut_to_dense constexpr_lut_to_sparse
	constexpr_sparse_blockwise_shift_scale constexpr_sparse_to_dense conv conv_transpose cos cosh crop_resize
	dequantize einsum elu equal erf exp exp2 expand_dims fill_like floor floor_div gather gather_along_axis
	gather_nd gelu greater greater_equal gru instance_norm inverse l2_norm l2_pool layer_norm leaky_relu less
	less_equal linear linear_activation local_response_norm log logical_and logical_not logical_or logical_xor
	lstm matmul max_pool maximum minimum mod mul non_maximum_suppression not_equal pixel_unshuffle pow prelu
	quantize read_state real_div reduce_argmax reduce_argmin reduce_l1_norm reduce_l2_norm reduce_log_sum
	reduce_log_sum_exp reduce_max reduce_mean reduce_min reduce_prod reduce_sum reduce_sum_square relu relu6
	resample reshape reshape_like resize reverse reverse_sequence rnn round rsqrt scaled_dot_product_attention
	scaled_tanh scatter scatter_along_axis scatter_nd sigmoid sigmoid_hard sign silu sin sinh slice_by_index
	slice_by_size slice_update sliding_windows softmax softplus softplus_parametric softsign sqrt square squeeze
	sub tan tanh threshold thresholded_relu topk transpose upsample_bilinear write_state`),
}

func words(s string) map[string]bool {
	out := map[string]bool{}
	for _, w := range strings.Fields(s) {
		out[w] = true
	}
	return out
}

// histogram counts the operations of f under the names of metadata.json.
func histogram(f *mil.Function) map[string]int {
	opset, err := strconv.Atoi(strings.TrimPrefix(f.Opset, "ios"))
	if err != nil {
		opset = 18
	}
	out := map[string]int{}
	eachOp(f.Body, func(op *mil.Op) {
		if op.Type != "const" {
			out[histogramKey(op.Type, opset)]++
		}
	})
	return out
}

// histogramKey is "Ios17.sliceByIndex" for slice_by_index of iOS 17, and
// "SliceByIndex" for that of iOS 15.
func histogramKey(op string, opset int) string {
	words := strings.Split(op, "_")
	for i, w := range words {
		if i > 0 {
			words[i] = capital(w)
		}
	}
	camel := strings.Join(words, "")
	for v := min(opset, 18); v >= 16; v-- {
		if redefined[v][op] {
			return "Ios" + strconv.Itoa(v) + "." + camel
		}
	}
	return capital(camel)
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
