"""Cases for what the shared op vectors leave out, written to extra.json.

usage: python extra.py > extra.json    (numpy only)

Expected values are numpy float64, rounded once, from the definitions in
coremltools' documentation and in its own backend tests (test_recurrent.py
for lstm clip, hard_sigmoid and gru reset_after; test_numpy_nn_layers.py for
the padding of non_maximum_suppression). The format is that of the vectors.
"""
import base64
import json
import zlib

import numpy as np

F16, F32, I32, BOOL = np.float16, np.float32, np.int32, np.bool_
NAMES = {"float16": "fp16", "float32": "fp32", "int32": "int32", "uint16": "uint16", "uint32": "uint32", "int8": "int8", "uint8": "uint8", "bool": "bool", "int64": "int64"}
CASES = []


def name(dt):
    return NAMES[np.dtype(dt).name]


def typ(a):
    return "tensor<%s, [%s]>" % (name(a.dtype), ", ".join(map(str, a.shape)))


def num(x):
    if isinstance(x, (bool, np.bool_)):
        return "true" if x else "false"
    if isinstance(x, (int, np.integer)):
        return str(int(x))
    x = float(x)
    if np.isnan(x):
        return "nan"
    if np.isinf(x):
        return "-inf" if x < 0 else "inf"
    return x.hex()


def lit(a):
    if isinstance(a, str):
        return 'string("%s")' % a
    if isinstance(a, tuple):
        return "(%s)" % ", ".join(lit(x) for x in a)
    if isinstance(a, bool):
        return "bool(%s)" % num(a)
    if isinstance(a, int):
        return "int32(%d)" % a
    a = np.asarray(a)

    def nest(v):
        return "[%s]" % ", ".join(nest(x) for x in v) if v.ndim else num(v[()])
    if a.ndim == 0:
        return "%s(%s)" % (name(a.dtype), num(a[()]))
    return "%s(%s)" % (typ(a), nest(a))


def js(a):
    a = np.asarray(a, order="C")
    return {"dtype": name(a.dtype), "shape": list(a.shape), "data": base64.b64encode(a.tobytes()).decode()}


def add(nm, body, ins, outs, tol=(0, 0), error=False, opset="ios18", oracle="numpy", states=None):
    """outs: {identifier: array}; body: statements, with {name} left alone."""
    params = ["%s %s" % (typ(v), k) for k, v in sorted(ins.items())] + ["state<%s> %s" % (typ(v), k) for k, v in (states or {}).items()]
    prog = "program(1.3)\n{\n    func main<%s>(%s) {\n%s\n        } -> (%s);\n}\n" % (
        opset, ", ".join(params), "\n".join("            " + s + ";" for s in body), ", ".join(outs))
    extra = {"states": {k: js(v) for k, v in states.items()}} if states else {}
    CASES.append({**extra, "name": nm, "program": prog, "inputs": {k: js(v) for k, v in ins.items()}, "outputs": {} if error else {k: js(v) for k, v in outs.items()},
                  "tolerance": {"abs": tol[0], "rel": tol[1]}, "oracle": oracle, "error": error})


def op(outs, op_, **kw):
    """One statement; outs: {identifier: array or type text}."""
    left = ", ".join("%s %s" % (v if isinstance(v, str) else typ(np.asarray(v)), k) for k, v in outs.items())
    args = ", ".join("%s = %s" % (k, v[1:] if isinstance(v, str) and v.startswith("@") else lit(v)) for k, v in sorted(kw.items()))
    return "%s = %s(%s)" % (left, op_, args)


def one(nm, op_, ins, outs, tol=(0, 0), error=False, opset="ios18", **kw):
    kw.update({k: "@" + k for k in ins})
    add(nm, [op(outs, op_, **kw)], ins, outs, tol, error, opset)


def rng(*key):
    return np.random.default_rng(zlib.crc32("/".join(map(str, key)).encode()))


def sig(x):
    return 1 / (1 + np.exp(-x))


