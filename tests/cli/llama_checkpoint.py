#!/usr/bin/env python3
"""Writes a Llama-shaped model of random weights, and activations for its layers, with Python's standard library alone.

usage: llama_checkpoint.py FOLDER [--hidden 64] [--intermediate 128] [--blocks 2] [--vocab 64] [--tokens 16] [--shards 1]

FOLDER/model gets config.json and weights of BF16; FOLDER/calibration.safetensors a tensor [tokens, in_features] of F16
for q_proj, o_proj, gate_proj and down_proj of each block (the other projections read the same inputs).
"""
import argparse
import json
import pathlib
import random
import struct

# High bytes of BF16 and F16 numbers, by a random byte: either sign, some octaves below 1.
BF16_HIGH = bytes((b & 0x80) | (0x3A + (b & 3)) for b in range(256))
F16_HIGH = bytes((b & 0x80) | (0x30 + (b & 15)) for b in range(256))
ONE = {"BF16": b"\x80\x3f"}


def random_tensor(source, table, elements):
    data = bytearray(2 * elements)
    data[0::2] = source.randbytes(elements)
    data[1::2] = source.randbytes(elements).translate(table)
    return data


def write(path, dtype, tensors, contents):
    header = {"__metadata__": {"format": "pt"}}
    end = 0
    for name, shape in tensors:
        begin, end = end, end + 2 * elements_of(shape)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in tensors:
            file.write(contents(name, elements_of(shape)))


def elements_of(shape):
    product = 1
    for extent in shape:
        product *= extent
    return product


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=pathlib.Path)
    for name, value in (("hidden", 64), ("intermediate", 128), ("blocks", 2), ("vocab", 64), ("tokens", 16), ("shards", 1)):
        parser.add_argument("--" + name, type=int, default=value)
    a = parser.parse_args()
    source = random.Random(1)
    model = a.folder / "model"
    model.mkdir(parents=True)

    kv = a.hidden // 4
    tensors = [("model.embed_tokens.weight", [a.vocab, a.hidden])]
    inputs = []
    for i in range(a.blocks):
        block = f"model.layers.{i}."
        tensors += [(block + "input_layernorm.weight", [a.hidden]),
                    (block + "self_attn.q_proj.weight", [a.hidden, a.hidden]),
                    (block + "self_attn.k_proj.weight", [kv, a.hidden]),
                    (block + "self_attn.v_proj.weight", [kv, a.hidden]),
                    (block + "self_attn.o_proj.weight", [a.hidden, a.hidden]),
                    (block + "post_attention_layernorm.weight", [a.hidden]),
                    (block + "mlp.gate_proj.weight", [a.intermediate, a.hidden]),
                    (block + "mlp.up_proj.weight", [a.intermediate, a.hidden]),
                    (block + "mlp.down_proj.weight", [a.hidden, a.intermediate])]
        inputs += [(block + "self_attn.q_proj", [a.tokens, a.hidden]), (block + "self_attn.o_proj", [a.tokens, a.hidden]),
                   (block + "mlp.gate_proj", [a.tokens, a.hidden]), (block + "mlp.down_proj", [a.tokens, a.intermediate])]
    tensors += [("model.norm.weight", [a.hidden]), ("lm_head.weight", [a.vocab, a.hidden])]

    def weights(name, elements):
        return ONE["BF16"] * elements if "norm" in name else random_tensor(source, BF16_HIGH, elements)

    (model / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLM"], "model_type": "llama",
                                                   "torch_dtype": "bfloat16", "hidden_size": a.hidden}))
    (model / "tokenizer.json").write_text("{}")
    if a.shards == 1:
        write(model / "model.safetensors", "BF16", tensors, weights)
    else:
        weight_map = {}
        for i in range(a.shards):
            name = f"model-{i + 1:05}-of-{a.shards:05}.safetensors"
            part = tensors[i * len(tensors) // a.shards:(i + 1) * len(tensors) // a.shards]
            write(model / name, "BF16", part, weights)
            weight_map.update({tensor: name for tensor, _ in part})
        (model / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))
    write(a.folder / "calibration.safetensors", "F16", inputs,
          lambda name, elements: random_tensor(source, F16_HIGH, elements))


main()
