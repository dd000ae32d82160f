"""Which CPU levels a library has, and which kernels have code of their own at them."""

import json

import numpy as np
import ptc
from models import ModelTest, model, value
from onnx import TensorProto, helper

RNG = np.random.default_rng(11)


def normal(*shape):
    return RNG.standard_normal(shape, np.float32)


def rows_by_weight(rows, terms, columns):
    """A product behind rows that are softened, and a softmax of it."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["soft"], "soften"),
        helper.make_node("MatMul", ["soft", "w"], ["sum"], "product"),
        helper.make_node("Softmax", ["sum"], ["y"], "softmax"),
    ]
    return model(nodes, [value("x", [rows, terms])], [value("y", [rows, columns])], {"w": normal(terms, columns)})


def row_by_bytes(terms, columns):
    """Of a row of floats; the weight's columns have scales of their own, so that they stay bytes."""
    nodes = [
        helper.make_node("DequantizeLinear", ["w", "scale"], ["b"], axis=1),
        helper.make_node("MatMul", ["x", "b"], ["y"], "product"),
    ]
    weights = {"w": RNG.integers(-127, 127, (terms, columns), np.int8), "scale": np.abs(normal(columns)) + np.float32(0.01)}
    return model(nodes, [value("x", [1, terms])], [value("y", [1, columns])], weights)


def halves(rows, columns):
    nodes = [
        helper.make_node("Cast", ["x"], ["half"], to=TensorProto.FLOAT16),
        helper.make_node("Softmax", ["half"], ["y"], "softmax"),
    ]
    return model(nodes, [value("x", [rows, columns])], [value("y", [rows, columns], TensorProto.FLOAT16)])


def bytes_by_weight(rows, terms, columns):
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "x_zero"], ["a"]),
        helper.make_node("DequantizeLinear", ["w", "scale", "w_zero"], ["b"]),
        helper.make_node("MatMul", ["a", "b"], ["sum"], "product"),
        helper.make_node("Softmax", ["sum"], ["y"], "softmax"),
    ]
    weights = {"w": RNG.integers(-127, 127, (terms, columns), np.int8), "scale": np.float32(0.01),
               "x_zero": np.uint8(128), "w_zero": np.int8(0)}
    return model(nodes, [value("x", [rows, terms], TensorProto.UINT8)], [value("y", [rows, columns])], weights)


# Rows, terms and columns: whether x86-64-v3 takes Strassen's algorithm and x86-64-v3-zen does not.
PRODUCTS = [
    (128, 512, 1024, True),
    # x86-64-v3-zen takes it, too, if they have 98,304 elements, 640 terms and 768 columns.
    (128, 768, 768, False), (126, 768, 768, True), (160, 640, 768, False), (164, 608, 768, True), (128, 768, 704, True),
    # Neither takes it below 36,864 elements and 256 terms and columns, or where a task has less than 48 rows.
    (96, 384, 384, True), (94, 384, 384, False), (192, 256, 512, True), (192, 224, 512, False),
    (192, 768, 256, True), (192, 768, 192, False), (48, 1024, 768, True), (46, 1024, 768, False),
]