def lstm():
    r = rng("lstm")
    s, b, I, H = 4, 2, 3, 4
    x = r.normal(0, 2, (s, b, I)).astype(F32)
    h0, c0 = r.normal(0, 1, (b, 2 * H)).astype(F32), r.normal(0, 2, (b, 2 * H)).astype(F32)
    w = [(r.normal(0, 1, (4 * H, I)).astype(F32), r.normal(0, 1, (4 * H, H)).astype(F32), r.normal(0, 1, 4 * H).astype(F32), r.normal(0, 1, 3 * H).astype(F32)) for _ in range(2)]

    def run(k, rev, gate, clip):
        wi, wh, bb, pp = (v.astype(np.float64) for v in w[k])
        h, c = h0.astype(np.float64)[:, k * H:(k + 1) * H], c0.astype(np.float64)[:, k * H:(k + 1) * H]
        ys = [None] * s
        for t in (reversed(range(s)) if rev else range(s)):
            z = x[t].astype(np.float64) @ wi.T + h @ wh.T + bb
            i, f, o, g = np.split(z, 4, 1)
            i, f, g = gate(i + pp[:H] * c), gate(f + pp[H:2 * H] * c), np.tanh(g)
            c = np.clip(f * c + i * g, -clip, clip)
            h = gate(o + pp[2 * H:] * c) * np.tanh(c)
            ys[t] = h
        return np.stack(ys), h, c
    hard = lambda v: np.clip(0.2 * v + 0.5, 0, 1)  # noqa
    for nm, gate, gname, clip in (("clip", sig, "sigmoid", 0.5), ("hard_sigmoid", hard, "hard_sigmoid", np.inf)):
        y, h, c = (np.concatenate(v, -1).astype(F32) for v in zip(run(0, False, gate, clip), run(1, True, gate, clip)))
        kw = dict(weight_ih=w[0][0], weight_hh=w[0][1], bias=w[0][2], peephole=w[0][3], weight_ih_back=w[1][0], weight_hh_back=w[1][1], bias_back=w[1][2], peephole_back=w[1][3],
                  direction="bidirectional", output_sequence=True, recurrent_activation=gname)
        if np.isfinite(clip):
            kw["clip"] = F32(clip)
        one("lstm_" + nm, "lstm", {"x": x, "initial_h": h0, "initial_c": c0}, {"y": y, "h": h, "c": c}, (4e-6, 1e-5), **kw)
    y, h, c = (v.astype(F32) for v in run(0, False, sig, np.inf))
    base = dict(weight_ih=w[0][0], weight_hh=w[0][1], bias=w[0][2], output_sequence=True)
    st = {"x": x, "initial_h": h0[:, :H].copy(), "initial_c": c0[:, :H].copy()}
    one("lstm_scaled_tanh_refused", "lstm", st, {"y": y, "h": h, "c": c}, error=True, activation="scaled_tanh", **base)
    one("lstm_direction_refused", "lstm", st, {"y": y, "h": h, "c": c}, error=True, direction="backward", **base)
    one("lstm_hidden_mismatch", "lstm", {"x": x, "initial_h": h0, "initial_c": c0}, {"y": y, "h": h, "c": c}, error=True, **base)
    one("lstm_back_weights_missing", "lstm", {"x": x, "initial_h": h0, "initial_c": c0}, {"y": y, "h": h, "c": c}, error=True, direction="bidirectional", **base)


def gru():
    r = rng("gru")
    s, b, I, H = 3, 2, 3, 4
    x, h0 = r.normal(0, 1, (s, b, I)).astype(F32), r.normal(0, 1, (b, H)).astype(F32)
    wi, wh = r.normal(0, 1, (3 * H, I)).astype(F32), r.normal(0, 1, (3 * H, H)).astype(F32)
    bi, bh = r.normal(0, 1, 3 * H).astype(F32), r.normal(0, 1, 3 * H).astype(F32)

    def run(after, act):
        h, ys = h0.astype(np.float64), []
        W, U, Bi, Bh = (v.astype(np.float64) for v in (wi, wh, bi, bh))
        for t in range(s):
            zi, zh = x[t].astype(np.float64) @ W.T + Bi, h @ U.T
            if after:
                zh = zh + Bh
            else:
                zi = zi + Bh
            ri, oi, ui = np.split(zi, 3, 1)
            rh, oh, uh = np.split(zh, 3, 1)
            rr, z = sig(ri + rh), sig(ui + uh)
            h = (1 - z) * act(oi + rr * oh) + z * h
            ys.append(h)
        return np.stack(ys).astype(F32), h.astype(F32)
    for nm, after in (("reset_after", True), ("input_bias", False)):
        y, h = run(after, np.tanh)
        one("gru_" + nm, "gru", {"x": x, "initial_h": h0}, {"y": y, "h": h}, (4e-6, 1e-5), weight_ih=wi, weight_hh=wh, bias=bh, input_bias=bi, reset_after=after, output_sequence=True)
    one("gru_bidirectional_refused", "gru", {"x": x, "initial_h": h0}, {"y": y, "h": h}, error=True, weight_ih=wi, weight_hh=wh, direction="bidirectional")


