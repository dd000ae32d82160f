"""A GPU's threads in numpy: runs PTX text where there is no GPU, with the interface of driver.py.

All threads of a launch run in lockstep, each with a program counter of its own. At every step those with the lowest
counter execute one instruction, so that branches mostly meet again where the code does; threads that come to a shuffle or
a barrier wait for the rest of their warp. What hardware leaves undefined is an error here: such an instruction that part
of a warp never reaches, an access outside of every buffer or not aligned, a register read before it is written. To find
missing barriers, a random half of the warps of a block runs ahead of the others up to each barrier. Threads that sleep, since they
wait for other blocks, do so until nobody else can go on.

Registers hold bits; instructions view them as their types. Only what ptc's code generator emits is known: an unknown
instruction is an error that names it.
"""

import re

import ml_dtypes
import numpy as np

from program import NotKnown

WIDTH = {"pred": 1, "b8": 1, "u8": 1, "s8": 1, "b16": 2, "u16": 2, "s16": 2, "f16": 2, "bf16": 2, "b32": 4, "u32": 4, "s32": 4,
         "f32": 4, "f16x2": 4, "bf16x2": 4, "b64": 8, "u64": 8, "s64": 8, "f64": 8}
BITS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
COLLECTIVE = {"bar", "shfl", "vote", "ldmatrix", "mma"}  # a warp does them together
VIEW = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}


def dtype_of(name):
    if name in VIEW:
        return VIEW[name]
    return np.dtype(("i" if name[0] == "s" else "u") + str(WIDTH[name]))


class Fault(RuntimeError):
    pass


class Instruction:
    def __init__(self, text):
        self.text = text
        match = re.match(r"(?:@(!?)(%p\d+)\s+)?([a-z][\w.]*)\s*(.*)$", text, re.S)
        if not match:
            raise Fault(f"not an instruction: '{text}'")
        self.negated, self.guard, name, rest = match.groups()
        self.parts = name.split(".")
        self.operands = re.findall(r"\{[^}]*\}|\[[^\]]*\]|[^,\s][^,\s]*", rest)


class Module:
    def __init__(self, text):
        self.entries = {}
        text = re.sub(r"//[^\n]*", "", text)
        launched = re.findall(r"\.extern \.shared \.align 128 \.b8 (\w+)\[\];", text)
        for match in re.finditer(r"\.entry (\w+)\((.*?)\)(.*?)\n\{(.*?)\n\}", text, re.S):
            code = self.entries[match[1]] = Code(*match.groups())
            code.launched = next((name for name in launched if re.search(rf"\b{name}\b", match[4])), None)


