"""attention_prefill by scaled_dot_product_attention, flash-attn, FlashInfer and vLLM."""

import importlib
import math

import torch
import torch.nn.functional as functional
import torch_packages
import torch_tensors

SDPA = {"torch.sdpa_math": "math", "torch.sdpa_flash": "flash", "torch.sdpa_efficient": "mem_efficient",
        "torch.sdpa_cudnn": "cudnn", "cpu.torch_sdpa_math": "math", "cpu.torch_sdpa_flash": "flash"}
CHECKS = {"flash": "can_use_flash_attention", "mem_efficient": "can_use_efficient_attention", "cudnn": "can_use_cudnn_attention"}
PACKAGES = {"flash_attn.v2": "flash_attn", "flash_attn.v3": "flash_attn_interface", "flashinfer.prefill": "flashinfer",
            "flashinfer.decode": "flashinfer", "vllm.flash_attn": "vllm"}


def supports(variant, problem):
    if variant in PACKAGES and (reason := torch_packages.refuses(PACKAGES[variant])):
        return reason
    if problem["q_lens"] or problem["kv_lens"]:
        return "sequences must have equal lengths, got q_lens or kv_lens"
    if problem["block_size"] or problem["k_row_stride"] or problem["v_row_stride"]:
        return "K and V must be contiguous: block_size, k_row_stride and v_row_stride must be 0"
    if problem["window_left"] != -1 or problem["soft_cap"]:
        return "window_left must be -1 and soft_cap 0"
    if problem["v_head_dim"] not in (0, problem["head_dim"]):
        return f"v_head_dim must be 0 or head_dim, got {problem['v_head_dim']}"
    if problem["q_len"] == 0 or problem["kv_len"] == 0:
        return "q_len and kv_len must be positive"
    if variant in SDPA and problem["causal"] and problem["q_len"] != problem["kv_len"]:
        return "a causal mask of PyTorch is top-left aligned: q_len must equal kv_len"
    if variant.startswith("flashinfer.") and problem["batch"] != 1:
        return f"batch must be 1, got {problem['batch']}"
    if problem["dtype"] == "f32" and not variant.startswith("cpu.") and variant not in ("torch.sdpa_math", "torch.sdpa_efficient"):
        return "dtype must be f16 or bf16, got f32"
    return _sdpa_refuses(SDPA[variant], problem) if variant.startswith("torch.") else None


def _enable_only(backend):
    for one in ("math", "flash", "mem_efficient", "cudnn"):
        getattr(torch.backends.cuda, f"enable_{one}_sdp")(one == backend)


def _sdpa_refuses(backend, problem):
    """What PyTorch finds itself before it takes a kernel: it looks at everything but the values and the batch."""
    if backend not in CHECKS:
        return None
    _enable_only(backend)
    q_heads = problem["q_heads"]
    kv_heads = q_heads if backend == "mem_efficient" else problem["kv_heads"]
    q, k = (torch.empty((1, length, heads, problem["head_dim"]), dtype=torch_tensors.DTYPES[problem["dtype"]],
                        device=torch_tensors.DEVICE).transpose(1, 2)
            for length, heads in ((problem["q_len"], q_heads), (problem["kv_len"], kv_heads)))
    params = torch.backends.cuda.SDPAParams(q, k, k, None, 0.0, problem["causal"], q_heads != kv_heads)
    if getattr(torch.backends.cuda, CHECKS[backend])(params, False):
        return None
    return f"PyTorch's {CHECKS[backend]} says no to this problem on this GPU"


def _sdpa(variant, problem, q, k, v):
    _enable_only(SDPA[variant])  # for good, so that no launch spends time on it
    groups = problem["q_heads"] // problem["kv_heads"]
    grouped = groups > 1
    if grouped and SDPA[variant] == "mem_efficient":  # it knows no groups of heads
        k, v = (one.repeat_interleave(groups, dim=2) for one in (k, v))
        grouped = False
    q, k, v = (one.transpose(1, 2) for one in (q, k, v))  # views: [batch, heads, length, dim]
    causal = problem["causal"]
    return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped).transpose(1, 2)


def _flash_attn(module, problem, q, k, v):
    def launch():
        out = module.flash_attn_func(q, k, v, causal=problem["causal"])
        return out[0] if isinstance(out, tuple) else out  # version 3 had the log-sum-exp beside it at first

    return launch


def _flashinfer(module, problem, q, k, v):
    return lambda: module.single_prefill_with_kv_cache(q[0], k[0], v[0], causal=problem["causal"])[None]


def vllm(_, problem, q, k, v):
    """The flash attention that vLLM is shipped with, of the newest version that it has for this GPU."""
    flash = importlib.import_module("vllm.vllm_flash_attn")
    batch, q_len, kv_len = problem["batch"], problem["q_len"], problem["kv_len"]
    starts = torch.arange(batch + 1, dtype=torch.int32, device=torch_tensors.DEVICE)
    arguments = {"q": q.flatten(0, 1), "k": k.flatten(0, 1), "v": v.flatten(0, 1), "causal": problem["causal"],
                 "cu_seqlens_q": starts * q_len, "cu_seqlens_k": starts * kv_len, "max_seqlen_q": q_len,
                 "max_seqlen_k": kv_len, "fa_version": 3 if flash.is_fa_version_supported(3) else 2}
    return lambda: flash.flash_attn_varlen_func(**arguments).view_as(q)


MAKERS = {"flash_attn.v2": _flash_attn, "flash_attn.v3": _flash_attn, "flashinfer.prefill": _flashinfer, "vllm.flash_attn": vllm}


class Attention:
    """`makers`: of each variant of a package, what makes the function that is timed from the package's module."""

    def __init__(self, variant, problem, tensors, makers):
        self.problem, self.tensors = problem, tensors
        self.q, self.k, self.v = (torch_tensors.device(tensors[name]) for name in "qkv")
        if variant in SDPA:
            self.compute = _sdpa(variant, problem, self.q, self.k, self.v)
        else:
            module = importlib.import_module(PACKAGES[variant])
            self.compute = makers[variant](module, problem, self.q, self.k, self.v)
        self.out = None

    def launch(self):
        self.out = self.compute()

    def read_back(self):
        torch_tensors.host(self.tensors["o"]).copy_(self.out)
        torch_tensors.host(self.tensors["lse"]).copy_(self.log_sum_exp())

    def log_sum_exp(self):
        """These calls return no log-sum-exp: it is computed here, untimed, one head at a time."""
        groups = self.problem["q_heads"] // self.problem["kv_heads"]
        lse = torch.empty(self.tensors["lse"].shape, device=torch_tensors.DEVICE)
        for head in range(self.problem["q_heads"]):
            scores = self.q[:, :, head].float() @ self.k[:, :, head // groups].float().transpose(1, 2)
            scores /= math.sqrt(self.problem["head_dim"])
            if self.problem["causal"]:
                first_hidden = 1 + self.problem["kv_len"] - self.problem["q_len"]  # of the first query
                scores.masked_fill_(torch.ones_like(scores[0], dtype=torch.bool).triu(first_hidden), -math.inf)
            lse[:, head] = torch.logsumexp(scores, dim=2)
        return lse


def prepare(variant, problem, tensors):
    return Attention(variant, problem, tensors, MAKERS)