def iou(a, b):
    lo, hi = np.maximum(a[:2] - a[2:] / 2, b[:2] - b[2:] / 2), np.minimum(a[:2] + a[2:] / 2, b[:2] + b[2:] / 2)
    i = np.prod(np.maximum(0, hi - lo))
    return i / (a[2] * a[3] + b[2] * b[3] - i)


def nms_ref(b, s, thr, mb, score=-np.inf, per_class=False):
    """boxes [n, B, 4], scores [n, B, K]: what coremltools' test calls CoreML's NMS layer."""
    n, _, k = s.shape
    ob, os_, oi, oc = np.zeros((n, mb, 4), b.dtype), np.zeros((n, mb, k), s.dtype), np.full((n, mb), -1, I32), np.zeros(n, I32)
    for j in range(n):
        best, cls = s[j].max(-1), s[j].argmax(-1)
        keep = []
        for i in np.argsort(-best, kind="stable"):
            if best[i] >= score and len(keep) < mb and all(iou(b[j, i].astype(np.float64), b[j, q].astype(np.float64)) <= thr or per_class and cls[i] != cls[q] for q in keep):
                keep.append(int(i))
        if not keep:
            keep = [int(best.argmax())]
        ob[j, :len(keep)], os_[j, :len(keep)], oi[j, :len(keep)], oc[j] = b[j][keep], s[j][keep], keep, len(keep)
    return ob, os_, oi, oc


def nms():
    r = rng("nms")
    b = np.concatenate([r.uniform(0, 20, (2, 12, 2)), r.uniform(4, 12, (2, 12, 2))], 2).astype(F32)
    s = r.permutation(2 * 12 * 3).reshape(2, 12, 3).astype(F32)
    for nm, kw in (("padded", {}), ("per_class", {"per_class": True})):
        ob, os_, oi, _ = nms_ref(b, s, 0.125, 9, **kw)
        assert (oi < 0).any(), nm
        one("nms_" + nm, "non_maximum_suppression", {"boxes": b.transpose(0, 2, 1).copy(), "scores": s.transpose(0, 2, 1).copy()},
            {"b": ob.transpose(0, 2, 1).copy(), "s": os_.transpose(0, 2, 1).copy(), "i": oi}, iou_threshold=F32(0.125), max_boxes=9, per_class_suppression="per_class" in kw)
    for nm, score in (("ios15", 40.0), ("ios15_none_above", 1000.0)):
        ob, os_, oi, oc = nms_ref(b, s, 0.25, 6, score)
        one("nms_" + nm, "non_maximum_suppression", {"boxes": b, "scores": s}, {"b": ob, "s": os_, "i": oi, "n": oc}, opset="ios16", iou_threshold=F32(0.25), score_threshold=F32(score), max_boxes=6)


