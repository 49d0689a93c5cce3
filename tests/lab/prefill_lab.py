"""prefill_lab.py LAB.so [time]: verifies the new variants, unless only to time, then times all beside cuDNN."""

import ctypes
import itertools
import multiprocessing
import statistics
import sys
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

LAB = ctypes.CDLL(sys.argv[1])
LAB.lab_name.restype = ctypes.c_char_p
NAMES = [name.decode() for name in iter(map(LAB.lab_name, itertools.count()).__next__, None)]
INDEX = {name: i for i, name in enumerate(NAMES)}
PAGED = {name for name in NAMES if "g" in name.split()[2]}
START = time.monotonic()


def prepare(name, q, k, v, table=None, kv_len=0, causal=False, window=-1, merged=True, more=1):
    batch, q_len, heads, dim = q.shape
    out, lse = torch.full_like(q, torch.nan), torch.full((batch, heads, q_len), torch.nan, device="cuda")
    keep = (q, k, v, table, out, lse, torch.zeros(64, dtype=torch.int32, device="cuda"))
    size = 0 if table is None else k.shape[1]
    n = (ctypes.c_int64 * 11)(batch, heads, k.shape[2], q_len, kv_len or k.shape[1], dim, size, causal, window, merged, more)
    at = (ctypes.c_void_p * 8)(*(None if x is None else x.data_ptr() for x in keep), torch.cuda.current_stream().cuda_stream)

    def launch(keep=keep):
        assert LAB.lab_run(INDEX[name], n, at) == 0

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


