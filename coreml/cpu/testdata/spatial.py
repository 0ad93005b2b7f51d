"""Cases of spatial ops that the shared vectors leave out, written to spatial.json.

usage: python spatial.py > spatial.json    (numpy only)

Expected values are numpy float64, rounded once, from the definitions in
coremltools' documentation of the ops (image_resizing.py of iOS15 to iOS17,
conv.py, pool.py, normalization.py): loops over single elements, so that they
share nothing with an engine.
"""
import itertools
import json

import numpy as np

from extra import CASES, F16, F32, I32, one, rng

TOL = {F16: (2e-3, 1e-3), F32: (2e-5, 1e-5)}


def lerp(img, y, x, pad=0.0):
    """One sample of a [H, W] image; pad outside."""
    h, w = img.shape
    if not (0 <= y <= h - 1 and 0 <= x <= w - 1):
        return pad
    y0, x0 = int(np.floor(y)), int(np.floor(x))
    y1, x1 = min(y0 + 1, h - 1), min(x0 + 1, w - 1)
    a, b = y - y0, x - x0
    return (1 - a) * ((1 - b) * img[y0, x0] + b * img[y0, x1]) + a * ((1 - b) * img[y1, x0] + b * img[y1, x1])


def crop(img, box, th, tw, pad=0.0):
    """ALIGN_CORNERS crop of a [C, H, W] image."""
    at = lambda a, b, i, n: (a + b) / 2 if n == 1 else a + i * (b - a) / (n - 1)  # noqa
    return np.array([[[lerp(c, at(box[0], box[2], i, th), at(box[1], box[3], j, tw), pad) for j in range(tw)] for i in range(th)] for c in img])


def crop_resize():
    r = rng("crop_resize")
    x = r.normal(0, 2, (2, 3, 5, 6)).astype(F32)
    d = x.astype(np.float64)
    boxes = np.array([[0, 0, 4, 5], [1, 1.5, 3, 4.5], [2, 0, 2, 5]], F32)
    kw = dict(target_height=3, target_width=2, normalized_coordinates=False, spatial_scale=F32(1), box_coordinate_mode="CORNERS_HEIGHT_FIRST", sampling_mode="ALIGN_CORNERS")
    every = np.array([[crop(img, b, 3, 2) for img in d] for b in boxes.astype(np.float64)]).astype(F32)
    for opset in ("ios15", "ios16"):
        one("crop_resize_every_image_" + opset, "crop_resize", {"x": x, "roi": boxes.reshape(3, 1, 4, 1, 1)}, {"y": every}, TOL[F32], opset=opset, **kw)
    which = np.array([1, 0, 1])
    named = np.concatenate([which[:, None], boxes], 1).astype(F32).reshape(3, 1, 5, 1, 1)
    y = np.array([[crop(d[n], b, 3, 2)] for n, b in zip(which, boxes.astype(np.float64))]).astype(F32)
    one("crop_resize_named_image_ios15", "crop_resize", {"x": x, "roi": named}, {"y": y}, TOL[F32], opset="ios15", **kw)
    outside = np.array([[-1, 0, 3, 5], [0, 2, 4, 8]], F32)
    y = np.array([crop(d[n], b, 5, 4, 1.5) for n, b in enumerate(outside.astype(np.float64))]).astype(F32)
    big = dict(kw, target_height=5, target_width=4)
    one("crop_resize_outside_is_pad_value", "crop_resize", {"x": x, "boxes": outside}, {"y": y}, TOL[F32], pad_value=F32(1.5), **big)
    scaled = np.array([crop(d[n], b * 0.5, 3, 2) for n, b in enumerate(boxes[:2].astype(np.float64))]).astype(F32)
    one("crop_resize_spatial_scale", "crop_resize", {"x": x, "boxes": boxes[:2].copy()}, {"y": scaled}, TOL[F32], **dict(kw, spatial_scale=F32(0.5)))
    one("crop_resize_more_boxes_than_images", "crop_resize", {"x": x, "boxes": boxes}, {"y": every[:, 0]}, error=True, **kw)
    one("crop_resize_no_such_image", "crop_resize", {"x": x, "boxes": boxes, "box_indices": np.array([0, 2, 1], I32)}, {"y": every[:, 0]}, error=True, **kw)


def resize():
    r = rng("resize")
    x = r.integers(-2**31, 2**31, (1, 2, 3, 4)).astype(I32)
    f = r.normal(0, 2, (1, 2, 3, 4)).astype(F32)
    near = dict(resized_dims=np.uint32(2), interpolation_mode="NEAREST_NEIGHBOR", sampling_mode="DEFAULT")
    one("resize_int32_nearest", "resize", {"x": x}, {"y": x.repeat(2, 2).repeat(3, 3)}, shape=np.array([1, 6, 12], I32), **near)
    one("resize_int32_linear_refused", "resize", {"x": x}, {"y": x.repeat(2, 2)}, error=True, shape=np.array([6, 4], I32), **dict(near, interpolation_mode="LINEAR"))
    one("resize_last_only", "resize", {"x": f}, {"y": f.repeat(2, 3)}, shape=np.array([9, 9, 8], I32), **dict(near, resized_dims=np.uint32(1)))
    one("resize_shape_longer_than_x", "resize", {"x": f}, {"y": f}, error=True, shape=np.array([1, 1, 2, 3, 4], I32), **near)


def conv(x, w, strides, before, dil, out):
    y = np.zeros((x.shape[0], w.shape[0]) + out)
    for at in np.ndindex(*y.shape):
        for ci, *k in np.ndindex(*w.shape[1:]):
            p = [at[2 + d] * strides[d] + k[d] * dil[d] - before[d] for d in range(len(out))]
            if all(0 <= p[d] < x.shape[2 + d] for d in range(len(out))):
                y[at] += x[(at[0], ci, *p)] * w[(at[1], ci, *k)]
    return y


