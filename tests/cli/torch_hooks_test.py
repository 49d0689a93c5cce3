"""The adapter of PyTorch without PyTorch and without a GPU: what it refuses and why, and how it calls the packages that
work on PyTorch's tensors, which stand-ins take the place of. Usage: torch_hooks_test.py PROJECT_FOLDER"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

sys.dont_write_bytecode = True  # nothing beside the adapter
PEERS = os.path.join(sys.argv.pop(1), "experiments", "peers")
ATTENTION = {"batch": 2, "q_heads": 8, "kv_heads": 2, "q_len": 64, "kv_len": 64, "head_dim": 128, "v_head_dim": 0, "causal": True,
             "dtype": "f16", "q_lens": [], "kv_lens": [], "block_size": 0, "k_row_stride": 0, "v_row_stride": 0, "window_left": -1,
             "soft_cap": 0.0}
DECODE = {"batch": 1, "context": 300, "contexts": [], "q_len": 1, "q_heads": 8, "kv_heads": 2, "head_dim": 128, "block_size": 0,
          "kv_bits": 16, "kv_format": "integer", "kv_group_size": 0, "k_row_stride": 0, "v_row_stride": 0, "window_left": -1,
          "soft_cap": 0.0, "splits": 0, "dtype": "f16"}
MATMUL = {"m": 32, "n": 64, "k": 128, "bits": 16, "activation_bits": 16, "group_size": 0, "symmetric": True, "w_transposed": False,
          "dtype": "bf16"}
INT8 = {**MATMUL, "bits": 8, "activation_bits": 8}
INT4 = {**MATMUL, "bits": 4, "group_size": 128}
# Python packages as files, each recording what it is called with.
FUNCTION = "def {0}(*args, **named):\n    calls.append((args, named))\n    return {1}\n"
RECORDER = "calls = []\n" + FUNCTION
STAND_INS = {
    "flash_attn.py": RECORDER.format("flash_attn_func", "'out'") + FUNCTION.format("flash_attn_with_kvcache", "'out'"),
    "flash_attn_interface.py": RECORDER.format("flash_attn_func", "('out', 'lse')")
    + FUNCTION.format("flash_attn_with_kvcache", "'out'"),
    "flashinfer.py": RECORDER.format("single_prefill_with_kv_cache", "{None: 'out'}")
    + FUNCTION.format("single_decode_with_kv_cache", "{(None, None): 'out'}"),
    "vllm/__init__.py": "",
    "vllm/vllm_flash_attn.py": "from unittest.mock import MagicMock\nout = MagicMock()\n"
    + RECORDER.format("flash_attn_varlen_func", "out") + "def is_fa_version_supported(version):\n    return version == 3\n",
    "vllm/_custom_ops.py": RECORDER.format("cutlass_scaled_mm", "'y'")
    + "def scaled_int8_quant(x):\n    return 'codes', 'scales', None\n",
}


class TorchPeer(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.packages = folder.name
        self.torch = mock.MagicMock(__version__="2.9.1")
        modules = {"torch": self.torch, "torch.nn": self.torch.nn, "torch.nn.functional": self.torch.nn.functional}
        for patch in (mock.patch.dict(sys.modules, modules), mock.patch.object(sys, "path", [PEERS, self.packages, *sys.path])):
            patch.start()
            self.addCleanup(patch.stop)
        self.attention = importlib.import_module("torch_attention")
        self.decode = importlib.import_module("torch_decode")
        self.matmul = importlib.import_module("torch_matmul")
        tensors = importlib.import_module("torch_tensors")
        tensors.device = lambda tensor: tensor

    def install(self):
        for name, text in STAND_INS.items():
            path = os.path.join(self.packages, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w") as file:
                file.write(text)
        importlib.invalidate_caches()

    def prepared(self, variant, **fields):
        tensors = {name: mock.MagicMock() for name in "qkv"}
        return self.attention.prepare(variant, {**ATTENTION, **fields}, tensors), tensors

    def decoded(self, variant, **fields):
        """After one launch: the run, its tensors, and the arguments that the stand-in was called with."""
        tensors = {name: mock.MagicMock() for name in "qkv"}
        run = self.decode.prepare(variant, {**DECODE, **fields}, tensors)
        run.launch()
        package = self.attention.PACKAGES[variant]
        (call,) = sys.modules["vllm.vllm_flash_attn" if package == "vllm" else package].calls
        return run, tensors, call

    def test_packages_that_are_not_here_are_unsupported_with_how_to_install_them(self):
        with mock.patch("importlib.util.find_spec", return_value=None):
            for variant, install in (("flash_attn.v2", "pip install flash-attn"), ("flash_attn.v3", "build the folder hopper"),
                                     ("flashinfer.prefill", "pip install flashinfer-python"), ("vllm.flash_attn", "pip install vllm")):
                self.assertRegex(self.attention.supports(variant, ATTENTION), f"Python has no module .*; to install: {install}")
            self.assertRegex(self.matmul.supports("vllm.int8", INT8), "no module vllm; to install: pip install vllm")

    def test_every_variant_of_the_manifest_takes_a_plain_problem_where_its_package_is_here(self):
        self.install()
        with open(os.path.join(PEERS, "torch.json")) as file:
            variants = json.load(file)["variants"]
        for variant in variants["attention_prefill"]:
            self.assertIsNone(self.attention.supports(variant, {**ATTENTION, "batch": 1}), variant)
        for variant in variants["attention_decode"]:
            self.assertIsNone(self.decode.supports(variant, DECODE), variant)
        problems = {"torch.matmul": MATMUL, "torch.int_mm": INT8, "torch.int4pack_mm": INT4, "vllm.int8": INT8}
        self.assertEqual(set(variants["matmul"]), set(problems))
        for variant, problem in problems.items():
            self.assertIsNone(self.matmul.supports(variant, problem), variant)

    def test_what_a_kernel_cannot_do_is_said_with_the_field_and_its_value(self):
        self.install()
        refused = {
            ("torch.matmul", "bits", 8): "bits and activation_bits must be 16, got 8 and 16",
            ("torch.int_mm", "m", 16): "m must be greater than 16, got 16",
            ("torch.int_mm", "n", 60): "n must be a multiple of 8, got 60",
            ("vllm.int8", "k", 120): "k must be a multiple of 16, got 120",
            ("vllm.int8", "activation_bits", 16): "activation_bits must be 8, got 16",
            ("torch.int4pack_mm", "bits", 8): "bits must be 4, got 8",
            ("torch.int4pack_mm", "group_size", 0): "group_size must be 32, 64 or 128, got 0",
            ("torch.int4pack_mm", "k", 192): "k must be a multiple of group_size, 128, got 192",
            ("torch.int4pack_mm", "n", 12): "n must be a multiple of 8, got 12",
            ("torch.int4pack_mm", "dtype", "f16"): "dtype must be bf16, got f16",
        }
        plain = {"torch.matmul": MATMUL, "torch.int_mm": INT8, "vllm.int8": INT8, "torch.int4pack_mm": INT4}
        for (variant, field, value), sentence in refused.items():
            self.assertEqual(self.matmul.supports(variant, {**plain[variant], field: value}), sentence)
        longer = {**ATTENTION, "kv_len": 100}
        self.assertIn("top-left aligned", self.attention.supports("torch.sdpa_flash", longer))
        self.assertIsNone(self.attention.supports("flash_attn.v3", longer))  # bottom-right aligned, as ours
        self.assertEqual(self.attention.supports("flashinfer.prefill", ATTENTION), "batch must be 1, got 2")
        self.torch.backends.cuda.can_use_cudnn_attention.return_value = False
        self.assertIn("can_use_cudnn_attention says no", self.attention.supports("torch.sdpa_cudnn", ATTENTION))
        del self.torch._weight_int4pack_mm
        self.assertEqual(self.matmul.supports("torch.int4pack_mm", INT4), "torch 2.9.1 has no _weight_int4pack_mm")

    def test_a_decode_problem_that_is_not_one_new_token_over_a_plain_cache_is_refused(self):
        refused = {
            ("contexts", (300,)): "sequences must have equal lengths: contexts must be empty",
            ("q_len", 2): "q_len must be 1, got 2",
            ("kv_bits", 8): "kv_bits must be 16, got 8",
            ("splits", 4): "splits must be 0, got 4",
            ("block_size", 16): "K and V must be contiguous: block_size, k_row_stride and v_row_stride must be 0",
            ("v_row_stride", 512): "K and V must be contiguous: block_size, k_row_stride and v_row_stride must be 0",
            ("window_left", 64): "window_left must be -1 and soft_cap 0",
            ("soft_cap", 30.0): "window_left must be -1 and soft_cap 0",
            ("dtype", "f32"): "dtype must be f16 or bf16, got f32",
        }
        for (field, value), sentence in refused.items():
            self.assertEqual(self.decode.supports("torch.sdpa_cudnn", {**DECODE, field: value}), sentence)
        self.install()
        self.assertEqual(self.decode.supports("flashinfer.decode", {**DECODE, "batch": 2}), "batch must be 1, got 2")
        # One key: this PyTorch may have no kernel of cuDNN for it, and is asked with the lengths of the problem.
        self.torch.empty.reset_mock()
        self.torch.backends.cuda.can_use_cudnn_attention.return_value = False
        self.assertIn("can_use_cudnn_attention says no", self.decode.supports("torch.sdpa_cudnn", {**DECODE, "context": 1}))
        self.assertEqual([call.args[0] for call in self.torch.empty.call_args_list], [(1, 1, 8, 128), (1, 1, 2, 128)])

    def test_decode_by_pytorch_is_one_call_without_a_mask_over_views_of_the_cache(self):
        tensors = {name: mock.MagicMock() for name in "qkv"}
        self.decode.prepare("torch.sdpa_cudnn", {**DECODE, "batch": 2}, tensors).launch()
        self.torch.nn.functional.scaled_dot_product_attention.assert_called_once_with(
            *(tensors[name].transpose.return_value for name in "qkv"), is_causal=False, enable_gqa=True)
        for tensor in tensors.values():
            tensor.transpose.assert_called_once_with(1, 2)

    def test_decode_by_flash_attn_takes_the_function_that_cuts_the_context_into_parts(self):
        self.install()
        for variant in ("flash_attn.v2", "flash_attn.v3"):
            run, tensors, call = self.decoded(variant, batch=2)
            self.assertEqual(run.out, "out")
            self.assertEqual(call, ((tensors["q"], tensors["k"], tensors["v"]), {}))

    def test_decode_by_flashinfer_is_one_sequence_on_tensor_cores_where_heads_share_keys(self):
        self.install()
        run, tensors, call = self.decoded("flashinfer.decode")
        self.assertEqual(run.out, "out")
        tensors["q"].__getitem__.assert_called_once_with((0, 0))
        self.assertEqual(call, ((tensors["q"][0, 0], tensors["k"][0], tensors["v"][0]), {"use_tensor_cores": True}))

    def test_decode_by_vllm_is_its_attention_with_one_query_a_sequence(self):
        self.install()
        _, tensors, (_, named) = self.decoded("vllm.flash_attn", batch=2)
        self.assertEqual((named["max_seqlen_q"], named["max_seqlen_k"], named["causal"]), (1, 300, False))
        sys.modules["vllm.vllm_flash_attn"].out.view_as.assert_called_once_with(tensors["q"])

    def test_an_older_pytorch_is_missing_and_says_which_one_is_needed(self):
        with open(os.path.join(self.packages, "torch.py"), "w") as file:
            file.write("__version__ = '2.4.1+cpu'\n")
        environment = {**os.environ, "PYTHONPATH": self.packages, "PYTHONDONTWRITEBYTECODE": "1"}
        adapter = subprocess.run([sys.executable, os.path.join(PEERS, "torch_peer.py")], env=environment,
                                 stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=600, check=True)
        self.assertEqual(json.loads(adapter.stdout),
                         {"type": "missing", "reason": "torch must be 2.5 or newer, this is 2.4.1+cpu"})

    def test_flash_attn_2_and_3_are_called_with_whole_batches(self):
        self.install()
        for variant, module in (("flash_attn.v2", "flash_attn"), ("flash_attn.v3", "flash_attn_interface")):
            run, tensors = self.prepared(variant)
            run.launch()
            self.assertEqual(run.out, "out")
            self.assertEqual(sys.modules[module].calls, [((tensors["q"], tensors["k"], tensors["v"]), {"causal": True})])

    def test_flashinfer_is_called_with_one_sequence(self):
        self.install()
        run, tensors = self.prepared("flashinfer.prefill", batch=1, causal=False)
        run.launch()
        self.assertEqual(run.out, "out")
        ((args, named),) = sys.modules["flashinfer"].calls
        self.assertEqual(args, tuple(tensors[name][0] for name in "qkv"))
        self.assertEqual(named, {"causal": False})

    def test_vllm_attention_is_called_with_packed_sequences_and_its_newest_version(self):
        self.install()
        run, tensors = self.prepared("vllm.flash_attn", kv_len=96)
        run.launch()
        ((_, named),) = sys.modules["vllm.vllm_flash_attn"].calls
        self.assertEqual((named["max_seqlen_q"], named["max_seqlen_k"], named["fa_version"], named["causal"]), (64, 96, 3, True))
        self.assertIs(named["k"], tensors["k"].flatten.return_value)
        sys.modules["vllm.vllm_flash_attn"].out.view_as.assert_called_once_with(tensors["q"])

    def test_vllm_int8_multiplies_the_codes_that_it_makes_by_both_scales(self):
        self.install()
        tensors = {name: mock.MagicMock() for name in ("x", "w", "scales")}
        run = self.matmul.prepare("vllm.int8", INT8, tensors)
        run.launch()
        self.assertEqual(run.y, "y")
        ((args, _),) = sys.modules["vllm._custom_ops"].calls
        w_scales = tensors["scales"].float.return_value.view.return_value
        self.assertEqual(args, ("codes", tensors["w"].view.return_value.t.return_value, "scales", w_scales, tensors["x"].dtype))


if __name__ == "__main__":
    unittest.main()
