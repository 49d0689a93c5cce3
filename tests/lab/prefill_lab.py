"""prefill_lab.py lab.so [time]: verifies the lab's variants, unless only to time them beside cuDNN."""

import ctypes
import itertools
import multiprocessing
import statistics
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

lab = ctypes.CDLL(sys.argv[1])
lab.lab_name.restype = ctypes.c_char_p
NAMES = [name.decode() for name in iter(map(lab.lab_name, itertools.count()).__next__, None)]
OPTIONS = [name.split()[2] for name in NAMES]
DIMS = [int(name.split()[0]) for name in NAMES]


def prepare(entry, q, k, v, table=None, kv_len=0, causal=False, window=-1, group=0):
    batch, q_len, heads, dim = q.shape
    out, lse = torch.full_like(q, torch.nan), torch.full((batch, heads, q_len), torch.nan, device="cuda")
    keep = (q, k, v, table, out, lse, torch.zeros(64, dtype=torch.int32, device="cuda"))
    size = 0 if table is None else k.shape[1]
    n = (ctypes.c_int64 * 10)(batch, heads, k.shape[2], q_len, kv_len or k.shape[1], dim, size, causal, window, group)
    at = (ctypes.c_void_p * 8)(*(None if x is None else x.data_ptr() for x in keep), torch.cuda.current_stream().cuda_stream)

    def launch(keep=keep):
        assert lab.lab_run(entry, n, at) == 0

    return launch, out, lse


