"""Packages whose kernels work on PyTorch's tensors, where they can be imported. None is needed."""

import contextlib
import importlib.metadata
import importlib.util

# The module that is imported: how its distribution is called, and how to install it.
PACKAGES = {"flash_attn": ("flash-attn", "pip install flash-attn"),
            "flash_attn_interface": ("flash-attn-3", "build the folder hopper of the flash-attention repository"),
            "flashinfer": ("flashinfer-python", "pip install flashinfer-python"),
            "vllm": ("vllm", "pip install vllm")}


def refuses(module):
    """The sentence why `module` cannot be used, or None."""
    if importlib.util.find_spec(module) is None:
        return f"Python has no module {module}; to install: {PACKAGES[module][1]}"
    return None


def versions():
    """Of those that are here."""
    found = {}
    for distribution, _ in PACKAGES.values():
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[distribution] = importlib.metadata.version(distribution)
    return found