class Code:
    """One entry, decoded."""

    def __init__(self, name, parameters, directives, body):
        self.name = name
        self.parameters = re.findall(r"(\w+_param_\d+)", parameters)
        self.block = tuple(int(n) for n in re.search(r"\.reqntid (\d+), (\d+), (\d+)", directives).groups())
        self.registers = {kind: (WIDTH[type_], int(count)) for type_, kind, count in
                          re.findall(r"\.reg \.(\w+)\s+(%\w+?)<(\d+)>;", body)}
        self.shared, self.sharedBytes, self.launched = {}, 0, None  # launched: what the launch gives the size of
        for align, symbol, size in re.findall(r"\.shared \.align (\d+) \.b8 (\w+)\[(\d+)\];", body):
            self.sharedBytes = -(-self.sharedBytes // int(align)) * int(align)
            self.shared[symbol] = self.sharedBytes
            self.sharedBytes += int(size)
        if ".local" in body:
            raise Fault(f"{name}: local memory")
        # Half of a register that nobody wants has a name of its own.
        body = re.sub(r"\{\s*\.reg \.b\d+ tmp;\s*(mov[^;]*;)\s*\}", lambda m: m[1].replace("tmp", "_"), body)
        body = re.sub(r"(?<!\w)\.(reg|shared|pragma)\b[^;]*;", "", body)
        self.instructions, self.labels, self.tables = [], {}, {}  # tables: of indirect branches
        for piece in re.split(r"(\$\w+:)|;", body):
            piece = (piece or "").strip()
            if piece.endswith(":"):
                label = piece[:-1]
                self.labels[label] = len(self.instructions)
            elif piece.startswith(".branchtargets"):
                self.tables[label] = re.findall(r"\$\w+", piece)
            elif piece:
                self.instructions.append(Instruction(piece))


class Memory:
    """Device memory: one array; 0 and what lies between buffers belongs to nobody."""

    def __init__(self):
        self.bytes, self.owned, self.next = np.zeros(1 << 16, np.uint8), np.zeros(1 << 16, bool), 4096

    def allocate(self, size):
        pointer, end = self.next, self.next + max(size, 16)
        self.next = -(-end // 256) * 256 + 256
        if self.next > len(self.bytes):
            more = max(self.next - len(self.bytes), len(self.bytes))
            self.bytes = np.concatenate([self.bytes, np.zeros(more, np.uint8)])
            self.owned = np.concatenate([self.owned, np.zeros(more, bool)])
        self.bytes[pointer:end], self.owned[pointer:end] = 0xCC, True
        return pointer


class Launch:
    def __init__(self, memory, code, blocks, arguments, random, shared=0):
        self.memory, self.code, self.random = memory, code, random
        self.symbols, self.sharedBytes = dict(code.shared), code.sharedBytes
        if code.launched:
            self.symbols[code.launched] = -(-code.sharedBytes // 128) * 128
            self.sharedBytes = self.symbols[code.launched] + shared
        x, y, _ = code.block
        self.perBlock = x * y
        if self.perBlock % 32:
            raise Fault(f"{code.name}: blocks are not whole warps")
        self.count = blocks * self.perBlock
        thread = np.arange(self.count, dtype=np.uint32)
        self.blockOf = thread // self.perBlock
        self.special = {"%tid.x": thread % self.perBlock % x, "%tid.y": thread % self.perBlock // x,
                        "%ctaid.x": self.blockOf}
        self.arguments = dict(zip(code.parameters, arguments, strict=True))
        self.files = {kind: np.zeros((count, self.count), BITS[width]) for kind, (width, count) in code.registers.items()}
        self.written = {kind: np.zeros((count, self.count), bool) for kind, (width, count) in code.registers.items()}
        self.shared = np.zeros((blocks, max(-(-self.sharedBytes // 16) * 16, 16)), np.uint8)
        self.copies, self.groups = [], np.zeros(self.count, np.int64)  # asynchronous copies that nobody waited for
        self.flags, self.reduced = np.zeros(self.count, bool), {}
        self.counter = np.zeros(self.count, np.int64)
        self.exited = np.zeros(self.count, bool)
        self.waiting = np.zeros(self.count, bool)
        self.asleep = np.zeros(self.count, bool)  # until nobody else can go on
        self.early = np.zeros(self.count, bool)  # at an instruction of a whole warp, without the rest of it
        self.drawLeaders()

    def drawLeaders(self):
        self.leads = np.repeat(self.random.random(self.count // 32) < 0.5, 32)

    #--- Registers -------------------------------------------------------------------------------------------------

    def slot(self, name):
        match = re.fullmatch(r"(%[a-z]+)(\d+)", name)
        return match[1], int(match[2])

    def read(self, operand, type_, at):
        if operand in self.special:
            return self.special[operand][at]
        if operand in self.symbols:
            return np.full(len(at), self.symbols[operand], np.uint64)
        dtype = dtype_of(type_) if type_ != "pred" else np.uint8
        if operand.startswith("%"):
            kind, number = self.slot(operand)
            if not self.written[kind][number, at].all():
                raise Fault(f"{operand} is read before it is written")
            bits = self.files[kind][number, at]
            width = WIDTH[type_]
            bits = bits.astype(BITS[width], copy=False)
            return bits if type_ == "pred" else bits.view(dtype)
        if operand.startswith("0f"):
            return np.full(len(at), np.uint32(int(operand[2:], 16)), np.uint32).view(dtype)
        if operand.startswith("0d"):
            return np.full(len(at), np.uint64(int(operand[2:], 16)), np.uint64).view(dtype)
        if operand.startswith("0x") and type_ in VIEW:
            return np.full(len(at), int(operand, 16), BITS[WIDTH[type_]]).view(dtype)
        value = int(operand.rstrip("U"), 0) & ((1 << 8 * WIDTH[type_]) - 1)
        bits = np.full(len(at), value, BITS[WIDTH[type_]])
        return bits if type_ == "pred" else bits.view(dtype)

    def write(self, operand, values, at):
        if operand == "_":
            return
        kind, number = self.slot(operand)
        width = self.code.registers[kind][0]
        values = np.ascontiguousarray(values)
        bits = values.astype(np.uint8) if values.dtype == bool else values.view(BITS[values.dtype.itemsize])
        self.files[kind][number, at] = bits.astype(BITS[width], copy=False)
        self.written[kind][number, at] = True

    #--- Control ---------------------------------------------------------------------------------------------------

    def run(self):
        steps = 0
        while True:
            able = ~self.exited & ~self.waiting & ~self.early & ~self.asleep
            if not able.any() and self.asleep.any():
                self.asleep[:] = False
                continue
            if not able.any():
                if self.exited.all():
                    return
                raise Fault(f"{self.code.name}: threads wait at a barrier that others never reach")
            if (able & self.leads).any():
                able &= self.leads
            counter = self.counter[able].min()
            at = np.nonzero(able & (self.counter == counter))[0]
            instruction = self.code.instructions[counter]
            if instruction.parts[0] in COLLECTIVE:
                at = self.gather(at)
            if len(at):
                self.execute(instruction, at)
            steps += 1
            if steps > 2_000_000:
                raise Fault(f"{self.code.name}: too many steps")

    def gather(self, at):
        """Of threads that come to what a warp does together those whose warps are complete; others wait for the rest."""
        self.early[at] = True
        warps = self.early.reshape(-1, 32)
        counters = self.counter.reshape(-1, 32)
        if (warps & (counters != np.where(warps, counters, -1).max(axis=1, keepdims=True))).any():
            raise Fault(f"{self.code.name}: threads of a warp wait at different places")
        complete = np.repeat(warps.all(axis=1), 32) & self.early
        self.early[complete] = False
        return np.nonzero(complete)[0]

    def execute(self, instruction, at):
        self.counter[at] += 1
        if instruction.guard:
            holds = self.read(instruction.guard, "pred", at) != 0
            at = at[~holds if instruction.negated else holds]
            if not len(at):
                return
        try:
            with np.errstate(all="ignore"):
                getattr(self, "do_" + instruction.parts[0])(instruction, at)
        except AttributeError as error:
            if "do_" in str(error):
                raise Fault(f"unknown instruction '{instruction.text}'") from None
            raise
        except Fault as fault:
            raise Fault(f"{self.code.name}: {instruction.text}: {fault}") from None

    def do_bra(self, i, at):
        self.counter[at] = self.code.labels[i.operands[0]]

    def do_brx(self, i, at):
        targets = np.array([self.code.labels[label] for label in self.code.tables[i.operands[1]]])
        self.counter[at] = targets[self.read(i.operands[0], "u32", at)]

    def do_ret(self, i, at):
        self.exited[at] = True
        self.release()

    def do_bar(self, i, at):
        if i.parts[1] == "red":
            self.flags[at] = self.read(i.operands[2], "pred", at) != 0
            self.reduced.update(dict.fromkeys(at.tolist(), i.operands[0]))
        if i.parts[1] in ("sync", "red"):
            self.waiting[at] = True
            self.release()

    def release(self):
        done = (self.waiting | self.exited).reshape(-1, self.perBlock).all(axis=1)
        opened = done & self.waiting.reshape(-1, self.perBlock).any(axis=1)
        if not opened.any():
            return
        waits = self.waiting.reshape(-1, self.perBlock)[opened]
        counters = np.where(waits, self.counter.reshape(-1, self.perBlock)[opened], -1)
        lowest = np.where(waits, counters, np.iinfo(np.int64).max).min(axis=1)
        if (counters.max(axis=1) != lowest).any():
            raise Fault("threads of a block wait at different barriers")
        self.waiting.reshape(-1, self.perBlock)[opened] = False
        for block in np.nonzero(opened)[0] if self.reduced else ():
            at = np.arange(block * self.perBlock, (block + 1) * self.perBlock)
            if target := self.reduced.get(at[0]):
                self.write(target, np.full(len(at), self.flags[at].any()), at)
                for thread in at.tolist():
                    del self.reduced[thread]
        self.drawLeaders()

    def do_shfl(self, i, at):
        result, value, lane = i.operands[:3]
        values, lanes = self.read(value, "b32", at), np.arange(len(at))
        source = lanes - lanes % 32 + self.read(lane, "b32", at) % 32 if "idx" in i.parts else lanes ^ int(lane)
        self.write(result, values[source], at)

    def do_vote(self, i, at):
        holds = (self.read(i.operands[1], "pred", at) != 0).reshape(-1, 32)
        words = (holds.astype(np.uint64) << np.arange(32, dtype=np.uint64)).sum(axis=1).astype(np.uint32)
        self.write(i.operands[0], np.repeat(words, 32), at)

    #--- Memory ----------------------------------------------------------------------------------------------------

    def address(self, operand, at):
        base, _, offset = operand[1:-1].partition("+")
        base = self.read(base, "b64", at) if base.startswith("%") or base in self.symbols else int(base)
        return (base + np.uint64(int(offset or 0) & (1 << 64) - 1)).astype(np.int64)

    def place(self, i, operand, width, at):
        address = self.address(operand, at)
        if (address % width).any():
            raise Fault("an access is not aligned")
        if "shared" in i.parts:
            if (address < 0).any() or (address + width > self.sharedBytes).any():
                raise Fault("outside of shared memory")
            return self.shared.reshape(-1), address + self.blockOf[at].astype(np.int64) * self.shared.shape[1]
        if (address < 0).any() or (address + width > len(self.memory.bytes)).any() or not (
                self.memory.owned[address] & self.memory.owned[address + width - 1]).all():
            raise Fault("outside of every buffer")
        return self.memory.bytes, address

    def do_ld(self, i, at):
        type_ = i.parts[-1]
        if i.parts[1] == "param":
            value = self.arguments[i.operands[1][1:-1]]
            self.write(i.operands[0], np.full(len(at), value & (1 << 64) - 1, np.uint64), at)
            return
        results = [r.strip() for r in i.operands[0].strip("{}").split(",")]
        width = WIDTH[type_]
        memory, address = self.place(i, i.operands[1], width * len(results), at)
        for lane, result in enumerate(results):
            values = memory[(address + lane * width)[:, None] + np.arange(width)].reshape(-1).view(dtype_of(type_))
            if result != "_" and WIDTH_OF(self, result) > width:
                values = values.astype(np.dtype(values.dtype.kind + str(WIDTH_OF(self, result))))
            self.write(result, values, at)

    def do_st(self, i, at):
        type_, width = i.parts[-1], WIDTH[i.parts[-1]]
        sources = [s.strip() for s in i.operands[1].strip("{}").split(",")]
        memory, address = self.place(i, i.operands[0], width * len(sources), at)
        for lane, source in enumerate(sources):
            values = np.ascontiguousarray(self.read(source, type_, at)).view(np.uint8).reshape(-1, width)
            memory[(address + lane * width)[:, None] + np.arange(width)] = values

    def do_cp(self, i, at):
        if i.parts[2] == "commit_group":
            self.groups[at] += 1
            return
        if i.parts[2] == "wait_group":
            left, here = [], np.zeros(self.count, bool)
            here[at] = True
            for threads, group, target, values in self.copies:
                done = here[threads] & (group < self.groups[threads] - int(i.operands[0]))
                self.shared.reshape(-1)[target[done]] = values[done]
                if not done.all():
                    left.append((threads[~done], group[~done], target[~done], values[~done]))
            self.copies = left
            return
        target, source, width, *size = i.operands
        width = int(width)
        size = self.read(size[0], "u32", at) if size else np.full(len(at), width)
        shared = Instruction("ld.shared.b8 x, y")
        _, target = self.place(shared, target, width, at)
        values = np.zeros((len(at), width), np.uint8)
        for wanted in np.unique(size):
            if wanted:
                chosen = at[size == wanted]
                memory, address = self.place(Instruction("ld.global.b8 x, y"), source, int(wanted), chosen)
                values[size == wanted, :wanted] = memory[address[:, None] + np.arange(wanted)]
        lines = target[:, None] + np.arange(width)
        self.shared.reshape(-1)[lines] = 0xFF  # until somebody waits
        self.copies.append((at, self.groups[at].copy(), lines, values))

    def do_fence(self, i, at):
        pass

    def do_nanosleep(self, i, at):
        self.asleep[at] = True

    def do_atom(self, i, at):
        type_, operation = i.parts[-1], i.parts[-2]
        width, dtype = WIDTH[type_], dtype_of(type_)
        memory, address = self.place(i, i.operands[1], width, at)
        operands = [self.read(operand, type_, at) for operand in i.operands[2:]]
        before = np.zeros(len(at), dtype)
        order = self.random.permutation(len(at))  # which nothing promises
        for lane in order:
            word = memory[address[lane]:address[lane] + width].view(dtype)
            before[lane], value = word[0], operands[0][lane]
            if operation == "cas":
                word[0] = operands[1][lane] if word[0] == value else word[0]
            else:
                word[0] = {"add": lambda: word[0] + value, "max": lambda: max(word[0], value), "min": lambda: min(word[0], value),
                           "or": lambda: word[0] | value}[operation]()
        self.write(i.operands[0], before, at)

    #--- Tensor cores ----------------------------------------------------------------------------------------------

    def do_ldmatrix(self, i, at):
        memory, address = self.place(i, i.operands[1], 16, at)
        rows = memory[address[:, None] + np.arange(16)].view(np.uint16).reshape(-1, 4, 8, 8)  # warp, matrix, row, column
        if "trans" in i.parts:
            rows = rows.transpose(0, 1, 3, 2)
        words = np.ascontiguousarray(rows).view(np.uint32).reshape(-1, 4, 32)
        for matrix, result in enumerate(r.strip() for r in i.operands[0].strip("{}").split(",")):
            self.write(result, words[:, matrix].reshape(-1), at)

    def fragment(self, operand, at):
        """Registers by warp, lane, and number."""
        names = [r.strip() for r in operand.strip("{}").split(",")]
        return np.stack([self.read(name, "b32", at) for name in names], axis=1).reshape(-1, 32, len(names))

    def do_mma(self, i, at):
        kinds, lane = i.parts[-3:-1], np.arange(32)  # of a and b
        group, four = lane // 4, lane % 4
        isInteger = i.parts[-1] == "s32"
        a, b, sums = (self.fragment(o, at) for o in i.operands[1:4])
        warps = len(at) // 32

        def numbers(words, kind):  # what a register holds, along k
            if isInteger:
                return np.ascontiguousarray(words).view(kind.replace("s8", "int8").replace("u8", "uint8")).reshape(*words.shape, 4)
            if kind == "tf32":
                return (words & np.uint32(0xFFFFE000)).view(np.float32)[..., None].astype(np.float64)
            halves = np.ascontiguousarray(words).view(np.uint16).reshape(*words.shape, 2)
            if kind == "bf16":
                return (halves.astype(np.uint32) << np.uint32(16)).view(np.float32).astype(np.float64)
            return halves.view(np.float16).astype(np.float64)

        together = 4 if isInteger else 1 if "tf32" in kinds else 2
        left, right = np.zeros((warps, 16, 8 * together)), np.zeros((warps, 8 * together, 8))
        for register in range(4):
            for j in range(together):
                k = (four + 4 * (register // 2)) * together + j
                left[:, group + 8 * (register % 2), k] = numbers(a[..., register], kinds[0])[..., j]
                if register < 2:
                    right[:, (four + 4 * register) * together + j, group] = numbers(b[..., register], kinds[1])[..., j]
        product = left @ right
        for register, name in enumerate(r.strip() for r in i.operands[0].strip("{}").split(",")):
            more, before = product[:, group + 8 * (register // 2), four * 2 + register % 2], np.ascontiguousarray(sums[..., register])
            if isInteger:
                result = before + more.astype(np.int64).astype(np.uint32)
            else:
                result = (before.view(np.float32).astype(np.float64) + more).astype(np.float32)
            self.write(name, result.reshape(-1), at)

    #--- Arithmetic ------------------------------------------------------------------------------------------------

    def pairs(self, i, at, function):
        """Of two f16 each."""
        values = [np.ascontiguousarray(self.read(o, "b32", at)).view(np.float16) for o in i.operands[1:]]
        self.write(i.operands[0], np.ascontiguousarray(function(*values)).view(np.uint32), at)

    def binary(self, i, at, function):
        type_ = i.parts[-1]
        if type_ == "f16x2":
            return self.pairs(i, at, function)
        a, b = (self.read(o, type_, at) for o in i.operands[1:3])
        self.write(i.operands[0], function(a, b), at)

    def unary(self, i, at, function):
        self.write(i.operands[0], function(self.read(i.operands[1], i.parts[-1], at)), at)

    def do_add(self, i, at):
        self.binary(i, at, np.add)

    def do_sub(self, i, at):
        self.binary(i, at, np.subtract)

    def do_mul(self, i, at):
        type_ = i.parts[-1]
        if i.parts[1] == "wide":
            a, b = (self.read(o, type_, at) for o in i.operands[1:3])
            wide = np.dtype(a.dtype.kind + str(2 * a.dtype.itemsize))
            self.write(i.operands[0], a.astype(wide) * b.astype(wide), at)
        elif i.parts[1] == "hi":
            a, b = (self.read(o, type_, at).astype(object) for o in i.operands[1:3])
            high = ((a * b) >> (8 * WIDTH[type_])) & ((1 << 8 * WIDTH[type_]) - 1)
            self.write(i.operands[0], high.astype(BITS[WIDTH[type_]]), at)
        else:
            self.binary(i, at, np.multiply)

    def do_mad(self, i, at):
        type_ = i.parts[-1]
        a, b, c = (self.read(o, type_, at) for o in i.operands[1:3]), None, None
        a, b = a
        if i.parts[1] == "wide":
            wide = np.dtype(a.dtype.kind + str(2 * a.dtype.itemsize))
            c = self.read(i.operands[3], wide.kind.replace("i", "s") + str(8 * wide.itemsize), at)
            self.write(i.operands[0], a.astype(wide) * b.astype(wide) + c, at)
        else:
            self.write(i.operands[0], a * b + self.read(i.operands[3], type_, at), at)

    def do_fma(self, i, at):
        type_ = i.parts[-1]
        if type_ == "f16x2":
            return self.pairs(i, at, lambda a, b, c: (a.astype(np.float64) * b + c).astype(np.float16))
        wide = np.longdouble if type_ == "f64" else np.float64  # one rounding, but for rare ties
        a, b, c = (self.read(o, type_, at).astype(wide) for o in i.operands[1:4])
        result = (self.fused(a, b, c) if type_ == "f64" else a * b + c).astype(VIEW[type_])
        if "relu" in i.parts:
            result = np.maximum(result, 0)
        self.write(i.operands[0], result, at)

    @staticmethod
    def fused(a, b, c):
        """a b + c of doubles, in floats of 64 bits, which do not hold the product: its upper part is not all of it."""
        def halves(x):  # of 32 bits and of 21
            upper = x * (2**32 + 1)
            upper = upper - (upper - x)
            return upper, x - upper

        product = a * b
        (a, a_rest), (b, b_rest) = halves(a), halves(b)
        rest = a * b - product + a * b_rest + a_rest * b + a_rest * b_rest
        total = product + c
        part = total - product
        rest += product - (total - part) + (c - part)  # what the sum lost
        return np.where(np.isfinite(rest) & (rest != 0), total + rest, total)  # of zeros the sign is the sum's

    def do_div(self, i, at):
        if i.parts[-1] in VIEW:
            return self.binary(i, at, np.divide)
        self.binary(i, at, lambda a, b: self.quotient(a, b))

    @staticmethod
    def quotient(a, b):
        safe = np.where(b == 0, 1, b)
        if a.dtype.kind == "u":
            return np.where(b == 0, ~a, a // safe).astype(a.dtype)
        floor = a // safe
        return (floor + ((floor < 0) & (floor * safe != a))).astype(a.dtype)

    def do_rem(self, i, at):
        self.binary(i, at, lambda a, b: (a - self.quotient(a, b) * b).astype(a.dtype))

    def do_neg(self, i, at):
        self.unary(i, at, np.negative)

    def do_abs(self, i, at):
        self.unary(i, at, np.abs)

    def do_sqrt(self, i, at):
        self.unary(i, at, np.sqrt)

    def do_ex2(self, i, at):
        smallest = np.finfo(np.float32).tiny if "ftz" in i.parts else 0
        self.unary(i, at, lambda a: np.where(np.exp2(a) < smallest, np.float32(0), np.exp2(a)))

    def do_rcp(self, i, at):
        self.unary(i, at, lambda a: (a.dtype.type(1) / a))

    def do_min(self, i, at):
        self.binary(i, at, np.minimum if "NaN" in i.parts or i.parts[-1] not in VIEW else np.fmin)

    def do_max(self, i, at):
        self.binary(i, at, np.maximum if "NaN" in i.parts or i.parts[-1] not in VIEW else np.fmax)

    def do_copysign(self, i, at):
        self.binary(i, at, lambda a, b: np.copysign(b, a))

    def do_and(self, i, at):
        self.binary(i, at, np.bitwise_and)

    def do_or(self, i, at):
        self.binary(i, at, np.bitwise_or)

    def do_xor(self, i, at):
        self.binary(i, at, np.bitwise_xor)

    def do_not(self, i, at):
        self.unary(i, at, (lambda a: a ^ 1) if i.parts[-1] == "pred" else np.invert)

    def shift(self, i, at, function):
        type_ = i.parts[-1]
        a, n = self.read(i.operands[1], type_, at), self.read(i.operands[2], "u32", at)
        bits = 8 * WIDTH[type_]
        over = n >= bits
        result = function(a, np.where(over, 0, n).astype(a.dtype))
        end = np.where(a < 0, -1, 0) if a.dtype.kind == "i" and i.parts[0] == "shr" else 0
        self.write(i.operands[0], np.where(over, end, result).astype(a.dtype), at)

    def do_shl(self, i, at):
        self.shift(i, at, np.left_shift)

    def do_shr(self, i, at):
        self.shift(i, at, np.right_shift)

    def do_bfe(self, i, at):
        type_ = i.parts[-1]
        a = self.read(i.operands[1], type_, at)
        start, length = (self.read(o, "u32", at).astype(np.int64) for o in i.operands[2:4])
        field = np.right_shift(a, start.astype(a.dtype)).astype(object)
        mask = np.array([(1 << int(n)) - 1 for n in length], object)
        field = field & mask
        if a.dtype.kind == "i":
            sign = np.array([1 << max(int(n) - 1, 0) for n in length], object)
            field = (field ^ sign) - sign
        self.write(i.operands[0], field.astype(a.dtype), at)

    def do_prmt(self, i, at):
        a, b, choice = (self.read(o, "u32", at).astype(np.uint64) for o in i.operands[1:4])
        both, result = a | b << np.uint64(32), np.zeros(len(at), np.uint64)
        for byte in range(4):
            nibble = choice >> np.uint64(4 * byte) & np.uint64(15)
            value = both >> (nibble & np.uint64(7)) * np.uint64(8) & np.uint64(255)
            sign = np.where(value >= 128, np.uint64(255), np.uint64(0))
            result |= np.where(nibble >= 8, sign, value) << np.uint64(8 * byte)
        self.write(i.operands[0], result.astype(np.uint32), at)

    def do_popc(self, i, at):
        self.write(i.operands[0], np.bitwise_count(self.read(i.operands[1], i.parts[-1], at)).astype(np.uint32), at)

    def do_brev(self, i, at):
        a = self.read(i.operands[1], i.parts[-1], at)
        bits = 8 * a.dtype.itemsize
        self.write(i.operands[0], np.array([int(f"{v:0{bits}b}"[::-1], 2) for v in a], a.dtype), at)

    def do_clz(self, i, at):
        a = self.read(i.operands[1], i.parts[-1], at)
        bits = 8 * a.dtype.itemsize
        self.write(i.operands[0], np.array([bits - int(v).bit_length() for v in a], np.uint32), at)

    def do_selp(self, i, at):
        a, b = (self.read(o, i.parts[-1], at) for o in i.operands[1:3])
        self.write(i.operands[0], np.where(self.read(i.operands[3], "pred", at) != 0, a, b), at)

    def do_setp(self, i, at):
        compare, type_ = i.parts[1], i.parts[-1]
        a, b = (self.read(o, type_, at) for o in i.operands[1:3])
        if compare in ("nan", "num"):
            result = np.isnan(a) | np.isnan(b)
            result = result if compare == "nan" else ~result
        else:
            name = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(compare, compare)
            unordered = len(name) == 3
            functions = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal, "gt": np.greater,
                         "ge": np.greater_equal}
            result = functions[name[:2]](a, b)
            if type_ in VIEW:
                either = np.isnan(a) | np.isnan(b)
                result = result | either if unordered else result & ~either
        if len(i.operands) == 4 and i.parts[2] in ("and", "or"):
            other = self.read(i.operands[3], "pred", at) != 0
            result = result & other if i.parts[2] == "and" else result | other
        self.write(i.operands[0], result, at)

    #--- Moves and conversions -------------------------------------------------------------------------------------

    def do_mov(self, i, at):
        target, source = i.operands
        type_ = i.parts[-1]
        if target.startswith("{"):
            parts = [t.strip() for t in target.strip("{}").split(",")]
            values, width = self.read(source, type_, at), WIDTH[type_] // len(parts)
            pieces = np.ascontiguousarray(values).view(BITS[width]).reshape(len(at), -1)
            for lane, part in enumerate(parts):
                self.write(part, pieces[:, lane], at)
        elif source.startswith("{"):
            parts = [s.strip() for s in source.strip("{}").split(",")]
            width = WIDTH[type_] // len(parts)
            pieces = np.stack([self.read(p, f"b{8 * width}", at) for p in parts], axis=1)
            self.write(target, np.ascontiguousarray(pieces).view(BITS[WIDTH[type_]]).reshape(-1), at)
        else:
            self.write(target, self.read(source, type_, at), at)

    def do_cvta(self, i, at):
        self.write(i.operands[0], self.read(i.operands[1], i.parts[-1], at), at)

    def do_cvt(self, i, at):
        to, source = i.parts[-2], i.parts[-1]
        if to in ("f16x2", "bf16x2"):
            half = np.float16 if to == "f16x2" else ml_dtypes.bfloat16
            high, low = (self.read(o, source, at).astype(half) for o in i.operands[1:3])
            pair = np.ascontiguousarray(np.stack([low, high], axis=1)).view(np.uint32).reshape(-1)
            return self.write(i.operands[0], pair, at)
        a = self.read(i.operands[1], source, at)
        rounding = next((p for p in i.parts if p in ("rzi", "rni", "rmi", "rpi")), None)
        if rounding:
            a = {"rzi": np.trunc, "rni": np.rint, "rmi": np.floor, "rpi": np.ceil}[rounding](a)
        target = dtype_of(to)
        if source in VIEW and to not in VIEW:
            limits = np.iinfo(target)
            low, high = float(limits.min), float(limits.max)
            inside = np.clip(np.nan_to_num(a.astype(np.float64), nan=0.0), low, high)
            result = np.where(inside >= high, limits.max, np.where(inside >= high, 0, inside).astype(target)).astype(target)
        else:
            result = a.astype(target)
        if "sat" in i.parts and to in VIEW:
            result = np.clip(np.nan_to_num(result), 0, 1)
        wide = WIDTH_OF(self, i.operands[0])
        if to not in VIEW and wide > result.dtype.itemsize:
            result = result.astype(np.dtype(result.dtype.kind + str(wide)))
        self.write(i.operands[0], result, at)


def WIDTH_OF(launch, register):
    return launch.code.registers[launch.slot(register)[0]][0]


class Emulator:
    """What driver.Driver offers, without a device."""

    def __init__(self, seed=1):
        self.memory, self.random = Memory(), np.random.default_rng(seed)

    def load(self, ptx):
        if "wgmma" in ptx:
            raise NotKnown("products of warpgroups are not emulated")
        return Module(ptx)

    def find(self, module, name):
        return module.entries[name]

    def allocate(self, size):
        return self.memory.allocate(size)

    def upload(self, array):
        pointer = self.allocate(array.nbytes)
        self.memory.bytes[pointer:pointer + array.nbytes] = np.frombuffer(array.tobytes(), np.uint8)
        return pointer

    def download(self, pointer, array):
        array.reshape(-1).view(np.uint8)[:] = self.memory.bytes[pointer:pointer + array.nbytes]

    def launch(self, function, blocks, block, arguments, shared=0):
        if function.block != block:
            raise Fault(f"{function.name}: the comment says {block}, the entry {function.block}")
        Launch(self.memory, function, blocks, arguments, self.random, shared).run()

    def synchronize(self):
        pass
