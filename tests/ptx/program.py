"""A model that was compiled to PTX: its entries, buffers and launches, run on a device.

Entries come from the PTX text, whose comments say grid, block and parameters; buffers and launches, in order, from the
text of plan-memory. A device is a driver.Driver or an emulator.Emulator.
"""

import re

import numpy as np

DTYPES = {"f32": np.float32, "f64": np.float64, "f16": np.float16, "i64": np.int64, "i32": np.int32, "i16": np.int16,
          "i8": np.int8, "i1": np.bool_}

class NotKnown(Exception):
    """The program has something that only the runtime does, or a type that numpy lacks."""


class OnlyLibrary(NotKnown):
    """Something that only the runtime does."""


FUNCTIONS = {
    "floordiv": lambda a, b: a // b if b else 0,
    "mod": lambda a, b: a % b if b else a,
    "min": min,
    "max": max,
    "lt": lambda a, b: int(a < b),
    "eq": lambda a, b: int(a == b),
    "select": lambda c, a, b: a if c else b,
}


def evaluate(text, symbols):
    try:
        return int(eval(text, {"__builtins__": {}}, {**FUNCTIONS, **symbols}))
    except NameError as error:
        raise NotKnown(str(error)) from None


def split(text):
    """At commas outside of brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += c in "([<"
        depth -= c in ")]>"
        if c == "," and not depth:
            parts.append(text[start:i].strip())
            start = i + 1
    return parts + [text[start:].strip()] if text.strip() else []


def dtype_of(name):
    if name not in DTYPES:
        raise NotKnown(f"numpy has no {name}")
    return np.dtype(DTYPES[name])


class Map:
    """A tensor that the kernel copies box by box, or by channels and pixels (`steps` is not empty); dims are innermost first."""

    def __init__(self, text):
        numbers = {name: [int(word) for word in split(values)] for name, values in re.findall(r"(\w+) \[(.*?)\]", text)}
        self.extents, self.strides, self.box = numbers["extents"], numbers["strides"], numbers["box"]
        self.lower, self.upper, self.steps = (numbers.get(name, []) for name in ("lower", "upper", "steps"))
        match = re.search(r"of parameter (\d+), (\d+) bytes an element, offset (\d+)", text)
        self.buffer, self.element_bytes, self.offset = map(int, match.groups())


class Entry:
    """One kernel, as its comments describe it."""

    def __init__(self, device, module, text, code, symbols):
        self.function = device.find(module, code.partition("(")[0])
        grid = re.search(r"grid (.*), block (\d+) x (\d+) threads", text)
        self.grid, self.block = grid[1], (int(grid[2]), int(grid[3]), 1)
        self.symbols = symbols
        self.checks = ": errors" in text
        scratch = re.search(r": scratch, (.*) bytes", text)
        self.scratch = scratch and scratch[1]
        counters = re.search(r": counters, (\d+) bytes", text)
        self.counters = counters and device.upload(np.zeros(int(counters[1]), np.uint8))
        together = re.search(r"at most (\d+) a multiprocessor", text)
        self.together = int(together[1]) if together else 0
        self.maps = [Map(line) for line in re.findall(r": (map of parameter .*)", text)]
        shared = re.search(r"//   shared (\d+) bytes", text)
        self.shared = int(shared[1]) if shared else 0


class Program:
    def __init__(self, device, ptx, plan, model=None):
        """`model`: the file that weights are in; those that other files have are not known."""
        self.device, self.plan, self.model = device, plan, model
        module = device.load(ptx)
        symbols = dict(re.findall(r"loop\.kernel @(\w+)\(.*symbols = \[(.*?)\]", plan))
        self.entries = {}
        for text in ptx.split("// kernel ")[1:]:
            name, comment = text.split("\n", 1)
            names = re.findall(r'"(\w+)"', symbols[name])
            self.entries[name] = Entry(device, module, *comment.split(".entry ")[:2], names)
        self.errors = device.upload(np.zeros(4, np.uint32))

    def bind(self, inputs):
        """Symbols, and device memory of inputs, outputs and the arena."""
        header = re.search(r"loop\.program @\w+\((.*)\) attributes \{(.*)\} \{", self.plan)
        read, written = header[1].split("| ")
        names = {side: re.findall(r'"([^"]*)"', re.search(side + r"_names = \[(.*?)\]", header[2])[1])
                 for side in ("input", "output")}
        self.symbols, self.pointers, self.outputs, self.results, self.flattened = {}, {}, {}, {}, {}
        argument = re.compile(r"(%arg\d+): !loop\.buffer<\[(.*?)\] x (\w+)")
        for (value, dims, dtype), name in zip(argument.findall(read), names["input"], strict=True):
            array = np.ascontiguousarray(inputs[name])
            if array.itemsize != dtype_of(dtype).itemsize:
                raise ValueError(f"{name} is not {dtype}")
            for dim, size in zip(split(dims), array.shape):
                if dim.isidentifier():
                    self.symbols[dim] = size
            self.pointers[value] = self.device.upload(array)
        for (value, dims, dtype), name in zip(argument.findall(written), names["output"], strict=True):
            self.outputs[value] = (name, split(dims), dtype_of(dtype))
            if f"loop.output {value} :" not in self.plan:
                self.make_output(value)
        arena = re.search(r"\barena = #prim\.expr<(.*?)>[,}]", header[2])
        self.arena = self.device.allocate(evaluate(arena[1], self.symbols) if arena else 0)

    def make_output(self, value):
        name, dims, dtype = self.outputs[value]
        array = np.empty([evaluate(dim, self.symbols) for dim in dims], dtype)
        self.pointers[value] = self.device.allocate(array.nbytes)
        self.results[name] = (self.pointers[value], array)

    def place(self, body):
        """Pointers of what the program's body defines."""
        for value, what, rest in re.findall(r"(%\d+) = loop\.(\w+) (.*)", body):
            if what == "flatten":
                self.flattened[value] = rest.split(" ")[0]
            elif what == "at":
                self.pointers[value] = self.arena + evaluate(rest.split(" : ")[0].split(" {")[0], self.symbols)
            elif what == "constant":
                self.pointers[value] = self.device.upload(constant(rest))
            elif what == "weight" and self.model and '"", ' in rest:
                self.pointers[value] = self.device.upload(weight(self.model, rest))
            elif what != "grow":
                raise OnlyLibrary(f"loop.{what} is not known here")

    def run(self, inputs, watch=None):
        """The outputs by name. `watch(name, bytes, launch)` sees every launch."""
        self.bind(inputs)
        body = self.plan[self.plan.index("loop.program @"):]
        if "loop.if" in body:
            raise OnlyLibrary("loop.if is not known here")
        if "loop.call" in body or "on_host = " in self.plan:
            raise OnlyLibrary("what the host does is not known here")
        self.place(body)
        slots = {}
        for line in body.splitlines():
            if match := re.search(r'loop\.bind "(\w+)" = (?:(%\w+) : |value (.*?) (?:at_most|loc))', line):
                name, buffer, value = match.groups()
                self.symbols[name] = self.read_number(buffer) if buffer else evaluate(value, self.symbols)
            elif match := re.search(r"(%\w+) = loop\.grow (\d+) bytes (.*?) :", line):
                value, slot, size = match[1], match[2], evaluate(match[3], self.symbols)
                if slot not in slots or size > slots[slot][1]:
                    slots[slot] = self.device.allocate(size), size
                self.pointers[value] = slots[slot][0]
            elif match := re.search(r"loop\.output (%\w+) :", line):
                self.make_output(match[1])
            match = re.search(r"loop\.launch @(\w+)\((.*?)\) symbols \[(.*)\] : (.*) loc", line)
            if not match:
                continue
            name, buffers, symbols, types = match.groups()
            values = [evaluate(text, self.symbols) for text in split(symbols)]
            launch = self.prepare(self.entries[name], [self.pointer(b) for b in split(buffers)], values)
            launch()
            if watch:
                watch(name, sum(evaluate(count, self.symbols) * dtype_of(dtype).itemsize
                                for count, dtype in re.findall(r"!loop\.buffer<\[(.*?)\] x (\w+)", types)), launch)
        self.device.synchronize()
        failed = np.zeros(4, np.uint32)
        self.device.download(self.errors, failed)
        if failed[0]:
            raise RuntimeError("an index is out of range")
        for pointer, array in self.results.values():
            self.device.download(pointer, array)
        return {name: array for name, (_, array) in self.results.items()}

    def pointer(self, value):
        return self.pointers[self.flattened.get(value, value)]

    def read_number(self, value):
        number = np.zeros(1, np.int64)
        self.device.synchronize()
        self.device.download(self.pointer(value), number)
        return int(number[0])

    def prepare(self, entry, buffers, values):
        symbols = dict(zip(entry.symbols, values, strict=True))
        arguments = [*buffers, *values]
        if entry.checks:
            arguments.append(self.errors)
        if entry.scratch:
            arguments.append(self.device.allocate(evaluate(entry.scratch, symbols)))
        if entry.counters:
            arguments.append(entry.counters)
        blocks = evaluate(entry.grid, symbols)
        if entry.maps:
            arguments += [self.device.describe(each, buffers[each.buffer]) for each in entry.maps]
        if entry.together:
            blocks = min(blocks, entry.together * self.device.multiprocessors)
        return lambda: blocks and self.device.launch(entry.function, blocks, entry.block, arguments, entry.shared)


