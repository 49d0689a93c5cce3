"""attention_decode by scaled_dot_product_attention, flash-attn, FlashInfer and vLLM: attention with one query a sequence.

The newest token sees the whole contiguous cache, so there is no mask, and K and V are read where they lie."""

import torch_attention


def supports(variant, problem):
    if problem["contexts"]:
        return "sequences must have equal lengths: contexts must be empty"
    for field, only in (("q_len", 1), ("kv_bits", 16), ("splits", 0)):
        if problem[field] != only:
            return f"{field} must be {only}, got {problem[field]}"
    return torch_attention.supports(variant, _as_prefill(problem))


def _as_prefill(problem):
    """The same attention in the words of attention_prefill."""
    return {**problem, "kv_len": problem["context"], "q_lens": [], "kv_lens": [], "v_head_dim": 0, "causal": False}


def _flash_attn(module, problem, q, k, v):
    """Of both versions the function that cuts the context into parts: flash_attn_func of version 3 does not."""
    return lambda: module.flash_attn_with_kvcache(q, k, v)


def _flashinfer(module, problem, q, k, v):
    grouped = problem["q_heads"] > problem["kv_heads"]  # its tensor cores pay where heads share K and V
    return lambda: module.single_decode_with_kv_cache(q[0, 0], k[0], v[0], use_tensor_cores=grouped)[None, None]


MAKERS = {"flash_attn.v2": _flash_attn, "flash_attn.v3": _flash_attn, "flashinfer.decode": _flashinfer,
          "vllm.flash_attn": torch_attention.vllm}


def prepare(variant, problem, tensors):
    return torch_attention.Attention(variant, _as_prefill(problem), tensors, MAKERS)