def index():
    r = rng("index")
    d = r.normal(0, 1, (2, 5, 3)).astype(F32)
    idx = np.array([[4, 0], [2, 3]], I32)
    u = r.normal(0, 1, (2, 2, 2, 3)).astype(F32)
    e = d.copy()
    e[:, idx] = u
    one("scatter_rank2_indices", "scatter", {"data": d, "indices": idx, "updates": u}, {"y": e}, axis=1, mode="update")
    e = d.copy()
    e[[-1, 0]] = u[:, 0, 0, None, :] * np.ones((2, 5, 3), F32)
    one("scatter_negative_ios15", "scatter", {"data": d, "indices": np.array([-1, 0], I32), "updates": e[[-1, 0]]}, {"y": e}, opset="ios15", axis=0, mode="update")
    e = d.copy()
    one("scatter_nothing", "scatter", {"data": d, "indices": np.zeros(0, I32), "updates": np.zeros((0, 5, 3), F32)}, {"y": e}, axis=0, mode="add")
    one("scatter_nd_wrong_updates", "scatter_nd", {"data": d, "indices": idx, "updates": u}, {"y": d}, error=True, mode="add")
    one("scatter_bad_mode", "scatter", {"data": d, "indices": np.array([0], I32), "updates": d[:1].copy()}, {"y": d}, error=True, axis=0, mode="xor")
    x = np.array([[1, np.nan, np.inf, -np.inf, 3, np.nan]], F32)
    one("topk_nan_first", "topk", {"x": x}, {"v": x[:, [1, 5, 2]], "i": np.array([[1, 5, 2]], I32)}, k=3)
    one("topk_nan_last", "topk", {"x": x}, {"v": x[:, [3, 0, 4]], "i": np.array([[3, 0, 4]], I32)}, k=3, ascending=True)
    x = r.normal(0, 1, (3, 500)).astype(F32)
    for k in (5, 200):
        o = np.argsort(-x, 1, kind="stable")[:, :k]
        one("topk_of_500_%d" % k, "topk", {"x": x}, {"v": np.take_along_axis(x, o, 1), "i": o.astype(I32)}, k=k, axis=1)
    one("topk_negative_k", "topk", {"x": x}, {"v": x, "i": x.astype(I32)}, error=True, k=-2)
    i = np.array([1, 2], np.uint16)
    one("one_hot_only_on_value", "one_hot", {"indices": i}, {"y": np.array([[0, 4, 0], [0, 0, 4]], F16)}, one_hot_vector_size=3, on_value=F16(4))
    one("one_hot_negative_size", "one_hot", {"indices": i}, {"y": np.zeros((2, 0), I32)}, error=True, one_hot_vector_size=-1)
    big = np.array([2 ** 31 - 1, 1, 5], I32)
    one("cumsum_int32_wraps", "cumsum", {"x": big}, {"y": np.cumsum(big, dtype=I32)}, axis=0)
    one("range_1d_zero_step", "range_1d", {"end": np.array(3, I32)}, {"y": np.zeros(3, I32)}, error=True, start=0, step=0)
    one("fill_negative_shape", "fill", {"shape": np.array([2, -1], I32)}, {"y": np.zeros((2, 1), F32)}, error=True, value=F32(1))
    one("fill_too_large", "fill", {"shape": np.array([2 ** 30, 2 ** 30], I32)}, {"y": np.zeros((2, 1), F32)}, error=True, value=F32(1))
    one("reverse_sequence_too_long", "reverse_sequence", {"x": d, "lengths": np.array([6, 1], I32)}, {"y": d}, error=True, seq_axis=1, batch_axis=0)
    one("einsum_three_operands", "einsum", {}, {"y": d}, error=True, values=(d, d, d), equation="abc,abc,abc->abc")
    one("einsum_sums_one_side", "einsum", {}, {"y": np.einsum("abc,dbe->da", d.astype(np.float64), d.astype(np.float64)).astype(F32)}, (1e-5, 1e-5), values=(d, d), equation="abc,dbe->da")
    one("einsum_diagonal", "einsum", {}, {"y": np.einsum("aa,ab->b", d[0, :3].astype(np.float64), d[0, :3].astype(np.float64)).astype(F32)}, (1e-5, 1e-5), values=(d[0, :3].copy(), d[0, :3].copy()), equation="aa,ab->b")
    one("einsum_unknown_label", "einsum", {}, {"y": d}, error=True, values=(d, d), equation="abc,abd->abz")
    one("quantize_clips", "quantize", {"input": np.array([-1000, -0.75, 0.25, 0.75, 1000, np.inf], F32)}, {"y": np.array([0, 126, 128, 130, 255, 255], np.uint8)}, scale=F32(0.5), zero_point=np.array(128, np.uint8), output_dtype="uint8")
    one("quantize_axis_mismatch", "quantize", {"input": d}, {"y": d.astype(np.int8)}, error=True, scale=np.ones(4, F32), axis=1, output_dtype="int8")
    one("sdpa_batch_mismatch", "scaled_dot_product_attention", {"query": d, "key": d[:1].copy(), "value": d[:1].copy()}, {"y": d}, error=True)
    one("sdpa_mask_mismatch", "scaled_dot_product_attention", {"query": d, "key": d, "value": d}, {"y": d}, error=True, attn_mask=np.zeros((5, 4), F32))