def verify(name):
    wrong = 0
    dim = int(name.split()[0])
    shapes = [(24, 16, 256, 256), (6, 16, 1000, 1000), (1, 4, 1, 1), (2, 8, 300, 100), (2, 8, 193, 257), (1, 8, 129, 2049), (2, 4, 385, 1000)]
    cases = [(s, c, -1, "usual") for s in shapes for c in (False, True)] + [(shapes[1], True, 150, "usual")]
    cases += [(shapes[-1], c, w, kind) for c, w in ((False, -1), (True, -1), (True, 40)) for kind in ("rising", "falling", "sink", "huge")]
    for case, size in itertools.product(cases, (16, 64, 24) if name in PAGED else (0,)):
        (batch, heads, q_len, kv_len), causal, window, kind = case
        q, k, v = (torch.randint(-8, 9, (batch, n, h, dim), device="cuda").half() / 4 for n, h in ((q_len, heads), (kv_len, heads // 4), (kv_len, heads // 4)))
        key = torch.arange(kv_len, device="cuda")[None, :, None, None]
        if kind == "huge":
            q, k = q * 128, k * 128
        elif kind != "usual":  # scores differ by far more than 2^15 from one block to the next
            q, k = q.abs(), k + {"rising": (kv_len - key) // 64, "falling": key // 64, "sink": (key == kv_len // 5) * 16}[kind].half()
        o, lse = expected(q, k, v, causal, window)
        table = None
        if size:
            (k, table), (v, _) = pages(k, size), pages(v, size)
        launch, out, out_lse = prepare(name, q, k, v, table, kv_len, causal, window)
        launch()
        first = out.clone()
        errors = (out - o).norm() / (o.norm() + 1e-9), ((out_lse - lse).abs() / (1 + 1e-3 * lse.abs()))[lse.isfinite()].amax()
        same = torch.equal(out_lse.isfinite(), lse.isfinite())
        for _ in range(4):
            out.fill_(torch.nan)
            launch()
            same = same and torch.equal(first, out)
        if not (errors[0] < 1.5e-3 and errors[1] < 1e-3 and same):
            wrong += 1
            print(f"  WRONG {name}: {case} blocks of {size}: {errors} {same}", flush=True)
    print(f"{name}: {wrong} wrong", flush=True)
    sys.exit(wrong > 0)


def measure(good, memory, shape, batch, heads, kv_heads, q_len, kv_len, dim, causal, size=0, rest=0.0):
    """TFLOP/s of isolated launches, the L2 cleared by reading 512 MB twice before each, and of 8 in a row."""
    q, k, v = (torch.randn(batch, n, h, dim, device="cuda").half() for n, h in ((q_len, heads), (kv_len, kv_heads), (kv_len, kv_heads)))
    launches = {}
    if q_len == kv_len:
        views = [x.transpose(1, 2) for x in (q, k, v)]
        launches["cuDNN"] = lambda: torch.nn.functional.scaled_dot_product_attention(*views, is_causal=causal, enable_gqa=heads != kv_heads)
    names = [n for n in good if n.startswith(f"{dim} ") and n.split()[1] in shape]
    for name in (n for n in names if n not in PAGED):
        late = "l" in name.split()[2]
        orders = ((False, 1), (True, 1), (True, 2)) if late else ((False, 1), (True, 1))
        for merged, more in orders if causal and not size and not rest else ((late, 1),):
            launches[f"{name} {'merged' if merged else 'today'} x{more}"] = prepare(name, q, k, v, None, 0, causal, -1, merged, more)[0]
    if size:
        (k, table), (v, _) = pages(k, size), pages(v, size)
        for name in (n for n in names if n in PAGED):
            launches[name] = prepare(name, q, k, v, table, kv_len, causal, -1, "l" in name.split()[2])[0]
    def event():
        return torch.cuda.Event(enable_timing=True)

    alone, row = ({name: [] for name in launches} for _ in range(2))
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
        for name in list(launches):
            try:
                launches[name]()
            except RuntimeError as error:  # no cuDNN kernel of this width
                print(f"  {name}: {str(error)[:60]}")
                del launches[name]
        for _, name in itertools.product(range(7 if rest else 12), launches):
            if rest:
                torch.cuda.synchronize()
                time.sleep(rest)
            pair = event(), event()
            memory.sum(), memory.sum()
            pair[0].record()
            launches[name]()
            pair[1].record()
            alone[name].append(pair)
        for name in launches if not rest else ():
            pair = event(), event()
            memory.sum(), memory.sum()
            pair[0].record()
            for _ in range(8):
                launches[name]()
            pair[1].record()
            row[name].append(pair)
    torch.cuda.synchronize()
    flops = 4e-9 * batch * heads * dim * q_len * (kv_len - q_len / 2 if causal else kv_len)
    print(f"[{time.monotonic() - START:.0f} s] {dim} {'causal' if causal else 'full'} {batch}x{q_len}/{kv_len} {heads}/{kv_heads} blocks of {size}{' rested' if rest else ''}: alone, of the first, in a row")
    first = None
    for name in launches:
        ms = statistics.median(a.elapsed_time(b) for a, b in alone[name][1:])
        first = first or ms
        rows = "".join(f"{flops * 8 / a.elapsed_time(b):5.0f}" for a, b in row[name])
        print(f"  {name:32} {flops / ms:4.0f} {first / ms:.3f} {rows}", flush=True)


torch.set_grad_enabled(False)
good = NAMES
if "time" not in sys.argv:
    context = multiprocessing.get_context("fork")
    until = time.monotonic() + 25
    workers = {name: context.Process(target=verify, args=(name,)) for name in NAMES if "l" in name.split()[2]}
    for worker in workers.values():
        worker.start()
    for name, worker in workers.items():
        worker.join(max(0.1, until - time.monotonic()))
        if worker.exitcode != 0:
            print(f"{name}: exit code {worker.exitcode} (None: it hangs, or 25 s were too few)", flush=True)
            worker.kill()
            good = [g for g in good if g != name]
memory = torch.ones(128 << 20, device="cuda")
EQUAL = {512: 32, 1024: 16, 2048: 8, 4096: 4, 8192: 2, 16384: 1}  # batch by length: 16384 tokens
for length in EQUAL:
    wanted = ("short",) if length < 2048 else ("short", "long", "longq2") if length < 16384 else ("long", "longq2")
    measure(good, memory, wanted, EQUAL[length], 16, 16, length, length, 128, True)
for length in (2048, 8192):
    measure(good, memory, ("short", "long", "longq2"), 1, 64, 8, length, length, 128, True)
for length in (512, 1024, 2048, 8192, 16384):
    measure(good, memory, ("80", "64"), EQUAL[length], 8, 8, length, length, 256, True)
for size in (16, 64, 256):
    measure(good, memory, ("short", "long", "longq2", "paged", "pagedlong"), 4, 32, 8, 2048, 8192, 128, True, size)
measure(good, memory, ("short", "longq2", "paged", "pagedlong"), 1, 32, 8, 2048, 32768, 128, True, 16)
for length in (512, 2048, 8192):
    measure(good, memory, ("teams", "wide"), EQUAL[length], 32, 32, length, length, 64, True)
for length in (4096, 16384):
    measure(good, memory, ("short", "long", "longq2"), EQUAL[length], 16, 16, length, length, 128, True, 0, 0.05)
for length in (512, 2048, 8192):
    measure(good, memory, ("short", "long", "longq2"), EQUAL[length], 16, 16, length, length, 128, False)
    measure(good, memory, ("80", "64"), EQUAL[length], 8, 8, length, length, 256, False)
measure(good, memory, ("teams", "wide"), 32, 32, 32, 512, 512, 64, False)
for length in (128, 512):
    measure(good, memory, ("teams", "wide"), 1, 32, 32, length, length, 64, False)
measure(good, memory, ("112",), 4, 10, 10, 4096, 4096, 192, True)
