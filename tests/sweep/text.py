"""Strings, and conversions from and to them."""

import re

import numpy as np

from case import EXACT, Rule
from draw import STRING, TYPES, is_float, is_string, onnx_type
from movement import constant
from rows import case, row


def _each(function, kind=object):
    return lambda v, *_: np.array([function(text) for text in v.ravel()], kind).reshape(v.shape)


@row("StringConcat")
def string_concat(d):
    a, b = d.broadcast(2)
    return case(d, [d.values(STRING, a), d.values(STRING, b)], oracle=lambda x, y: np.asarray(x + y, object), results=((STRING, max(len(a), len(b))),))


@row("StringSplit")
def string_split(d):
    shape, delimiter = d.shape(1, 2, most=12, zero=0), d.choice(["", " ", "a", ",", "日"])
    limit = d.choice([None, 0, 1, 2])
    x = d.values(STRING, shape)
    attributes = {} if not delimiter and d.often(0.5) else {"delimiter": delimiter}
    if limit is not None:
        attributes["maxsplit"] = limit

    def pieces(text):
        cuts = -1 if limit is None else limit
        return text.split(delimiter, cuts) if delimiter else text.split(None, cuts)

    def oracle(v):
        rows = [pieces(text) for text in v.ravel()]
        width = max(map(len, rows), default=0)
        return [np.array([row + [""] * (width - len(row)) for row in rows], object).reshape(*v.shape, width), np.array([len(row) for row in rows], np.int64).reshape(v.shape)]

    if not delimiter and any(text.endswith((" ", "\t")) and limit is not None for text in x.ravel()):
        return None  # whether the rest keeps its white space
    return case(d, [x], attributes, outputs=2, oracle=oracle, results=((STRING, len(shape) + 1), (np.int64, len(shape))))


PATTERNS = ["a*", "[a-z]+", "(cat|dog)", ".*", r"\d+", "[^a]*", "(a|b)?", "x y", "D.g", ".", "[[:alpha:]]+"]


@row("RegexFullMatch")
def regex(d):
    x, pattern = d.values(STRING, d.shape(0, 3, most=60)), d.choice(PATTERNS[:-1])
    # A dot matches no line break in RE2 as in Python; `\d` means ASCII there.
    return case(d, [x], {"pattern": pattern}, oracle=_each(lambda text: re.fullmatch(pattern, text, re.ASCII) is not None, bool), results=((np.bool_, x.ndim),))


@row("StringNormalizer")
def normalizer(d):
    count = d.integer(1, 9)
    action, stops, exact = d.choice(["NONE", "LOWER", "UPPER"]), [d.word() for _ in range(d.integer(0, 3))], d.integer(0, 1)
    plain = [c for c in ("", "a", "b", "cat", "dog", "Dog", "x y", "ABC")]  # other letters' cases are a locale's
    x = np.array([d.choice(plain) for _ in range(count)], STRING)
    stops = [d.choice(plain) for _ in stops]
    attributes = {"case_change_action": action, "is_case_sensitive": exact} | ({"stopwords": stops} if stops else {})
    rank = d.integer(1, 2)

    def oracle(v):
        same = (lambda a, b: a == b) if exact else (lambda a, b: a.lower() == b.lower())
        kept = [text for text in v.ravel() if not any(same(text, stop) for stop in stops)] or [""]
        out = [text.lower() if action == "LOWER" else text.upper() if action == "UPPER" else text for text in kept]
        return np.array(out, object).reshape([1] * (v.ndim - 1) + [-1])

    return case(d, [x.reshape([1] * (rank - 1) + [-1])], attributes, oracle=oracle, results=((STRING, rank),))


@row("TfIdfVectorizer")
def n_grams(d):
    is_text = d.often(0.5)
    words = ["a", "b", "cat", "", "über"] if is_text else list(range(5))
    draw = lambda count: [words[i] for i in d.rng.integers(0, len(words), count)]
    longest = d.integer(1, 3)
    grams, starts, pool = [], [], []
    for length in range(1, longest + 1):
        starts.append(len(pool))
        for gram in {tuple(draw(length)) for _ in range(d.integer(1, 3))}:
            grams.append(gram)
            pool += gram
    columns = [int(i) for i in d.rng.permutation(len(grams))]
    rows, width = d.choice([None, 1, 2, 3]), d.integer(1, 9)
    x = np.array(draw((rows or 1) * width), object if is_text else np.dtype(d.choice(["int32", "int64"]))).reshape([width] if rows is None else [rows, width])
    shortest = d.integer(1, longest)
    skips, mode = d.integer(0, 2), d.choice(["TF", "IDF", "TFIDF"])
    weights = [d.number(0.5, 2) for _ in grams]
    attributes = {"mode": mode, "min_gram_length": shortest, "max_gram_length": longest, "max_skip_count": skips, "ngram_counts": starts,
                  "ngram_indexes": columns, "pool_strings" if is_text else "pool_int64s": pool}
    if d.often(0.5):
        attributes["weights"] = weights
    return case(d, [x], attributes, rule=Rule(ulp=1), results=((np.float32, x.ndim),), avoid="reference")


# ---- Cast ------------------------------------------------------------------------------------------------------------


def text_cast(d, source, target):
    """To strings: what onnxruntime writes and the reference evaluator write differs in format, so a number must read back as
    the same; from strings: every notation that the specification names."""
    like = d.operator == "CastLike"
    build = lambda x, **more: case(d, [x, d.values(target, [2])] if like else [x], {} if like else {"to": onnx_type(target)}, **more)
    shape = d.shape(0, 3, most=60)
    if is_string(source) and is_string(target):
        return build(d.values(STRING, shape), oracle=lambda v, *_: v)
    if is_string(target):
        return None  # tests/cli and tests/conformance: the text of a number has many forms
    if source != STRING or target == np.bool_ or target.kind == "V":
        return None
    count = int(np.prod(shape))
    if is_float(target):
        numbers = d.values(np.float64, [count], "tame")
        forms = [repr, lambda v: f"{v:.3e}", lambda v: f"{v:E}", lambda v: str(int(v)), lambda v: f"{v:+.4f}", lambda v: d.choice(["NaN", "INF", "-INF", "+INF", "nan", "inf"]),
                 lambda v: f"{int(v)}.", lambda v: "1e-5", lambda v: "1E8"]
        texts = [d.choice(forms)(float(v)) for v in numbers]
        return build(np.array(texts, STRING).reshape(shape), oracle=_each(float, target), rule=EXACT)
    low, high = (-9, 99) if target.kind == "i" else (0, 99)
    edges = [str(np.iinfo(target).min), str(np.iinfo(target).max), "0", "-0" if target.kind == "i" else "0"]
    texts = [d.choice(edges) if d.often(0.3) else str(d.integer(low, high)) for _ in range(count)]
    return build(np.array(texts, STRING).reshape(shape), oracle=_each(int, target))
