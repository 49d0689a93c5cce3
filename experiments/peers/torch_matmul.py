"""matmul by torch.mm: Y = X W^T."""

import torch
import torch_tensors


def supports(variant, problem):
    if problem["bits"] != 16 or problem["activation_bits"] != 16:
        return f"bits and activation_bits must be 16, got {problem['bits']} and {problem['activation_bits']}"
    return None


class Matmul:
    def __init__(self, tensors):
        self.tensors = tensors
        self.x, self.w = (torch_tensors.device(tensors[name]) for name in "xw")
        self.y = torch.empty(tensors["y"].shape, dtype=self.x.dtype, device=torch_tensors.DEVICE)

    def launch(self):
        torch.mm(self.x, self.w.t(), out=self.y)

    def read_back(self):
        torch_tensors.host(self.tensors["y"]).copy_(self.y)


def prepare(variant, problem, tensors):
    return Matmul(tensors)
