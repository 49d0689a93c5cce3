"""Logits [tokens, vocabulary] of models by transformers, in f32, into a file `logits` in each folder. Exit code 77
without PyTorch or a transformers that has them all.

usage: transformers_logits.py TOKEN,TOKEN,... FOLDER..."""
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"  # nothing but the folders
try:
    import torch
    from transformers import AutoModelForCausalLM, Qwen3ForCausalLM, logging  # the newest of the families
except ImportError:
    sys.exit(77)

logging.set_verbosity_error()
logging.disable_progress_bar()
tokens = torch.tensor([[int(token) for token in sys.argv[1].split(",")]])
for folder in sys.argv[2:]:
    model = AutoModelForCausalLM.from_pretrained(folder, torch_dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        logits = model(tokens).logits[0].contiguous()
    pathlib.Path(folder, "logits").write_bytes(bytes(logits.untyped_storage()))
