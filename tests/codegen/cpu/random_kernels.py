"""Prints random kernels: domains, memory orders, masks, element types and reductions that nobody would write by hand.

    random_kernels.py SEED COUNT > FILE.mlir; ptc-kernel FILE.mlir --check
"""
import random
import sys

TYPES = ["f32", "f32", "f32", "f64", "f16", "bf16", "i32", "i64", "i8"]
COMPUTE = {"f16": "f32", "bf16": "f32"}


class Kernel:
    def __init__(self, rng, number):
        self.rng, self.lines, self.next = rng, [], 0
        self.name = f"random{number}"
        rank = rng.randint(1, 4)
        self.symbols = ["n", "m"] if rng.random() < 0.6 else []
        sizes = [1, 2, 3, 4, 5, 7, 8, 13, 16, 17, 31, 33, 48, 65] if rank < 3 else [1, 2, 3, 5, 8, 17, 20]
        self.domain = [rng.choice(self.symbols + [str(rng.choice(sizes))] * 2) for _ in range(rank)]
        self.reduced = rng.randint(1, rank) if rng.random() < 0.45 else 0
        kept = rank - self.reduced
        self.parallel = rng.randint(0, kept)
        self.arguments, self.written = [], 1  # the last of them

    def value(self):
        self.next += 1
        return f"%v{self.next}"

    def emit(self, text):
        self.lines.append("    " + text)

    def row_major(self, dims):
        """Index of a buffer that holds these dims in this order, and its size."""
        index, stride = "0", "1"
        for dim in reversed(dims):
            index = f"{index} + d{dim}*({stride})"
            stride = f"({stride})*({self.domain[dim]})"
        return index, stride

    def load(self, element):
        rng, rank = self.rng, len(self.domain)
        dims = [d for d in range(rank) if rng.random() < 0.8]
        if rng.random() < 0.4:
            rng.shuffle(dims)
        index, size = self.row_major(dims)
        if dims and rng.random() < 0.15:  # reversed along one dim
            dim = rng.choice(dims)
            index = index.replace(f"d{dim}*", f"({self.domain[dim]} - 1 - d{dim})*")
        if rng.random() < 0.25:  # every second to fifth element, the last of them the buffer's last
            step, first = rng.randint(2, 5), rng.randint(0, 2)
            index, size = f"{step}*({index}) + {first}", f"{step}*({size} - 1) + {first + 1}"
        if rng.random() < 0.1:
            index = f"floordiv({index}, 3)"
        if rng.random() < 0.1:
            index = f"mod(5*({index}), max({size}, 1))"
        name = f"%a{len(self.arguments)}"
        self.arguments.append((name, size, element))
        buffer = f"!loop.buffer<[{size}] x {element}>"
        result = self.value()
        if rng.random() < 0.3:
            dim = rng.randrange(rank)
            low, high = rng.randint(0, 3), rng.randint(0, 3)
            conditions = rng.sample([f"d{dim} - {low}", f"{self.domain[dim]} - 1 - {high} - d{dim}",
                                     f"d{rng.randrange(rank)} + d{dim} - {low}"], rng.randint(1, 2))
            other, inner = self.value(), self.value()
            self.emit(f"{other} = arith.constant {'2.5' if element[0] in 'fb' else '7'} : {element}")
            self.emit(f"{result} = loop.masked [{', '.join(conditions)}] else {other} {{")
            self.emit(f"  {inner} = loop.load {name}[{index}] : {buffer}")
            self.emit(f"  loop.yield {inner} : {element}")
            self.emit(f"}} : {element}")
        else:
            self.emit(f"{result} = loop.load {name}[{index}] : {buffer}")
        if element not in COMPUTE:
            return result, element
        wide = self.value()
        self.emit(f"{wide} = arith.extf {result} : {element} to f32")
        return wide, "f32"

    def combine(self, a, b, element):
        if element[0] == "f":
            op = self.rng.choice(["addf", "subf", "mulf", "maximumf"])
        else:
            op = self.rng.choice(["addi", "subi", "muli", "maxsi", "xori"])
        result = self.value()
        self.emit(f"{result} = arith.{op} {a}, {b} : {element}")
        return result

    def generate(self):
        rng, element = self.rng, self.rng.choice(TYPES)
        value, compute = self.load(element)
        for _ in range(rng.randint(0, 2)):
            other, _ = self.load(element)
            value = self.combine(value, other, compute)
        if rng.random() < 0.15 and compute in ("f32", "i32"):
            index, number = self.value(), self.value()
            self.emit(f"{index} = loop.index 3*d0 - d{len(self.domain) - 1}")
            op = "sitofp" if compute == "f32" else "trunci"
            self.emit(f"{number} = arith.{op} {index} : i64 to {compute}")
            value = self.combine(value, number, compute)
        if self.reduced and rng.random() < 0.2:  # what is reduced is stored beside
            index, size = self.row_major(list(range(len(self.domain))))
            self.arguments.append(("%e", size, compute))
            self.written += 1
            self.emit(f"loop.store {value}, %e[{index}] : !loop.buffer<[{size}] x {compute}>")
        if self.reduced:
            kind = rng.choice(["sum", "max", "min"])
            result = self.value()
            if self.reduced == 1 and rng.random() < 0.3:
                last = rng.choice(["true", "false"])
                self.emit(f"{result} = loop.arg_reduce {rng.choice(['max', 'min'])} {value}, {last} : {compute}")
                element = compute = "i64"
            else:
                self.emit(f"{result} = loop.reduce {kind} {value} : {compute}")
            value = result
        if compute != element:
            narrow = self.value()
            self.emit(f"{narrow} = arith.truncf {value} : f32 to {element}")
            value = narrow
        kept = list(range(len(self.domain) - self.reduced))
        if rng.random() < 0.2:
            rng.shuffle(kept)
        index, size = self.row_major(kept)
        self.arguments.append(("%y", size, element))
        self.emit(f"loop.store {value}, %y[{index}] : !loop.buffer<[{size}] x {element}>")

    def text(self):
        self.generate()
        arguments = ", ".join(f"{n}: !loop.buffer<[{s}] x {t}>" for n, s, t in self.arguments)
        names = ", ".join(f'"{s}"' for s in self.symbols)
        written = ", ".join(str(n) for n in range(len(self.arguments) - self.written, len(self.arguments)))
        values = ", ".join("{%s}" % ", ".join(f"{s} = {self.rng.choice([1, 3, 6, 19])}" for s in self.symbols)
                           for _ in range(2))
        sets = f", test.symbols = [{values}]" if self.symbols else ""
        exact = any(t in ("f16", "bf16") for _, _, t in self.arguments)
        tolerance = 0.02 if exact else 2e-5
        kind = f"loop.reduction [{', '.join(self.domain)}] reduced {self.reduced}" if self.reduced else \
            f"loop.pointwise [{', '.join(self.domain)}]"
        return (f"loop.kernel @{self.name}({arguments})\n    attributes {{symbols = [{names}], "
                f"parallel = {self.parallel} : i64, arguments_written = array<i64: {written}>, "
                f"test.tolerance = {tolerance:.6f}{sets}}} {{\n  {kind} {{\n" + "\n".join(self.lines) + "\n  }\n}\n")


if __name__ == "__main__":
    seed, count = int(sys.argv[1]), int(sys.argv[2])
    for number in range(count):
        print(Kernel(random.Random(seed * 100003 + number), number).text())
