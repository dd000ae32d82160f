"""gpu.py attention: of as many queries as keys, and of one query behind a cache of keys."""

import torch
from gpu_device import TYPES
from gpu_nodes import Nodes, measure
from torch.nn.attention import SDPBackend, sdpa_kernel

# heads, heads of the keys, queries, keys, width; the number of keys is a symbol's in the last
PREFILL = ((12, 12, 197, 197, 64), (12, 12, 128, 128, 64), (8, 8, 1024, 1024, 64), (16, 16, 512, 512, 128), (16, 16, 2048, 2048, 128))
DECODE = ((32, 32, 1, 4096, 128), (12, 12, 1, 1024, 64), (32, 8, 1, 8192, 128), (12, 12, 1, 20, 64))
SYMBOLIC = ((12, 12, 1, 21, 64), (32, 8, 1, 8192, 128))
BACKENDS = (SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.CUDNN_ATTENTION, SDPBackend.MATH)


def plain(q, k, v):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=q.shape[1] != k.shape[1])


def by(backend):
    def attention(q, k, v):
        with sdpa_kernel(backend):
            return plain(q, k, v)
    return attention


def usable(shapes, dtype):
    """What torch has for these; it refuses the others when called."""
    q, k, v = (torch.randn(shape, device="cuda").to(dtype) for shape in shapes)
    found = [plain]
    for backend in BACKENDS:
        try:
            by(backend)(q, k, v)
        except RuntimeError:
            continue
        found.append(by(backend))
    return found


def case(sizes, dtype, symbolic=False):
    heads, groups, queries, keys, width = sizes
    shape = lambda heads, length: f"{{f}}[1, {heads}, {length}, {width}]"
    length = "n" if symbolic else keys
    graph = (f"({shape(heads, queries)} q, {shape(groups, length)} k, {shape(groups, length)} v) => ({shape(heads, queries)} y)"
             " { y = Attention (q, k, v) }")
    name = f"{heads}{f' on {groups}' if groups != heads else ''} x {f'{queries} x ' * (queries != keys)}{f'n = {keys}' if symbolic else keys} x {width}"
    peers = usable(((1, heads, queries, width), (1, groups, keys, width), (1, groups, keys, width)), dtype)
    return Nodes(name, graph, peers, exact=plain, dims={"n": keys} if symbolic else {})


def attention(arguments):
    dtype = TYPES[arguments.dtype]
    cases = [case(sizes, dtype) for sizes in PREFILL + DECODE] + [case(sizes, dtype, True) for sizes in SYMBOLIC]
    measure(arguments, "heads x (queries x) keys x width", cases)