def pages(x, size):
    batch, kv_len, heads, dim = x.shape
    blocks = -(-kv_len // size)
    order = torch.randperm(batch * blocks, generator=torch.Generator().manual_seed(3)).cuda()
    pool = torch.full((batch, blocks * size, heads, dim), torch.nan, dtype=x.dtype, device="cuda")
    pool[:, :kv_len] = x
    return pool.view(-1, size, heads, dim)[order.argsort()], order.int()


def expected(q, k, v, causal, window):
    q, k, v = (x.double().transpose(1, 2) for x in (q, k.repeat_interleave(4, 2), v.repeat_interleave(4, 2)))
    scores = q @ k.transpose(2, 3) / q.shape[3] ** 0.5
    key = torch.arange(k.shape[2], device="cuda")
    own = key[-1] + 1 - q.shape[2] + torch.arange(q.shape[2], device="cuda")[:, None]
    if causal:
        scores.masked_fill_((key > own) | (key < own - (window if window >= 0 else 1 << 30)), -torch.inf)
    return (scores.softmax(3).nan_to_num(0) @ v).transpose(1, 2), scores.logsumexp(3)


def verify(entry):
    wrong = 0
    shapes = [(24, 16, 256, 256), (1, 4, 1, 1), (2, 8, 100, 300), (2, 8, 300, 100), (2, 8, 193, 257), (2, 8, 512, 512), (1, 8, 129, 2049), (2, 4, 385, 1000)]
    cases = [(s, c, -1, "usual") for s in shapes for c in (False, True)]
    cases += [(shapes[-1], c, w, kind) for c, w in ((False, -1), (True, -1), (True, 40), (True, 200)) for kind in ("usual", "rising", "falling", "sink", "huge")]
    for case, size in itertools.product(cases, (16, 64, 24) if "g" in OPTIONS[entry] else (0, 16)):
        (batch, heads, q_len, kv_len), causal, window, kind = case
        q, k, v = (torch.randint(-8, 9, (batch, n, h, DIMS[entry]), device="cuda").half() / 4 for n, h in ((q_len, heads), (kv_len, heads // 4), (kv_len, heads // 4)))
        key = torch.arange(kv_len, device="cuda")[None, :, None, None]
        if kind == "huge":
            q, k = q * 128, k * 128
        elif kind != "usual":  # scores differ by far more than 2^15 from one block to the next
            q, k = q.abs(), k + {"rising": (kv_len - key) // 64, "falling": key // 64, "sink": (key == kv_len // 5) * 16}[kind].half()
        o, lse = expected(q, k, v, causal, window)
        table = None
        if size:
            (k, table), (v, _) = pages(k, size), pages(v, size)
        launch, out, out_lse = prepare(entry, q, k, v, table, kv_len, causal, window)
        launch()
        first = out.clone()
        errors = (out - o).norm() / (o.norm() + 1e-9), ((out_lse - lse).abs() / (1 + 1e-3 * lse.abs()))[lse.isfinite()].amax()
        same = torch.equal(out_lse.isfinite(), lse.isfinite())
        for _ in range(6):
            out.fill_(torch.nan)
            launch()
            same = same and torch.equal(first, out)
        if not (errors[0] < 1.5e-3 and errors[1] < 1e-3 and same):
            wrong += 1
            print(f"  WRONG {NAMES[entry]}: {case} blocks of {size}: {errors} {same}")
    print(f"{NAMES[entry]}: {wrong} wrong", flush=True)
    sys.exit(wrong > 0)


def measure(entries, memory, batch, heads, kv_heads, q_len, kv_len, dim, causal, size=0):
    """TFLOP/s, and how many times as fast as the first; the L2 cleared by reading 512 MB before each launch."""
    q, k, v = (torch.randn(batch, n, h, dim, device="cuda").half() for n, h in ((q_len, heads), (kv_len, kv_heads), (kv_len, kv_heads)))
    launches = {}
    if q_len == kv_len:
        views = [x.transpose(1, 2) for x in (q, k, v)]
        launches["cuDNN"] = lambda: torch.nn.functional.scaled_dot_product_attention(*views, is_causal=causal, enable_gqa=heads != kv_heads)
    for e in (e for e in entries if DIMS[e] == dim and "g" not in OPTIONS[e]):
        for group in (0, 16, 33, 66, 132, 264, 512) if "tp" in OPTIONS[e] and kv_len <= 1024 else (0,):
            launches[f"{NAMES[e]} {group}"] = prepare(e, q, k, v, None, 0, causal, -1, group)[0]
    if size:
        (k, table), (v, _) = pages(k, size), pages(v, size)
        for e in (e for e in entries if DIMS[e] == dim and ("g" in OPTIONS[e] or OPTIONS[e] == "base")):
            launches[f"paged {NAMES[e]}"] = prepare(e, q, k, v, table, kv_len, causal)[0]
    events = {name: [] for name in launches}
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for _, name in itertools.product(range(22), launches):
            pair = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
            memory.sum()
            pair[0].record()
            launches[name]()
            pair[1].record()
            events[name].append(pair)
    torch.cuda.synchronize()
    times = {name: statistics.median(a.elapsed_time(b) for a, b in pairs[1:]) for name, pairs in events.items()}
    flops = 4e-9 * batch * heads * dim * q_len * (kv_len - q_len / 2 if causal else kv_len)
    print(f"{dim} {'causal' if causal else 'full'} {batch}x{q_len}/{kv_len} {heads}/{kv_heads} blocks of {size}:")
    for name, ms in times.items():
        print(f"  {name:24} {flops / ms:4.0f} {next(iter(times.values())) / ms:.3f}", flush=True)


torch.set_grad_enabled(False)
good = list(range(len(NAMES)))
if "time" not in sys.argv:
    context = multiprocessing.get_context("fork")
    for some in [good[i : i + 5] for i in range(0, len(good), 5)]:
        until = time.monotonic() + 25
        workers = {e: context.Process(target=verify, args=(e,)) for e in some}
        for worker in workers.values():
            worker.start()
        for e, worker in workers.items():
            worker.join(max(0.1, until - time.monotonic()))
            if worker.exitcode != 0:
                print(f"{NAMES[e]}: exit code {worker.exitcode} (None: it hangs)", flush=True)
                worker.kill()
                good.remove(e)
memory = torch.ones(128 << 20, device="cuda")
for dim, causal, (batch, length) in itertools.product((128, 64), (False, True), ((32, 512), (16, 1024), (8, 2048), (2, 8192))):
    measure(good, memory, batch, 2048 // dim, 2048 // dim, length, length, dim, causal)
measure(good, memory, 1, 64, 8, 8192, 8192, 128, True)
for (batch, q_len, kv_len), size in itertools.product(((4, 2048, 8192), (1, 512, 8192), (1, 2048, 32768)), (16, 64, 256)):
    measure(good, memory, batch, 32, 8, q_len, kv_len, 128, True, size)