def weight(model, text):
    """What a loop.weight reads of the model's file, as its recipe gathers it; in panels none is known."""
    offset, size = map(int, re.match(r'<"[^"]*", "", (\d+), (\d+)>', text).groups())
    with open(model, "rb") as file:
        file.seek(offset)
        source = np.frombuffer(file.read(size), dtype_of(re.search(r"<\[\d+\] x (\w+)", text)[1]))
    recipe = re.search(r"recipe <extents = \[(.*?)\], strides = \[(.*?)\], offset = (\d+), panel = -1,", text)
    if "recipe" not in text:
        return source
    extents, strides = ([int(word) for word in recipe[side].split(",")] for side in (1, 2))
    steps = [stride * source.itemsize for stride in strides]
    return np.ascontiguousarray(np.lib.stride_tricks.as_strided(source[int(recipe[3]):], extents, steps)).reshape(-1)


def constant(text):
    """The value of a loop.constant, printed as dense<...> : tensor<...>."""
    match = re.match(r"dense<(.*)> : tensor<(?:[\dx]*x)?(\w+)>.*<\[(.*?)\] x", text)
    literal, dtype, dims = match.groups()
    shape = [int(d) for d in split(dims)]
    dtype = dtype_of(re.sub("^[su]i", "i", dtype))
    size = int(np.prod(shape))
    if literal.startswith('"0x'):
        data = np.frombuffer(bytes.fromhex(literal[3:-1]), dtype)
        return np.ascontiguousarray(np.broadcast_to(data, size) if len(data) == 1 else data)
    words = re.findall(r"[^\[\],\s]+", literal)
    def number(word):
        if word in ("true", "false"):
            return word == "true"
        if word.startswith("0x") and dtype.kind == "f":
            return np.array([int(word, 16)], f"u{dtype.itemsize}").view(dtype)[0]
        return float(word) if dtype.kind == "f" else int(word)
    data = np.array([number(word) for word in words], dtype)
    return np.ascontiguousarray(np.broadcast_to(data, size) if len(data) == 1 else data)


def difference(found, expected, relative):
    """None, or how an output differs: |a-b| <= relative*|b| + relative/100*max|b|, integers exact."""
    if found.shape != expected.shape:
        return f"shape {found.shape}, not {expected.shape}"
    if found.dtype.kind in "iub" or not expected.size:
        expected = np.ascontiguousarray(expected).view(found.dtype)  # buffers know no signs
        different = np.count_nonzero(found != expected)
        return f"{different} elements differ" if different else None
    a, b = found.astype(np.float64), expected.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        finite = np.abs(b)[np.isfinite(b)]
        bound = relative * np.abs(b) + relative / 100 * (finite.max() if finite.size else 0) + 1e-7
        wrong = ~same & ~(np.abs(a - b) <= bound)
    return f"{np.count_nonzero(wrong)} of {wrong.size} elements differ, first {a[wrong][0]} for {b[wrong][0]}" if wrong.any() else None