def attention():
    r = rng("attention")
    q, k, v = (r.normal(0, 1, sh).astype(F16) for sh in ((1, 2, 3, 64), (1, 2, 9, 64), (1, 2, 9, 70)))
    m = np.zeros((3, 9), F16)
    m[:, :2] = -np.inf
    for i in range(3):
        m[i, i + 5:] = -np.inf
    z = q.astype(np.float64) @ k.astype(np.float64).transpose(0, 1, 3, 2) / 8 + m
    w = np.exp(z - z.max(-1, keepdims=True))
    y = (w / w.sum(-1, keepdims=True) @ v.astype(np.float64)).astype(F16)
    read = [op({"k": k}, "read_state", input="@ks"), op({"v": v}, "read_state", input="@vs")]
    add("sdpa_reads_states", read + [op({"y": y}, "scaled_dot_product_attention", query="@q", key="@k", value="@v", attn_mask="@m")], {"q": q, "m": m}, {"y": y}, (2 ** -11 * float(np.abs(v).max()), 2 ** -9), states={"ks": k, "vs": v})


def lists():
    r = rng("lists")
    v = r.normal(0, 1, (3, 2)).astype(F32)
    L = "list<tensor<fp32, [2]>, ?>"
    made = op({"l0": L}, "make_list", dtype="fp32", dynamic_length=True, elem_shape=(2,), init_length=2)
    fixed = op({"l0": L}, "make_list", dtype="fp32", dynamic_length=False, elem_shape=(2,), init_length=2)
    free = op({"l0": "list<tensor<fp32, [?]>, ?>"}, "make_list", dtype="fp32", dynamic_length=True, elem_shape=("n",), init_length=0)
    length = lambda n, l: op({n: np.array(0, I32)}, "list_length", ls="@" + l)  # noqa
    row = v[0].copy()
    i = lambda k: np.array(k, I32)  # noqa
    add("list_length_initial", [made, length("n", "l0")], {"x": row}, {"n": i(2)})
    add("list_write_grows", [made, op({"l1": L}, "list_write", ls="@l0", index=4, value="@x"), length("n", "l1"), length("m", "l0"), op({"y": row}, "list_read", ls="@l1", index=4), op({"z": row}, "list_read", ls="@l1", index=1)],
        {"x": row}, {"n": i(5), "m": i(2), "y": row, "z": np.zeros(2, F32)})
    add("list_write_fixed_outside", [fixed, op({"l1": L}, "list_write", ls="@l0", index=2, value="@x"), length("n", "l1")], {"x": row}, {"n": i(2)}, error=True)
    add("list_write_wrong_shape", [made, op({"l1": L}, "list_write", ls="@l0", index=0, value="@x"), length("n", "l1")], {"x": v}, {"n": i(2)}, error=True)
    add("list_read_outside", [made, op({"y": row}, "list_read", ls="@l0", index=2)], {"x": row}, {"y": row}, error=True)
    add("list_scatter_grows", [made, op({"l1": L}, "list_scatter", ls="@l0", indices=np.array([3, 0, 1], I32), value="@x"), length("n", "l1"), op({"y": np.zeros((4, 2), F32)}, "list_gather", ls="@l1", indices=np.array([0, 1, 2, 3], I32))],
        {"x": v}, {"n": i(4), "y": np.stack([v[1], v[2], 0 * v[0], v[0]])})
    add("list_shape_from_first_write", [free, op({"l1": "list<tensor<fp32, [?]>, ?>"}, "list_write", ls="@l0", index=0, value="@x"), op({"y": v[:1].copy()}, "list_gather", ls="@l1", indices=np.array([0], I32))], {"x": row}, {"y": v[:1]})
    add("list_in_place_of_array", [op({"n": i(0)}, "list_length", ls="@x")], {"x": row}, {"n": i(0)}, error=True)
    add("array_in_place_of_list", [made, op({"y": row}, "relu", x="@l0")], {"x": row}, {"y": row}, error=True)


def classify():
    p = np.array([[0.125, 0.5, 0.375]], F32)
    ids = "list<int64, 3>([7, -3, 12])"
    add("classify_integers", ["int64 y, dict<int64, fp64> d = classify(classes = %s, probabilities = p)" % ids], {"p": p}, {"y": np.array(-3, np.int64)})
    add("classify_wrong_count", ["int64 y, dict<int64, fp64> d = classify(classes = %s, probabilities = p)" % ids.replace(", 12", "")], {"p": p}, {"y": np.array(-3, np.int64)}, error=True)


if __name__ == "__main__":
    for f in (classify, lstm, gru, nms, index, attention, lists):
        f()
    print(json.dumps({"cases": CASES}, indent=1))
