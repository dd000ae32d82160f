"""What ptc tune writes, what a compile makes of it, and --mode=max-autotune; see README.md."""

import json
import os
import signal
import subprocess
import sys
import time

import devices  # noqa: F401: more of the suite
from case import Case, normal, parse

import unittests


class Files(Case):
    def test_names_every_kernel(self):
        tuning, text = self.tune("--cpu=x86-64-v3")
        self.compile("net.so", "--cpu=x86-64-v3")
        self.assertEqual([row["kernel"] for row in tuning["kernels"]], sorted({row["name"] for row in self.kernels("net.so")}))
        self.assertEqual(tuning["level"], "x86-64-v3")
        self.assertEqual(tuning["model"], "net.onnx")
        self.assertTrue(all(row["planned_ns"] > 0 for row in tuning["kernels"]))
        self.assertIn("alternatives measured", text)

    def test_one_kernel_a_line(self):
        self.tune()
        lines = (self.folder / "net.tune.json").read_text().splitlines()
        self.assertEqual(sum('"kernel"' in line for line in lines), len(json.loads("\n".join(lines))["kernels"]))

    def test_threads(self):
        self.assertEqual(self.tune("--threads=1")[0]["threads"], 1)

    def test_standard_output(self):
        text = self.run_ptc("tune", self.model, "--dim", "n=2", "--budget=1", "-o", "-")
        self.assertIn("kernels", json.loads(text))

    def test_default_name(self):
        self.run_ptc("tune", self.model, "--budget=1")
        self.assertTrue((self.folder / "net.tune.json").exists())

    def test_free_dims_and_variants(self):
        """Kernels that the measured run does not come to have rows without a time."""
        text = self.run_ptc("tune", self.model, "--bucket=n=1,4", "--budget=1", "-o", "-")
        self.assertIn(0, [row["planned_ns"] for row in json.loads(text)["kernels"]])

    def test_nothing_to_tune(self):
        self.save("scalar", parse("scalar (float x) => (float y) { y = Relu(x) }"))
        text = self.run_ptc("tune", "scalar.onnx")
        self.assertIn("scalar.tune.json: 0 of 0 alternatives measured, none faster than what is planned", text)


