"""The harness's side of an adapter: messages, shared tensors, our clock. Python's standard library only.

An adapter calls serve() with two functions:

  supports(operator, variant, problem)          a sentence why not, or None
  prepare(operator, variant, problem, tensors)  an object with launch() and read_back()

`tensors` maps names to Tensor. launch() computes once from the inputs; on a GPU it only queues work on the stream that
use_stream was given. read_back() waits for it and writes the result into the outputs' memory. See docs/peers.md.
"""

import ctypes
import json
import mmap
import os
import sys
import traceback

GPU = int(os.environ.get("INFEROMETER_GPU", "0"))  # the ordinal of the GPU that the run measures on


class Tensor:
    """One tensor of a row: name, role ("input" or "output"), dtype, shape, and `memory`, shared with the harness."""

    def __init__(self, message):
        self.name, self.role = message["name"], message["role"]
        self.dtype, self.shape = message["dtype"], message["shape"]
        with open(message["path"], "r+b") as file:
            size = max(message["bytes"], 1)  # an empty tensor has a byte, since nothing cannot be mapped
            self.memory = memoryview(mmap.mmap(file.fileno(), size))[: message["bytes"]]


class Sampler:
    """Our clock, from the library that INFEROMETER_SAMPLER names. gpu: an ordinal, or -1 for the processors."""

    LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)

    def __init__(self, gpu):
        self.library = ctypes.CDLL(os.environ["INFEROMETER_SAMPLER"])
        self.library.inferometer_sampler_open.restype = ctypes.c_void_p
        self.library.inferometer_sampler_stream.restype = ctypes.c_void_p
        self.library.inferometer_sampler_time.restype = ctypes.c_char_p
        self.library.inferometer_sampler_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p(self.library.inferometer_sampler_open(gpu))
        if not self.handle:
            raise RuntimeError(self.library.inferometer_sampler_error().decode())

    def stream(self):
        return self.library.inferometer_sampler_stream(self.handle) or 0

    def time(self, launchers, measure):
        failures = []  # an exception cannot pass through the library's C frames, which may know what to do about it

        def launch(_, index):
            try:
                launchers[index].launch()
                return 0
            except Exception as error:
                failures.append(error)
                return 1

        text = self.library.inferometer_sampler_time(
            self.handle, self.LAUNCH(launch), None, len(launchers), json.dumps(measure).encode())
        if text is None:
            raise failures[-1] if failures else RuntimeError(self.library.inferometer_sampler_error().decode())
        return json.loads(text)


class _Conversation:
    def __init__(self, supports, prepare, gpu, use_stream):
        self.supports, self.prepare, self.gpu, self.use_stream = supports, prepare, gpu, use_stream
        self.sets = {}
        self.sampler = None

    def open_sampler(self):
        if self.sampler is None:
            self.sampler = Sampler(self.gpu)
            if self.use_stream:
                self.use_stream(self.sampler.stream())

    def answer(self, message):
        kind = message["type"]
        if kind == "supports":
            reason = self.supports(message["operator"], message["variant"], message["problem"])
            return {"type": "supports", "reason": reason}
        if kind == "prepare":
            self.open_sampler()
            tensors = {one["name"]: Tensor(one) for one in message["tensors"]}
            self.sets[message["set"]] = self.prepare(message["operator"], message["variant"], message["problem"], tensors)
            return {"type": "prepared"}
        if kind == "launch":
            self.sets[message["set"]].launch()
            return {"type": "launched"}
        if kind == "read_back":
            self.sets[message["set"]].read_back()
            return {"type": "read"}
        if kind == "time":
            return self.sampler.time([self.sets[number] for number in message["sets"]], message["measure"])
        if kind == "forget":
            self.sets.pop(message["set"], None)
            return {"type": "forgotten"}
        return {"type": "error", "reason": f"unknown message {kind}"}


def _open_channel():
    """Messages get a descriptor of their own: what libraries print must not stand between them."""
    channel = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return channel


def missing(reason):
    """Says that what the adapter stands for is not installed."""
    print(json.dumps({"type": "missing", "reason": reason}), flush=True)


def serve(versions, supports, prepare, gpu=-1, use_stream=None):
    channel = _open_channel()
    conversation = _Conversation(supports, prepare, gpu, use_stream)
    reply = {"type": "hello", "protocol": 1, "versions": versions}
    while True:
        channel.write(json.dumps(reply) + "\n")
        line = sys.stdin.readline()
        if not line:  # the harness is done
            return
        try:
            reply = conversation.answer(json.loads(line))
        except Exception as error:
            traceback.print_exc()
            is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
            reply = {"type": "error", "reason": f"{type(error).__name__}: {error}".split("\n")[0], "out_of_memory": is_memory}
