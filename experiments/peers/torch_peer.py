"""PyTorch's kernels, and those of packages that work on its tensors, where they can be imported.

torch_peer.py [cpu]: on the GPU of the run, or on the processors.
"""

import importlib.util

import peer

if importlib.util.find_spec("torch") is None:
    peer.missing("Python has no module torch")
    raise SystemExit

import torch  # noqa: E402

if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 5):  # grouped heads, bytes of two 4-bit weights
    peer.missing(f"torch must be 2.5 or newer, this is {torch.__version__}")
    raise SystemExit

import torch_attention  # noqa: E402
import torch_decode  # noqa: E402
import torch_matmul  # noqa: E402
import torch_packages  # noqa: E402
import torch_tensors  # noqa: E402

OPERATORS = {"attention_prefill": torch_attention, "attention_decode": torch_decode, "matmul": torch_matmul}


def supports(operator, variant, problem):
    return OPERATORS[operator].supports(variant, problem)


def prepare(operator, variant, problem, tensors):
    return OPERATORS[operator].prepare(variant, problem, tensors)


def use_stream(stream):
    torch.cuda.set_stream(torch.cuda.ExternalStream(stream))


def versions():
    found = {"torch": torch.__version__, **torch_packages.versions()}
    if torch_tensors.DEVICE == "cuda":
        found.update({"cuda": str(torch.version.cuda), "cudnn": str(torch.backends.cudnn.version())})
    return found


if torch_tensors.DEVICE == "cuda" and not torch.cuda.is_available():
    peer.missing("torch finds no CUDA device")
else:
    torch.set_grad_enabled(False)
    gpu, on_stream = (peer.GPU, use_stream) if torch_tensors.DEVICE == "cuda" else (-1, None)
    if gpu >= 0:
        torch.cuda.set_device(gpu)
    peer.serve(versions(), supports, prepare, gpu, on_stream)
