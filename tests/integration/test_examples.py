"""The examples of cli/integration/examples, with the real model that they are for."""

import shutil

import numpy as np
import project
import sources
from project import ROOT, Project

EXAMPLES = ROOT / "cli" / "integration" / "examples"


def line_count(path):
    """Lines that are not blank."""
    return sum(1 for line in path.read_text().splitlines() if line.strip())


class Examples(Project):
    def setUp(self):
        super().setUp()
        row = next(row for row in sources.rows() if row["name"] == "ppocr-cls")
        self.model = sources.fetch(row, project.BUILD)

    def take(self, name):
        for path in (EXAMPLES / name).iterdir():
            if path.name != "README.md":
                shutil.copy(path, self.folder)
        shutil.copy(self.model, self.folder / "cls.onnx")

    def check(self, printed):
        import onnxruntime

        session = onnxruntime.InferenceSession(str(self.model), providers=["CPUExecutionProvider"])
        (expected,) = session.run(None, {"x": np.full((1, 3, 48, 192), 0.5, np.float32)})
        np.testing.assert_allclose([float(word) for word in printed.split()], expected[0], rtol=1e-3, atol=2e-6)

    def test_cmake_example(self):
        self.take("cmake")
        self.assertLessEqual(line_count(self.folder / "CMakeLists.txt"), 12)
        self.assertLessEqual(line_count(self.folder / "main.cpp"), 10)
        self.configure()
        self.build()
        self.check(self.sh("build/orientation"))
        self.sh("cmake", "--install", "build", "--prefix", "installed")
        shutil.rmtree(self.folder / "build")
        (self.folder / "installed").rename(self.folder / "moved")
        self.check(self.sh("moved/bin/orientation"))

    def test_make_example(self):
        self.take("make")
        self.assertLessEqual(line_count(self.folder / "Makefile"), 6)
        self.assertLessEqual(line_count(self.folder / "main.cpp"), 10)
        self.sh("make", "-j", 4)
        self.check(self.sh("./main"))