def convs():
    for dt in (F16, F32):
        r = rng("conv", dt.__name__)
        x, w, b = r.normal(0, 1, (2, 3, 5, 4)).astype(dt), r.normal(0, 1, (4, 3, 3, 2)).astype(dt), r.normal(0, 1, 4).astype(dt)
        full = conv(x.astype(np.float64), w.astype(np.float64), (2, 1), (1, 0), (1, 1), (3, 4)) + b.astype(np.float64).reshape(4, 1, 1)
        kw = dict(strides=np.array([2, 1], I32), dilations=np.array([1, 1], I32), groups=1)
        custom = dict(pad_type="custom", pad=np.array([1, 1, 0, 1], I32), **kw)
        n = dt.__name__
        one("conv_run_time_weight_" + n, "conv", {"x": x, "weight": w, "bias": b}, {"y": full.astype(dt)}, TOL[dt], **custom)
        other = F32 if dt == F16 else F16
        wo, bo = w.astype(other), b.astype(other)
        mixed = conv(x.astype(np.float64), wo.astype(np.float64), (2, 1), (1, 0), (1, 1), (3, 4)) + bo.astype(np.float64).reshape(4, 1, 1)
        one("conv_other_weight_type_" + n, "conv", {"x": x}, {"y": mixed.astype(dt)}, TOL[dt], weight=wo, bias=bo, **custom)
        t = r.normal(0, 1, (3, 2, 3, 2)).astype(dt)
        y = np.zeros((2, 2, 11, 5))
        for i, ci, co, p, q, k, m in itertools.product(range(2), range(3), range(2), range(5), range(4), range(3), range(2)):
            y[i, co, 2 * p + k, q + m] += float(x[i, ci, p, q]) * float(t[ci, co, k, m])
        one("conv_transpose_run_time_weight_" + n, "conv_transpose", {"x": x, "weight": t}, {"y": y.astype(dt)}, TOL[dt], pad_type="valid", pad=np.zeros(4, I32), **kw)
        one("conv_transpose_output_shape_" + n, "conv_transpose", {"x": x}, {"y": y[:, :, 1:10].astype(dt)}, TOL[dt], weight=t, pad_type="custom", pad=np.array([1, 1, 0, 0], I32), output_shape=np.array([2, 2, 9, 5], I32), **kw)
    one("conv_negative_pad", "conv", {"x": x}, {"y": full.astype(dt)}, error=True, weight=w, **dict(custom, pad=np.array([-1, 3, 0, 1], I32)))
    one("conv_bias_length", "conv", {"x": x}, {"y": full.astype(dt)}, error=True, weight=w, bias=b[:3].copy(), **custom)
    one("max_pool_negative_pad", "max_pool", {"x": x}, {"y": x}, error=True, kernel_sizes=np.array([1, 1], I32), strides=np.array([1, 1], I32), pad_type="custom", pad=np.array([-1, 1, 0, 0], I32), ceil_mode=False)


def pools():
    x = rng("pool").normal(0, 2, (1, 2, 4, 3)).astype(F32)
    wide = dict(kernel_sizes=np.array([2**31 - 1, 1], I32), strides=np.array([1, 1], I32), pad_type="same", pad=np.zeros(4, I32), ceil_mode=False)
    one("max_pool_kernel_far_larger_than_x", "max_pool", {"x": x}, {"y": np.broadcast_to(x.max(2, keepdims=True), x.shape)}, **wide)
    mean = np.broadcast_to(x.astype(np.float64).mean(2, keepdims=True), x.shape).astype(F32)
    one("avg_pool_kernel_far_larger_than_x", "avg_pool", {"x": x}, {"y": mean}, TOL[F32], exclude_padding_from_average=True, **wide)


def norms():
    x = rng("layer_norm").normal(3, 2, (2, 3, 4, 5)).astype(F32)
    d = x.astype(np.float64)
    y = (d - d.mean((1, 3), keepdims=True)) / np.sqrt(d.var((1, 3), keepdims=True) + 1e-5)
    one("layer_norm_axes_apart", "layer_norm", {"x": x}, {"y": y.astype(F32)}, TOL[F32], axes=np.array([1, -1], I32), epsilon=F32(1e-5))


def samples():
    r = rng("resample")
    x = r.normal(0, 2, (1, 2, 4, 5)).astype(F32)
    d = x.astype(np.float64)
    kw = dict(sampling_mode="bilinear", padding_mode="constant", padding_value=F32(0), coordinates_mode="unnormalized", align_corners=True)
    for dt in (np.uint8, F16):
        co = (r.uniform(0, 3, (1, 2, 3, 2)) if dt == F16 else r.integers(0, 4, (1, 2, 3, 2))).astype(dt)
        y = np.array([[[[lerp(c, float(co[0, i, j, 1]), float(co[0, i, j, 0])) for j in range(3)] for i in range(2)] for c in d[0]]])
        if dt == F16:
            one("resample_fp16_coordinates", "resample", {"x": x, "coordinates": co}, {"y": y.astype(F32)}, TOL[F32], **kw)
        else:
            one("resample_uint8_coordinates", "resample", {"x": x}, {"y": y.astype(F32)}, TOL[F32], coordinates=co, **kw)
    one("resample_batch_mismatch", "resample", {"x": x, "coordinates": np.zeros((2, 2, 3, 2), F32)}, {"y": np.zeros((2, 2, 2, 3), F32)}, error=True, **kw)


for f in (crop_resize, resize, convs, pools, norms, samples):
    f()
print(json.dumps({"cases": CASES}, indent=1))
