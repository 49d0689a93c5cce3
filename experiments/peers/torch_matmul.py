"""matmul by PyTorch and vLLM: Y = X W^T of 16 bits, of 8 bits on both sides, and of 4-bit weights."""

import importlib

import torch
import torch_packages
import torch_tensors

ON_GPU = torch_tensors.DEVICE == "cuda"


class Product:
    """A matmul of the harness: its inputs where this process computes, and the way back of its result."""

    def __init__(self, tensors):
        self.tensors = tensors
        self.x, self.w = (torch_tensors.device(tensors[name]) for name in "xw")
        self.y = None

    def read_back(self):
        torch_tensors.host(self.tensors["y"]).copy_(self.y)


class Matmul(Product):
    """torch.mm into an output that exists."""

    @staticmethod
    def refuses(problem):
        if problem["bits"] != 16 or problem["activation_bits"] != 16:
            return f"bits and activation_bits must be 16, got {problem['bits']} and {problem['activation_bits']}"
        return None

    def __init__(self, problem, tensors):
        super().__init__(tensors)
        self.y = torch.empty(tensors["y"].shape, dtype=self.x.dtype, device=torch_tensors.DEVICE)
        self.columns = self.w if problem["w_transposed"] else self.w.t()

    def launch(self):
        torch.mm(self.x, self.columns, out=self.y)


class Int8Product(Product):
    """Of codes with a scale for each token and for each output feature."""

    def __init__(self, problem, tensors):
        super().__init__(tensors)
        self.w = self.w.view(torch.int8)
        self.w_scales = torch_tensors.device(tensors["scales"]).float().view(1, -1)

    @staticmethod
    def refuses_shape(problem, multiple):
        if problem["activation_bits"] != 8:
            return f"activation_bits must be 8, got {problem['activation_bits']}"
        for name in "nk":
            if ON_GPU and problem[name] % multiple != 0:
                return f"{name} must be a multiple of {multiple}, got {problem[name]}"
        return None


class IntMm(Int8Product):
    """X to int8 codes by token, torch._int_mm, and both scales: one kernel after the other, as PyTorch runs them."""

    @staticmethod
    def refuses(problem):
        if reason := Int8Product.refuses_shape(problem, multiple=8):
            return reason
        return f"m must be greater than 16, got {problem['m']}" if ON_GPU and problem["m"] <= 16 else None

    def __init__(self, problem, tensors):
        super().__init__(problem, tensors)
        self.sums = torch.empty(tensors["y"].shape, dtype=torch.int32, device=torch_tensors.DEVICE)
        # A tensor where the divisions are made: PyTorch multiplies by the reciprocal of a number, which rounds twice.
        self.most = torch.full((), 127.0, device=torch_tensors.DEVICE)

    def launch(self):
        x = self.x.float()
        greatest = x.abs().amax(dim=1, keepdim=True).clamp_(min=2.0**-100)
        codes = (x * (self.most / greatest)).round_().to(torch.int8)
        torch._int_mm(codes, self.w.t(), out=self.sums)
        self.y = (self.sums * (greatest / self.most * self.w_scales)).to(self.x.dtype)


class VllmInt8(Int8Product):
    """Two kernels of vLLM: X to int8 codes by token, and the product with both scales."""

    @staticmethod
    def refuses(problem):
        return torch_packages.refuses("vllm") or Int8Product.refuses_shape(problem, multiple=16)

    def __init__(self, problem, tensors):
        super().__init__(problem, tensors)
        self.kernels = importlib.import_module("vllm._custom_ops")

    def launch(self):
        codes, scales, _ = self.kernels.scaled_int8_quant(self.x)
        self.y = self.kernels.cutlass_scaled_mm(codes, self.w.t(), scales, self.w_scales, self.x.dtype)


class Int4PackMm(Product):
    """torch._weight_int4pack_mm, the kernel of PyTorch's 4-bit weight-only models; on the processors the one for them.

    It takes a weight for (q - 8) scale + offset. Ours is (q - z) scale: the offset is (8 - z) scale, 0 in a symmetric
    format, else rounded to the dtype, as it is for models with zero points."""

    ROWS = 8 if ON_GPU else 16  # of W in a tile of the packed weights

    @staticmethod
    def refuses(problem):
        function = "_weight_int4pack_mm" if ON_GPU else "_weight_int4pack_mm_for_cpu"
        if not hasattr(torch, function):
            return f"torch {torch.__version__} has no {function}"
        if problem["bits"] != 4:
            return f"bits must be 4, got {problem['bits']}"
        if problem["group_size"] not in (32, 64, 128):
            return f"group_size must be 32, 64 or 128, got {problem['group_size']}"
        if problem["k"] % problem["group_size"] != 0:
            return f"k must be a multiple of group_size, {problem['group_size']}, got {problem['k']}"
        if problem["n"] % Int4PackMm.ROWS != 0:
            return f"n must be a multiple of {Int4PackMm.ROWS}, got {problem['n']}"
        if ON_GPU and problem["dtype"] != "bf16":
            return f"dtype must be bf16, got {problem['dtype']}"
        return None

    def __init__(self, problem, tensors):
        super().__init__(tensors)
        self.group_size = problem["group_size"]
        k_tiles = next(tiles for tiles in (8, 4, 2) if problem["k"] % (16 * tiles) == 0)  # as wide loads as k allows
        if ON_GPU:  # it takes the first of two codes from the upper bits of a byte, ours lies in the lower ones
            self.w = torch._convert_weight_to_int4pack((self.w << 4) | (self.w >> 4), k_tiles)
            self.multiply = torch._weight_int4pack_mm
        else:
            self.w = torch._convert_weight_to_int4pack_for_cpu(_nibbles(self.w).int(), k_tiles)
            self.multiply = torch._weight_int4pack_mm_for_cpu
        scales = torch_tensors.device(tensors["scales"])
        offsets = torch.zeros_like(scales)
        if not problem["symmetric"]:
            zeros = _nibbles(torch_tensors.device(tensors["zeros"]))[:, : scales.shape[1]]
            offsets = ((8 - zeros.float()) * scales.float()).to(scales.dtype)
        self.scales_and_offsets = torch.stack((scales.t(), offsets.t()), dim=2).contiguous()  # [groups, n, 2]

    def launch(self):
        self.y = self.multiply(self.x, self.w, self.group_size, self.scales_and_offsets)


def _nibbles(packed):
    """[rows, columns] bytes to [rows, 2 columns] values of four bits, the lower ones first."""
    return torch.stack((packed & 15, packed >> 4), dim=2).flatten(1)


METHODS = {"torch.matmul": Matmul, "torch.int_mm": IntMm, "torch.int4pack_mm": Int4PackMm,
           "vllm.int8": VllmInt8}


def _method(variant):
    return METHODS[variant.replace("cpu.torch_", "torch.")]


def supports(variant, problem):
    return _method(variant).refuses(problem)


def prepare(variant, problem, tensors):
    return _method(variant)(problem, tensors)
