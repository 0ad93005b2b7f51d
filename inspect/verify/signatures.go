package verify

// signatures lists the operations of opsets ios15 to ios18: name, the first
// opset that has it, required arguments and, marked by ?, optional ones. An
// argument that only some opsets have or require is optional (extracted from
// coremltools' op definitions at e0e2f42b; write_state is its serialised form
// of coreml_update_state).
const signatures = `
abs 15 x
acos 15 x
add 15 x y
affine 15 align_corners coordinates_mode output_height output_width padding_mode padding_value sampling_mode transform_matrix x
argsort 15 x ascending? axis?
asin 15 x
atan 15 x
atanh 15 x
avg_pool 15 kernel_sizes pad_type x ceil_mode? exclude_padding_from_average? pad? strides?
band_part 15 x lower? upper?
batch_norm 15 mean variance x beta? epsilon? gamma?
batch_to_space 15 block_shape crops x
cast 15 dtype x
ceil 15 x
clamped_relu 15 alpha beta x
classify 15 classes probabilities
clip 15 alpha beta x
concat 15 axis values interleave?
cond 15 pred
constexpr_affine_dequantize 16 axis quantized_data scale zero_point
constexpr_blockwise_shift_scale 18 data scale offset?
constexpr_cast 16 output_dtype source_val
constexpr_lut_to_dense 16 indices lut shape? vector_axis?
constexpr_lut_to_sparse 18 indices_mask indices_nonzero_data lut vector_axis?
constexpr_sparse_blockwise_shift_scale 18 data_mask nonzero_data scale offset?
constexpr_sparse_to_dense 16 mask nonzero_data shape?
conv 15 weight x bias? dilations? groups? pad? pad_type? strides?
conv_transpose 15 weight x bias? dilations? groups? output_shape? pad? pad_type? strides?
coreml_update_state 18 state value
cos 15 x
cosh 15 x
crop 15 crop_height crop_width x
crop_resize 15 x box_coordinate_mode? box_indices? boxes? normalized_coordinates? pad_value? roi? sampling_mode? spatial_scale? target_height? target_width?
cumsum 15 x axis? exclusive? reverse?
depth_to_space 15 block_size x
dequantize 17 input scale axis? zero_point?
einsum 15 equation values
elu 15 alpha x
equal 15 x y
erf 15 x
exp 15 x
exp2 15 x
expand_dims 15 axes x
fill 15 shape value?
fill_like 16 ref_tensor value?
flatten2d 15 x axis?
floor 15 x
floor_div 15 x y
gather 15 indices x axis? batch_dims? validate_indices?
gather_along_axis 15 indices x axis? validate_indices?
gather_nd 15 indices x batch_dims? validate_indices?
gelu 15 x mode?
greater 15 x y
greater_equal 15 x y
gru 15 initial_h weight_hh weight_ih x activation? bias? direction? input_bias? output_sequence? recurrent_activation? reset_after?
identity 15 x
instance_norm 15 x beta? epsilon? gamma?
inverse 15 x epsilon?
l2_norm 15 x epsilon?
l2_pool 15 kernel_sizes pad_type x ceil_mode? pad? strides?
layer_norm 15 x axes? beta? epsilon? gamma?
leaky_relu 15 alpha x
less 15 x y
less_equal 15 x y
linear 15 weight x bias?
linear_activation 15 alpha beta x
list_gather 15 indices ls
list_length 15 ls
list_read 15 index ls
list_scatter 15 indices ls value
list_write 15 index ls value
local_response_norm 15 size x alpha? beta? k?
log 15 x epsilon?
logical_and 15 x y
logical_not 15 x
logical_or 15 x y
logical_xor 15 x y
lstm 15 initial_c initial_h weight_hh weight_ih x activation? bias? bias_back? cell_activation? clip? direction? output_sequence? peephole? peephole_back? recurrent_activation? weight_hh_back? weight_ih_back?
make_list 15 elem_shape dtype? dynamic_length? init_length?
matmul 15 x y transpose_x? transpose_y?
max_pool 15 kernel_sizes pad_type x ceil_mode? pad? strides?
maximum 15 x y
minimum 15 x y
mod 15 x y
mul 15 x y
non_maximum_suppression 15 boxes iou_threshold max_boxes scores per_class_suppression? score_threshold?
non_zero 15 x
not_equal 15 x y
one_hot 15 indices one_hot_vector_size axis? off_value? on_value?
pad 15 pad x constant_val? mode?
pixel_shuffle 15 upscale_factor x
pixel_unshuffle 16 downscale_factor x
pow 15 x y
prelu 15 alpha x
quantize 17 input output_dtype scale axis? zero_point?
random_bernoulli 15 shape prob? seed?
random_categorical 15 x mode? seed? size?
random_normal 15 shape mean? seed? stddev?
random_uniform 15 shape high? low? seed?
range_1d 15 end start step
read_state 18 input
real_div 15 x y
reduce_argmax 15 x axis? keep_dims? output_dtype?
reduce_argmin 15 x axis? keep_dims? output_dtype?
reduce_l1_norm 15 x axes? keep_dims?
reduce_l2_norm 15 x axes? keep_dims?
reduce_log_sum 15 x axes? keep_dims?
reduce_log_sum_exp 15 x axes? keep_dims?
reduce_max 15 x axes? keep_dims?
reduce_mean 15 x axes? keep_dims?
reduce_min 15 x axes? keep_dims?
reduce_prod 15 x axes? keep_dims?
reduce_sum 15 x axes? keep_dims?
reduce_sum_square 15 x axes? keep_dims?
relu 15 x
relu6 15 x
resample 15 align_corners coordinates coordinates_mode padding_mode padding_value sampling_mode x
reshape 15 shape x
reshape_like 16 begins end_masks ends ref_tensors x
resize 17 resized_dims shape x interpolation_mode? sampling_mode?
resize_bilinear 15 x sampling_mode? target_size_height? target_size_width?
resize_nearest_neighbor 15 target_size_height target_size_width x
reverse 15 x axes?
reverse_sequence 15 lengths x batch_axis? seq_axis?
rnn 15 initial_h weight_hh weight_ih x activation? bias? direction? output_sequence?
round 15 x
rsqrt 15 x epsilon?
scaled_dot_product_attention 18 key query value attn_mask?
scaled_tanh 15 alpha beta x
scatter 15 data indices updates axis? mode? validate_indices?
scatter_along_axis 15 data indices updates axis? mode? validate_indices?
scatter_nd 15 data indices updates mode? validate_indices?
select 15 a b cond
shape 15 x
sigmoid 15 x
sigmoid_hard 15 alpha beta x
sign 15 x
silu 15 x
sin 15 x
sinh 15 x
slice_by_index 15 begin end x begin_mask? end_mask? squeeze_mask? stride?
slice_by_size 15 begin size x
slice_update 18 begin end update x begin_mask? end_mask? squeeze_mask? stride?
sliding_windows 15 axis size x stride?
softmax 15 x axis?
softplus 15 x
softplus_parametric 15 alpha beta x
softsign 15 x
space_to_batch 15 block_shape paddings x
space_to_depth 15 block_size x
split 15 axis x num_splits? split_sizes?
sqrt 15 x
square 15 x
squeeze 15 x axes?
stack 15 axis values
sub 15 x y
tan 15 x
tanh 15 x
threshold 15 alpha x
thresholded_relu 15 alpha x
tile 15 reps x
topk 15 x ascending? axis? k? output_indices_dtype? return_indices? sort?
transpose 15 perm x
upsample_bilinear 15 x align_corners? half_pixel_centers? scale_factor_height? scale_factor_width?
upsample_nearest_neighbor 15 x scale_factor_height? scale_factor_width?
while_loop 15 loop_vars
write_state 18 data input
`
