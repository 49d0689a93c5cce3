#!/usr/bin/env python3
"""Loads what `inferometer quantize` wrote with the safetensors library, and dequantises it by hand with NumPy.

usage: quantized_model_test.py PROGRAM PROJECT_FOLDER. Exit code 77 without NumPy or safetensors.

The weights come from the report's own method, rounding, so that each may be off by half a step: the bounds below hold
for every format only if codes, zeros and scales are all where the format says.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

GROUP = 32


def bf16(bits):
    return (bits.astype(numpy.uint32) << 16).view(numpy.float32)


def floating(tensor):
    return bf16(tensor) if tensor.dtype == numpy.uint16 else tensor.astype(numpy.float32)


def raw_tensors(path):
    """Tensors by name, those of BF16 as their bits: NumPy has no such type."""
    with open(path, "rb") as file:
        length = int.from_bytes(file.read(8), "little")
        header = json.loads(file.read(length))
        data = file.read()
    types = {"BF16": numpy.uint16, "F16": numpy.float16, "F32": numpy.float32, "I32": numpy.uint32, "I64": numpy.int64}
    return {name: numpy.frombuffer(data[slice(*t["data_offsets"])], types[t["dtype"]]).reshape(t["shape"])
            for name, t in header.items() if name != "__metadata__"}


def nibbles(words, bits, order=None):
    """[rows, words] -> [rows, values], the first value in the lowest bits, or value order[i] at place i."""
    places = numpy.stack([(words >> numpy.uint32(bits * i)) & (2**bits - 1) for i in range(32 // bits)], axis=-1)
    if order is not None:
        places = places[..., numpy.argsort(order)]
    return places.reshape(words.shape[0], -1).astype(numpy.int64)


def dequantised(t, layer, form, bits):
    """(weight [n, k], step [n, k])"""
    part = lambda name: t[f"{layer}.{name}"]
    if form in ("gptq", "gptq_v2"):
        codes = nibbles(part("qweight").T, bits).T
        zeros = nibbles(part("qzeros"), bits) + (form == "gptq")
        group = part("g_idx").astype(numpy.int64)
        scales = floating(part("scales"))[group]
        return ((codes - zeros[group]) * scales).T, scales.T
    if form == "awq":
        order = [0, 2, 4, 6, 1, 3, 5, 7]
        codes, zeros = nibbles(part("qweight"), bits, order), nibbles(part("qzeros"), bits, order)
        scales = floating(part("scales")).repeat(GROUP, axis=0)
        return ((codes - zeros.repeat(GROUP, axis=0)) * scales).T, scales.T
    n, k = part("weight_shape")
    codes = nibbles(part("weight_packed"), bits)[:, :k] - 2 ** (bits - 1)
    scales = floating(part("weight_scale")).repeat(GROUP, axis=1)
    zeros = 0
    if f"{layer}.weight_zero_point" in t:
        zeros = (nibbles(part("weight_zero_point").T, bits).T[:n] - 2 ** (bits - 1)).repeat(GROUP, axis=1)
    return (codes - zeros) * scales, scales


def check(program, folder, form, bits, asymmetric):
    out = folder / f"{form}-{bits}-{asymmetric}"
    subprocess.run([program, "quantize", folder / "model", "-o", out, "--bits", str(bits), "--group-size", str(GROUP),
                    "--format", form, "--quiet"] + ["--asymmetric"] * asymmetric, check=True, stdout=subprocess.DEVNULL)
    path = out / "model.safetensors"
    with safe_open(path, framework="numpy") as file:
        assert file.metadata() == {"format": "pt"}, file.metadata()
        names = set(file.keys())
    t = raw_tensors(path)
    assert names == set(t), names ^ set(t)
    if all(tensor.dtype != numpy.uint16 for tensor in t.values()):
        for name, tensor in load_file(path).items():
            assert tensor.view(numpy.uint8).tobytes() == t[name].tobytes(), name
    original = raw_tensors(folder / "model" / "model.safetensors")
    layers = json.loads((out / "quantization_report.json").read_text())["layers"]
    assert len(layers) == 14
    for report in layers:
        layer = report["layer"]
        weight = bf16(original[layer + ".weight"])
        made, step = dequantised(t, layer, form, bits)
        error = numpy.abs(made - weight)
        # Half a step, and at the ends of a grid half a step more, for an asymmetric zero is rounded too, and what the
        # rounding of the scale cuts off: its unit roundoff times all steps.
        roundoff = 2.0**-8 if form == "compressed-tensors" else 2.0**-11
        assert (error <= (1.001 + 2**bits * roundoff) * step).all(), (form, layer, (error / step).max())
        relative = numpy.linalg.norm(made - weight) / numpy.linalg.norm(weight)
        assert abs(relative - report["weight_rel_error"]) <= 1e-4 * relative, (form, layer, relative, report)
    for name in ("model.embed_tokens.weight", "lm_head.weight", "model.norm.weight"):
        assert t[name].tobytes() == original[name].tobytes(), name
    print(f"ok: {form}, {bits} bits, {'asymmetric' if asymmetric else 'symmetric'}")


def main():
    program, project = sys.argv[1:]
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name) / "work"
        subprocess.run([sys.executable, f"{project}/tests/cli/llama_checkpoint.py", folder], check=True)
        for form in ("gptq", "gptq_v2", "awq", "compressed-tensors"):
            for bits in (4, 8):
                for asymmetric in (False, True):
                    if bits == 4 or form != "awq":
                        check(program, folder, form, bits, asymmetric)


main()
