"""The same results from libraries for a GPU, which is emulated: operators of the user's own run beside it, on the host."""

import sys
from pathlib import Path

import test_results

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "ptx"))
import emulated  # noqa: E402


class ResultsOnDevice(test_results.Results):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        emulated.install()

    def compile(self, proto, *flags, name=None):
        return super().compile(proto, *flags, "--target=cuda", "--cpu=native", name=name)