class Replay(Case):
    tuned = None

    def edit(self, numbers, level="x86-64-v3", name="edited.json"):
        """A tuning with numbers for the kernels that each key is part of the name of; it is measured once."""
        Replay.tuned = Replay.tuned or json.dumps(self.tune("--cpu=x86-64-v3")[0])
        tuning = json.loads(Replay.tuned)
        tuning["level"] = level
        for row in tuning["kernels"]:
            row["numbers"] = next((value for key, value in numbers.items() if key in row["kernel"]), {})
        (self.folder / name).write_text(json.dumps(tuning))
        return name

    def test_same_bytes(self):
        file = self.edit({"conv": {"m_blocks": 2, "n_blocks": 1}})
        self.assertEqual(self.compile("a/net.so", "--tune-file", file), self.compile("b/net.so", "--tune-file", file))

    def test_numbers_change_kernels_and_not_results(self):
        planned = self.compile("net.so", "--cpu=x86-64-v3", "--fp=strict")
        for number, numbers in enumerate([{"tile_rows": 1, "tile_panels": 1}, {"tile_rows": 2, "tile_panels": 3}, {"m_blocks": 7, "n_blocks": 3}, {"k_blocks": 5}, {"prefetch": 0}]):
            file = self.edit({"conv": numbers, "gemm": numbers}, name=f"{number}.json")
            tuned = self.compile(f"tuned{number}.so", "--cpu=x86-64-v3", "--fp=strict", "--tune-file", file)
            self.assertNotEqual(planned, tuned, numbers)
            self.check(f"tuned{number}.so")

    def test_tiles_count_at_the_level_that_was_measured(self):
        file = self.edit({"conv": {"tile_rows": 1, "tile_panels": 1}})
        code = lambda: {(row["name"], level): size for row in self.kernels("net.so") for level, size in row["code_bytes"].items()}
        self.compile("net.so", "--cpu=x86-64-v2,x86-64-v3")
        planned = code()
        self.compile("net.so", "--cpu=x86-64-v2,x86-64-v3", "--tune-file", file)
        changed = {level for (name, level), size in code().items() if size != planned[name, level]}
        self.assertEqual(changed, {"x86-64-v3"})

    def test_numbers_out_of_range(self):
        for rows, panels in ((99, -3), (0, 0), (-(2**63), 2**63 - 1)):
            file = self.edit({"conv": {"tile_rows": rows, "tile_panels": panels, "m_blocks": 10**12, "n_blocks": 0, "k_blocks": 10**12}})
            self.compile("net.so", "--cpu=x86-64-v3", "--fp=strict", "--tune-file", file)
            self.check("net.so")

    def test_depfile(self):
        file = self.edit({})
        self.compile("net.so", "--tune-file", file, "-MD")
        self.assertIn(file, (self.folder / "net.d").read_text())

    def test_output_does_not_take_the_files_place(self):
        file = self.edit({})
        before = (self.folder / file).read_bytes()
        self.run_ptc("compile", self.model, "--tune-file", file, "-o", "net.so", "--emit=so,json", "--stats", file, code=2)
        self.assertEqual((self.folder / file).read_bytes(), before)

    def test_other_model_is_a_warning(self):
        file = self.edit({})
        self.save("other", parse("other (float[n, 8] x) => (float[n, 8] y) { y = MatMul(x, w) }", w=normal(8, 8)))
        done = subprocess.run([self.program, "compile", "other.onnx", "--tune-file", file], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0)
        self.assertIn("warning: 1 of 1 kernels are not in it", done.stderr)
        self.assertIn("ptc tune other.onnx", done.stderr)

    def test_unknown_number_is_a_warning(self):
        file = self.edit({"conv": {"tile_row": 2}})
        done = subprocess.run([self.program, "compile", self.model, "--cpu=x86-64-v3", "--tune-file", file], cwd=self.folder, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("warning: numbers that this ptc does not know are left out: tile_row\n", done.stderr)
        self.assertIn("help: those for cpu are m_blocks, ", done.stderr)

    def test_level_that_the_library_lacks(self):
        file = self.edit({})
        text = self.run_ptc("compile", self.model, "--cpu=x86-64-v4", "--tune-file", file, code=2)
        self.assertIn("was measured at level x86-64-v3, which is not in the library", text)

    def test_refused_files(self):
        (self.folder / "bad.json").write_text("{")
        (self.folder / "old.json").write_text('{"format": 0}')
        (self.folder / "list.json").write_text("[]")
        for file, code, said in [("absent.json", 6, "No such file"), ("bad.json", 2, "is not a tuning file"),
                                 ("old.json", 2, "format"), ("list.json", 2, "is not a tuning file")]:
            text = self.run_ptc("compile", self.model, "--tune-file", file, "-o", "net.so", code=code)
            self.assertIn(said, text)
            self.assertIn("ptc tune", text)
            self.assertFalse((self.folder / "net.so").exists())


class MaxAutotune(Case):
    def test_writes_a_file_that_replays(self):
        first = self.compile("a/net.so", "--mode=max-autotune", "-j2")
        self.assertTrue((self.folder / "a" / "net.tune.json").exists())
        self.check("a/net.so")
        again = self.compile("b/net.so", "--mode=max-autotune", "--tune-file=a/net.tune.json")
        self.assertEqual(first, again)
        self.assertFalse((self.folder / "b" / "net.tune.json").exists())

    def test_writes_the_file_that_it_is_given(self):
        self.compile("net.so", "--mode=max-autotune", "--tune-file=mine.json")
        self.assertIn("kernels", json.loads((self.folder / "mine.json").read_text()))

    def test_other_verbs_need_a_file(self):
        text = self.run_ptc("verify", self.model, "--mode=max-autotune", code=2)
        self.assertIn("--mode=max-autotune needs a --tune-file here", text)


class Refused(Case):
    def test_budgets(self):
        for budget in ("soon", "-1", "0", "99d", "25h"):
            self.assertIn("is no time", self.run_ptc("tune", self.model, f"--budget={budget}", code=2))

    def test_models(self):
        old = self.folder / "net.tune.json"
        old.write_text("mine")
        (self.folder / "net.onnx").write_bytes(b"no model")
        self.run_ptc("tune", self.model, code=3)
        self.run_ptc("tune", "absent.onnx", "-o", "net.tune.json", code=6)
        self.assertEqual(old.read_text(), "mine")

    def test_folder_that_is_not_there(self):
        """Told before anything is measured."""
        begin = time.monotonic()
        self.run_ptc("tune", self.model, "--budget=1h", "-o", "absent/net.json", code=6)
        self.run_ptc("compile", self.model, "--mode=max-autotune", "-o", "absent/net.so", code=6)
        self.run_ptc("tune", self.model, "--budget=1h", "-o", self.model, code=2)
        self.assertLess(time.monotonic() - begin, 30)

    def test_interrupted(self):
        """What was there stays, and nothing else does."""
        place, old = self.folder / "place", self.folder / "net.tune.json"
        place.mkdir()
        old.write_text("mine")
        before = sorted(self.folder.iterdir())
        tuning = subprocess.Popen([self.program, "tune", self.model, "--budget=1h"], cwd=self.folder, env=os.environ | {"TMPDIR": str(place)},
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while not list(place.glob("*/*.so")) and tuning.poll() is None:
            time.sleep(0.01)
        tuning.send_signal(signal.SIGINT)
        self.assertEqual(tuning.wait(), -signal.SIGINT)
        self.assertEqual(old.read_text(), "mine")
        self.assertEqual(sorted(self.folder.iterdir()), before)
        self.assertEqual(list(place.iterdir()), [])

    def test_flags_that_say_nothing_here(self):
        for flag in ("--mode=default", "--tune-file=x.json"):
            self.run_ptc("tune", self.model, flag, code=2)

    def test_other_machines_are_not_timed_here(self):
        text = self.run_ptc("tune", self.model, "--cpu=aarch64", code=5)
        self.assertIn("kernels are timed on this machine, which does not run what --cpu names", text)
        self.assertNotIn(".so", text)


if __name__ == "__main__":
    sys.exit(unittests.run_class(Case, __doc__, apart=unittests.NOTHING))