class Levels(ModelTest):
    def compile_and_list(self, proto, *flags):
        """The library, its levels, and by the nodes of a kernel those with code of their own."""
        temps = self.folder / f"temps{self.count}"
        library = self.compile(proto, "--save-temps", temps, *flags)
        manifest = json.loads(library.with_suffix(".json").read_text())
        own = {}
        for kernel in manifest["kernels"]:
            files = (temps / "kernels" / kernel["name"]).glob("*.s")
            own[tuple(kernel["nodes"])] = {file.stem for file in files}
            self.assertEqual(set(kernel["code_bytes"]), set(manifest["levels"]))
            self.assertGreater(min(kernel["code_bytes"].values()), 0)
        return library, manifest["levels"], own

    def agree(self, library, **inputs):
        """All levels that run here give the same result, but for the order of sums."""
        (_, first), *others = self.run_levels(library, **inputs)
        for level, result in others:
            np.testing.assert_allclose(result, first, rtol=1e-5, atol=1e-7, err_msg=level)

    def test_streams(self):
        """Few rows by a weight that no core's cache holds are what x86-64-v3-zen is for; other kernels have v3's code there."""
        for rows in (1, 3, 4, 6):
            with self.subTest(rows=rows):
                library, levels, own = self.compile_and_list(rows_by_weight(rows, 512, 1024))
                self.assertEqual(levels, ["x86-64-v3", "x86-64-v3-zen", "x86-64-v4"])
                both = {"x86-64-v3", "x86-64-v4"}
                for nodes, files in own.items():
                    self.assertEqual(files, both | {"x86-64-v3-zen"} if "product" in nodes else both, nodes)
                self.agree(library, x=normal(rows, 512))
        for rows, terms, columns in (40, 512, 1024), (1, 64, 64):
            levels = self.compile_and_list(rows_by_weight(rows, terms, columns))[1]
            self.assertNotIn("x86-64-v3-zen", levels)
        self.assertNotIn("x86-64-v3-zen", self.compile_and_list(row_by_bytes(512, 2048))[1])

    def test_products_of_middle_size(self):
        """x86-64-v3-zen multiplies plainly what x86-64-v3 does by Strassen's algorithm, until products are large."""
        for rows, terms, columns, differs in PRODUCTS:
            with self.subTest(rows=rows, terms=terms, columns=columns):
                library, levels, own = self.compile_and_list(rows_by_weight(rows, terms, columns))
                self.assertEqual("x86-64-v3-zen" in levels, differs)
                for nodes, files in own.items():
                    self.assertEqual("x86-64-v3-zen" in files, differs and "product" in nodes, nodes)
                self.agree(library, x=normal(rows, terms))

    def test_converted_streams(self):
        """A weight that is converted on the way is fetched alike at both levels."""
        texts = set()
        for level in "x86-64-v3", "x86-64-v3-zen":
            temps = self.folder / level
            self.compile(row_by_bytes(512, 2048), "--save-temps", temps, f"--cpu={level}")
            (file,) = temps.glob(f"kernels/*/{level}.s")
            code = [line.split("#")[0].split() for line in file.read_text().replace(f".{level}", "").splitlines()]
            texts.add("\n".join(" ".join(words) for words in code if words[:1] != [".file"]))
        self.assertEqual(len(texts), 1)

    def test_lists(self):
        """In any order, and without the level between two; what is shared is the next lower one's."""
        _, levels, own = self.compile_and_list(rows_by_weight(1, 512, 1024), "--cpu=x86-64-v4,x86-64-v3-zen,x86-64-v3")
        self.assertEqual(levels, ["x86-64-v3", "x86-64-v3-zen", "x86-64-v4"])
        self.assertEqual(sum("x86-64-v3-zen" in files for files in own.values()), 1)
        _, levels, own = self.compile_and_list(rows_by_weight(128, 512, 1024), "--cpu=x86-64-v4-zen4,x86-64-v4")
        self.assertEqual(levels, ["x86-64-v4", "x86-64-v4-zen4"])
        for nodes, files in own.items():
            self.assertEqual("x86-64-v4-zen4" in files, "product" in nodes, nodes)

    def test_narrow_elements(self):
        """Instructions for elements of less than 32 bits come with those for bf16."""
        _, _, own = self.compile_and_list(halves(40, 96), "--cpu=x86-64-v3,x86-64-v3-vnni,x86-64-v4,x86-64-v4-vnni-bf16")
        for files in own.values():
            self.assertEqual(files, {"x86-64-v3", "x86-64-v4", "x86-64-v4-vnni-bf16"})

    def test_alone(self):
        """Where the library has no code of the level below, all kernels are the level's own."""
        for level in "x86-64-v3-zen", "x86-64-v3-vnni", "x86-64-v4-zen4":
            _, levels, own = self.compile_and_list(rows_by_weight(1, 512, 1024), f"--cpu={level}")
            self.assertEqual(levels, [level])
            self.assertEqual(set().union(*own.values()), {level})

    def test_bytes(self):
        """Products of bytes are the only kernel that VNNI is for; f32 has no other code with bytes' and bf16's instructions."""
        library, levels, own = self.compile_and_list(bytes_by_weight(40, 512, 96))
        self.assertEqual(levels, ["x86-64-v3", "x86-64-v3-vnni", "x86-64-v4", "x86-64-v4-vnni-bf16", "x86-64-v4-amx"])
        for nodes, files in own.items():
            self.assertEqual("x86-64-v3-vnni" in files, "product" in nodes, nodes)
            self.assertEqual("x86-64-v4-vnni-bf16" in files, "product" in nodes, nodes)
        self.agree(library, x=RNG.integers(0, 255, (40, 512), np.uint8))
