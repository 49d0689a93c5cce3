"""A peer for peers_test.sh: matmuls of a few elements in plain Python, right or wrong in the way the variant's name says."""

import os
import signal
import struct
import sys
import time

sys.path.insert(0, os.environ["PEERS_FOLDER"])
import peer  # noqa: E402


def read(tensor):
    return struct.unpack(f"{len(tensor.memory) // 2}e", tensor.memory)


class Matmul:
    def __init__(self, fault, problem, tensors):
        self.fault, self.problem, self.tensors = fault, problem, tensors
        self.x, self.w = read(tensors["x"]), read(tensors["w"])
        self.y = []
        if fault == "raises":
            raise ValueError("the tile is too wide")
        if fault == "lacks_memory":
            raise MemoryError("no room for the tile")

    def launch(self):
        if self.fault == "crashes":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.fault == "hangs":
            time.sleep(1000)
        if self.fault == "babbles":
            os.write(0, b'{"type": "banana"}\n')  # the socket of the messages
        if self.fault == "chats":
            print('{"this": "is no message"}', flush=True)
        n, k = self.problem["n"], self.problem["k"]
        self.y = [sum(self.x[i * k + j] * self.w[o * k + j] for j in range(k)) for i in range(self.problem["m"]) for o in range(n)]
        if self.fault == "lies":
            self.y[-1] += 1

    def read_back(self):
        memory = self.tensors["y"].memory
        memory[:] = struct.pack(f"{len(self.y)}e", *self.y)


def supports(operator, variant, problem):
    if variant == "cpu.peer_mumbles":
        return 7
    return "m must not be 5" if problem["m"] == 5 else None


def prepare(operator, variant, problem, tensors):
    return Matmul(variant.removeprefix("cpu.peer_"), problem, tensors)


class Garbled(peer.Sampler):
    """Says what no timing is."""

    def time(self, launchers, measure):
        answer = super().time(launchers, measure)
        if "miscounted" in sys.argv:
            answer["timing"]["isolated"]["samples"] = -5
        elif "misnamed" in sys.argv:
            answer["timing"]["headline"] = "nonsense"
        else:
            answer["timing"]["headline_ns"] = -1
        return answer


if sys.argv[1:] in (["garbled"], ["miscounted"], ["misnamed"]):
    peer.Sampler = Garbled
if sys.argv[1:] == ["missing"]:
    peer.missing("Python has no module stand_in")
elif sys.argv[1:] == ["dies"]:
    os._exit(3)
elif sys.argv[1:] == ["unversioned"]:
    peer.serve({"stand_in": 1.2}, supports, prepare)
else:
    peer.serve({"stand_in": "1.2", "ordinal": str(peer.GPU)}, supports, prepare)
