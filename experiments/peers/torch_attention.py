"""attention_prefill by scaled_dot_product_attention, flash-attn and FlashInfer."""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import math

import torch
import torch.nn.functional as functional
import torch_tensors

SDPA = {"torch.sdpa_math": "math", "torch.sdpa_flash": "flash", "torch.sdpa_efficient": "mem_efficient",
        "torch.sdpa_cudnn": "cudnn", "cpu.torch_sdpa_math": "math", "cpu.torch_sdpa_flash": "flash"}
PACKAGES = {"flash_attn.v2": ("flash_attn", "pip install flash-attn"),
            "flash_attn.v3": ("flash_attn_interface", "build the folder hopper of the flash-attention repository"),
            "flashinfer.prefill": ("flashinfer", "pip install flashinfer-python")}


def versions():
    found = {}
    for package in ("flash-attn", "flash-attn-3", "flashinfer-python"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def supports(variant, problem):
    if variant in PACKAGES and importlib.util.find_spec(PACKAGES[variant][0]) is None:
        module, install = PACKAGES[variant]
        return f"Python has no module {module}; to install: {install}"
    if variant in SDPA and tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):
        return f"needs torch 2.5 or newer, this is {torch.__version__}"
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
    if problem["causal"] and problem["q_len"] != problem["kv_len"]:
        return "a causal mask of PyTorch is top-left aligned: q_len must equal kv_len"
    if variant == "flashinfer.prefill" and problem["batch"] != 1:
        return f"batch must be 1, got {problem['batch']}"
    if problem["dtype"] == "f32" and not variant.startswith("cpu.") and variant not in ("torch.sdpa_math", "torch.sdpa_efficient"):
        return "dtype must be f16 or bf16, got f32"
    return None


def _sdpa(variant, problem, q, k, v):
    for backend in ("math", "flash", "mem_efficient", "cudnn"):  # for good, so that no launch spends time on it
        getattr(torch.backends.cuda, f"enable_{backend}_sdp")(backend == SDPA[variant])
    groups = problem["q_heads"] // problem["kv_heads"]
    grouped = groups > 1
    if grouped and SDPA[variant] == "mem_efficient":  # it knows no groups of heads
        k, v = (one.repeat_interleave(groups, dim=2) for one in (k, v))
        grouped = False
    q, k, v = (one.transpose(1, 2) for one in (q, k, v))  # views: [batch, heads, length, dim]
    causal = problem["causal"]
    return lambda: functional.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped).transpose(1, 2)


def _package(variant, problem, q, k, v):
    module = importlib.import_module(PACKAGES[variant][0])
    if variant == "flashinfer.prefill":
        return lambda: module.single_prefill_with_kv_cache(q[0], k[0], v[0], causal=problem["causal"])[None]

    def launch():
        out = module.flash_attn_func(q, k, v, causal=problem["causal"])
        return out[0] if isinstance(out, tuple) else out

    return launch


class Attention:
    def __init__(self, variant, problem, tensors):
        self.problem, self.tensors = problem, tensors
        self.q, self.k, self.v = (torch_tensors.device(tensors[name]) for name in "qkv")
        make = _sdpa if variant in SDPA else _package
        self.compute = make(variant, problem, self.q, self.k, self.v)
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
                scores.masked_fill_(torch.ones_like(scores[0], dtype=torch.bool).triu(1), -math.inf)
            lse[:, head] = torch.logsumexp(scores, dim=2)
        return lse


def prepare(variant, problem, tensors):
    return Attention(variant, problem, tensors)
