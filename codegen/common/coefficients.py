"""Minimax coefficients of codegen/common/ElementaryCoefficients.h.

Prints the header. Each polynomial is fitted by the Remez exchange in 60-digit arithmetic (mpmath): the exchange finds
P with  w(x) * (P(x) - g(x))  equioscillating, where g is what remains of the function after the terms that are kept
exact and w turns the error into one relative to the function. Coefficients are then rounded to the format one by one
from the lowest power up; after each rounding the rest is fitted again, so that later coefficients absorb the rounding.
Use: python3 coefficients.py > ElementaryCoefficients.h   (needs mpmath)
"""
import struct
import sys

from mpmath import mp, mpf

mp.dps = 60


def roundTo(x, bits):
    """x rounded to a significand of `bits` bits (exponents here are never extreme)."""
    if x == 0:
        return mpf(0)
    m, e = mp.frexp(x)
    return mp.ldexp(mp.nint(mp.ldexp(m, bits)), int(e) - bits)


def extrema(err, lo, hi, count):
    """Points of alternating local extrema of err on [lo, hi]."""
    n = 40 * count
    xs = [lo + (hi - lo) * (1 - mp.cos(mp.pi * i / n)) / 2 for i in range(n + 1)]
    es = [err(x) for x in xs]
    points = []
    for i in range(n + 1):
        left = i == 0 or abs(es[i]) >= abs(es[i - 1]) or es[i] * es[i - 1] < 0
        right = i == n or abs(es[i]) > abs(es[i + 1]) or es[i] * es[i + 1] < 0
        if left and right:
            points.append((xs[i], es[i]))
    runs = []  # one extremum (the largest) per run of equal signs
    for x, e in points:
        if runs and (runs[-1][1] > 0) == (e > 0):
            if abs(e) > abs(runs[-1][1]):
                runs[-1] = (x, e)
        else:
            runs.append((x, e))
    while len(runs) > count:
        runs.pop(0 if abs(runs[0][1]) < abs(runs[-1][1]) else -1)
    return [x for x, _ in runs]


def remez(g, w, lo, hi, powers):
    """Coefficients of sum c_k x^powers[k] minimising max |w (P - g)|."""
    n = len(powers)
    xs = [lo + (hi - lo) * (1 - mp.cos(mp.pi * (2 * i + 1) / (2 * n + 2))) / 2 for i in range(n + 1)]
    coefs, last = None, None
    for _ in range(30):
        a, b = mp.matrix(n + 1, n + 1), mp.matrix(n + 1, 1)
        for i, x in enumerate(xs):
            for j, p in enumerate(powers):
                a[i, j] = x**p
            a[i, n] = (-1) ** i / w(x)
            b[i] = g(x)
        s = mp.lu_solve(a, b)
        coefs, level = list(s[:n]), abs(s[n])
        err = lambda x: w(x) * (sum(c * x**p for c, p in zip(coefs, powers)) - g(x))
        new = extrema(err, lo, hi, n + 1)
        if len(new) != n + 1 or (last is not None and abs(level - last) < level * mpf("1e-4")):
            break
        xs, last = new, level
    return coefs


def fit(g, w, lo, hi, degree, bits):
    """Rounded coefficients of P and the final weighted error."""
    lo, hi = mpf(lo), mpf(hi)
    powers = list(range(degree + 1))
    coefs = [roundTo(c, bits) for c in remez(g, w, lo, hi, powers)]
    err = lambda x: w(x) * (sum(c * x**p for c, p in zip(coefs, powers)) - g(x))
    worst = max(abs(err(lo + (hi - lo) * i / 1000)) for i in range(1001))
    return coefs, worst


TINY = mpf(10) ** -10
LN2, SQRT2 = mp.log(2), mp.sqrt(2)


def near0(f, series):
    """f, replaced by its series where f cancels."""
    return lambda x: f(x) if abs(x) > TINY else series(x)


def ofSquare(f):
    return lambda z: f(mp.sqrt(z))


def erfInQuarters(degree):
    """Rows by power of the coefficients of P_k, and the largest error, in units of the last place of what is below 1.

    The last polynomial rises by 4/5 of such a unit beside erf, of which the rounding of its constant takes half away, so
    that it ends where the format rounds it to 1.
    """
    quarter, last, unit = mpf(".25"), 15, mpf(2) ** -24
    rows, worst = [], mpf(0)
    for k in range(last + 1):
        center = k * quarter
        if k == 0:  # odd, relative to erf, less r
            series = lambda z: (1 - z / 3) * 2 / mp.sqrt(mp.pi) - 1
            odds, error = fit(near0(ofSquare(lambda r: mp.erf(r) / r - 1), series), lambda z: mpf(1), 0, quarter**2 / 4, degree // 2, 24)
            coefs = [c for power in odds for c in (mpf(0), power)]
        else:
            rise = unit * 4 / 5 / quarter if k == last else 0
            g = lambda r, center=center, rise=rise: mp.erf(center + r) + rise * (r + quarter / 2)
            coefs, error = fit(g, lambda r: mpf(1), -quarter / 2, quarter / 2, degree, 24)
        rows.append(coefs)
        worst = max(worst, error / unit)
    return list(zip(*rows)), worst


def tanhInParts(degree):
    """Rows: centers of the parts, then by power the coefficients of P_k; and the largest error in units of the last place.

    Part k has the x of which 1 + x starts with the exponent and two bits of the significand that k counts, modulo 16. The
    first one's error is relative; the last one ends where the format rounds tanh to 1.
    """
    columns, worst = [[mpf(0)] * (degree + 2) for _ in range(16)], mpf(0)
    for part in range(14):
        low, width = mpf(4 + part % 4) / 4 * 2 ** (part // 4) - 1, mpf(2) ** (part // 4 - 2)
        center, unit = low + width / 2, mpf(2) ** -24 * (mpf(1) / 2 if low < mpf(1) / 2 else 1)
        if part == 0:  # x + x^2 Q(x)
            center = mpf(0)
            tail, error = fit(lambda r: (mp.tanh(r) / r - 1) / r, lambda r: r, mpf(1) / 4096, width, degree - 2, 24)
            coefs, unit = [mpf(0), mpf(1), *tail], mpf(2) ** -24
        elif part == 13:
            coefs, error = [mpf(1)] + [mpf(0)] * degree, mpf(0)
        else:
            coefs, error = fit(lambda r: mp.tanh(center + r), lambda r: mpf(1), -width / 2, width / 2, degree, 24)
        columns[(part + 12) % 16] = [center, *coefs]
        worst = max(worst, error / unit)
    return list(zip(*columns)), worst


def odd(f, linear, cubic, quintic, hi):
    """P with f(x) = linear x + x^3 P(x^2) on [0, hi], error relative to f."""
    g = near0(ofSquare(lambda x: (f(x) - linear * x) / x**3), lambda z: cubic + quintic * z)
    w = near0(ofSquare(lambda x: x**3 / f(x)), lambda z: z / linear + TINY)
    return g, w, 0, mpf(hi) ** 2


def atanhRatio(z):
    s = mp.sqrt(z)
    return mp.log((1 + s) / (1 - s)) / s


def table():
    """(name, formula, interval as text, (g, w, lo, hi), degree f32, degree f64); no degree: not used."""
    half = LN2 / 2 * mpf("1.0001")
    zLog = ((SQRT2 - 1) / (SQRT2 + 1) * mpf("1.0001")) ** 2
    zTrig = (mp.pi / 4) ** 2 * mpf("1.01")
    k = 2 / mp.sqrt(mp.pi)
    yield ("Exp", "exp(r) = 1 + r + r^2 P(r), relative to r", "|r| <= ln(2)/2",
           (near0(lambda r: (mp.expm1(r) - r) / r**2, lambda r: mpf(1) / 2 + r / 6),
            lambda r: abs(r) + TINY, -half, half), 4, 9)
    yield ("ExpSixteenth", "exp(r) = 1 + r + r^2 P(r)", "|r| <= ln(2)/32",
           (near0(lambda r: (mp.expm1(r) - r) / r**2, lambda r: mpf(1) / 2 + r / 6),
            lambda r: r**2 + TINY, -half / 16, half / 16), 1, None)
    yield ("Exp2", "2^r = 1 + r P(r)", "|r| <= 1/2",
           (near0(lambda r: (mpf(2)**r - 1) / r, lambda r: LN2 + r * LN2**2 / 2),
            lambda r: abs(r) * mpf(2)**-r + TINY, -mpf(".5001"), mpf(".5001")), 5, 10)
    yield ("LogPolynomial", "log(1+f) = f - f^2/2 + f^3 P(f)", "sqrt(1/2) <= 1+f <= sqrt(2)",
           (near0(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, lambda f: mpf(1) / 3 - f / 4),
            near0(lambda f: abs(f**3 / mp.log1p(f)), lambda f: TINY**2),
            1 / SQRT2 - 1, SQRT2 - 1), 8, None)
    yield ("Log1pOfUnit", "log(1+f) = f + f^2 P(f)", "0 <= f <= 1",
           (near0(lambda f: (mp.log1p(f) - f) / f**2, lambda f: f / 3 - mpf(1) / 2),
            near0(lambda f: f**2 / mp.log1p(f), lambda f: f + TINY), 0, 1), 8, None)
    yield ("LogRatio", "log((1+s)/(1-s)) = 2s + s^3 P(s^2)", "|s| <= 0.1716",
           (near0(lambda z: (atanhRatio(z) - 2) / z, lambda z: mpf(2) / 3 + 2 * z / 5),
            lambda z: z / 2 + TINY, 0, zLog), None, 6)
    yield ("LogTail", "log((1+s)/(1-s)) = 2s + 2/3 s^3 + s^5 P(s^2)", "|s| <= 0.1716",
           (lambda z: (atanhRatio(z) - 2 - 2 * z / 3) / z**2 if z > 1e-6
            else mpf(2) / 5 + 2 * z / 7 + 2 * z * z / 9 + 2 * z**3 / 11,
            lambda z: z**2 / 2 + TINY**2, 0, zLog), 2, 6)
    yield ("Sin", "sin(r) = r + r^3 P(r^2)", "|r| <= pi/4", odd(mp.sin, 1, -mpf(1) / 6, mpf(1) / 120, mp.sqrt(zTrig)), 2, 5)
    yield ("Cos", "cos(r) = 1 - r^2/2 + r^4 P(r^2)", "|r| <= pi/4",
           (lambda z: (mp.cos(mp.sqrt(z)) - 1 + z / 2) / z**2 if z > 1e-6 else mpf(1) / 24 - z / 720 + z * z / 40320,
            lambda z: z * z / mp.cos(mp.sqrt(z)) + TINY**2, 0, zTrig), 2, 5)
    yield ("Tan", "tan(r) = r + r^3 P(r^2)", "|r| <= pi/4", odd(mp.tan, 1, mpf(1) / 3, mpf(2) / 15, mp.sqrt(zTrig)), 6, 13)
    yield ("Asin", "asin(x) = x + x^3 P(x^2)", "|x| <= 1/2", odd(mp.asin, 1, mpf(1) / 6, mpf(3) / 40, ".5"), 4, 11)
    yield ("Atan", "atan(x) = x + x^3 P(x^2)", "|x| <= 1/2", odd(mp.atan, 1, -mpf(1) / 3, mpf(1) / 5, ".5"), 5, 12)
    yield ("Sinh", "sinh(x) = x + x^3 P(x^2)", "|x| <= 1", odd(mp.sinh, 1, mpf(1) / 6, mpf(1) / 120, 1), 3, 6)
    yield ("Tanh", "tanh(r) = r + r^3 P(r^2)", "|r| <= ln(2)/4", odd(mp.tanh, 1, -mpf(1) / 3, mpf(2) / 15, half / 2), 2, 6)
    yield ("Asinh", "asinh(x) = x + x^3 P(x^2)", "|x| <= 1/2", odd(mp.asinh, 1, -mpf(1) / 6, mpf(3) / 40, ".5"), 4, 11)
    yield ("Atanh", "atanh(x) = x + x^3 P(x^2)", "|x| <= 1/2", odd(mp.atanh, 1, mpf(1) / 3, mpf(1) / 5, ".5"), 5, 12)
    yield ("ErfSmall", "erf(x) = x + x P(x^2)", "|x| <= 1",
           (near0(ofSquare(lambda x: mp.erf(x) / x - 1), lambda z: k - 1 - k * z / 3),
            ofSquare(lambda x: x / mp.erf(x) if x > TINY else 1 / k), 0, 1), 6, 12)
    center, radius = mpf("2.46875"), mpf("1.46875")
    yield ("ErfTail", "erf(x) = 1 + P(x - 2.46875)", "1 <= x <= 3.9375",
           (lambda u: -mp.erfc(u + center), lambda u: mpf(1), -radius, radius), 12, None)
    # For values that are rounded to 16 bits: f16 has fewer digits below 2^-14, bf16 has all down to 2^-126.
    log2Erfc = lambda a: mp.log(mp.erfc(a), 2)
    yield ("ErfShort", "erf(x) = x P(x^2)", "|x| <= 1/2",
           (near0(ofSquare(lambda x: mp.erf(x) / x), lambda z: k - k * z / 3), ofSquare(lambda x: x / mp.erf(x) if x > TINY else 1 / k),
            0, mpf(".25")), 3, None)
    yield ("TanhShort", "tanh(x) = x + x^3 P(x^2)", "|x| <= 1/4", odd(mp.tanh, 1, -mpf(1) / 3, mpf(2) / 15, ".25"), 1, None)
    yield ("Log2ErfcShort", "log2(erfc(x)) = P(x), absolute, or relative to 2^-17 / erfc(x)", "0 <= x <= 4.3",
           (log2Erfc, lambda a: min(mpf(1), mp.erfc(a) * 2**17), 0, mpf("4.3")), 7, None)
    yield ("Log2ErfcLong", "log2(erfc(x)) = P(x), absolute", "0 <= x <= 9.5", (log2Erfc, lambda a: mpf(1), 0, mpf("9.5")), 9, None)
    for name, quarters, degree in (("FourthRoot", 1, 5), ("FourthRootCubed", 3, 6)):
        n = mpf(quarters) / 4
        yield (name, f"(1 - r)^(-{quarters}/4) = 1 + r P(r)", "|r| <= 0.173",
               (near0(lambda r, n=n: ((1 - r)**-n - 1) / r, lambda r, n=n: n + r * n * (n + 1) / 2), lambda r, n=n: abs(r) * (1 - r)**n + TINY,
                -mpf(".173"), mpf(".173")), degree, None)
    for name, pole, hi, d32, d64 in (("ErfcNear2", 2, "10.1", 9, None), ("ErfcNear4", 4, "27.4", None, 22)):
        x = lambda q, pole=pole: pole * (1 + q) / (1 - q)
        g = lambda q, x=x: (1 + 2 * x(q)) * mp.exp(x(q)**2) * mp.erfc(x(q)) - 1
        yield (name, f"(1 + 2x) exp(x^2) erfc(x) = 1 + P((x-{pole})/(x+{pole}))", f"0 <= x <= {hi}",
               (g, lambda q, g=g: 1 / (1 + g(q)), -1, (mpf(hi) - pole) / (mpf(hi) + pole)), d32, d64)


def lookUpTable(name, rows):
    """Lines of a table of f32 numbers."""
    out = [f"inline constexpr double {name}[{len(rows)}][{len(rows[0])}] = {{"]
    for row in rows:
        line = "    {"
        for c in row:
            v = f"{float(c):.9g},"
            if len(line) + len(v) > 115:
                out.append(line.rstrip())
                line = "     "
            line += v + " "
        out.append(line.rstrip(", ") + "},")
    return out + ["};", ""]


def main():
    out = ["//===- ElementaryCoefficients.h - generated by coefficients.py ------------===//",
           "//",
           "// Minimax polynomials (Remez exchange in 60 digits, then rounded to the format), lowest power first. The error",
           "// stated is that of the rounded polynomial evaluated exactly, relative to the function unless the formula says",
           "// otherwise.",
           "//",
           "//===----------------------------------------------------------------------===//",
           "#ifndef PTC_CODEGEN_COMMON_ELEMENTARYCOEFFICIENTS_H",
           "#define PTC_CODEGEN_COMMON_ELEMENTARYCOEFFICIENTS_H",
           "",
           "namespace ptc::codegen::coefficients {", ""]
    for name, formula, interval, problem, degree32, degree64 in table():
        out.append(f"// {formula}, {interval}.")
        for bits, degree, suffix in ((24, degree32, "F32"), (53, degree64, "F64")):
            if degree is None:
                continue
            coefs, worst = fit(*problem, degree, bits)
            values = [f"{float(c):.{9 if bits == 24 else 17}g}" for c in coefs]
            out.append(f"// {suffix}: degree {degree}, error 2^{float(mp.log(worst, 2)):.1f}.")
            out.append(f"inline constexpr double k{name}{suffix}[] = {{")
            line = "   "
            for v in values:
                if len(line) + len(v) > 76:
                    out.append(line)
                    line = "   "
                line += f" {v},"
            out += [line, "};"]
        out.append("")
    rows, worst = erfInQuarters(5)
    out += ["// erf(k/4 + r) = P_k(r), or r + P_0(r), |r| <= 1/8, 0 <= k <= 15; a row has the coefficients of one power, by k.",
            f"// F32: degree 5, error {float(worst):.2f} * 2^-24 before the sum that is rounded last."]
    out += lookUpTable("kErfQuartersF32", rows)
    rows, worst = tanhInParts(6)
    out += ["// tanh(c_k + r) = P_k(r); k are the lowest 4 of the first 11 bits of 1 + x. The first row has c_k, the others the",
            f"// coefficients of one power. F32: degree 6, error {float(worst):.2f} units of the last place before the sum that is rounded last."]
    out += lookUpTable("kTanhPartsF32", rows)
    out += ["} // namespace ptc::codegen::coefficients", "", "#endif // PTC_CODEGEN_COMMON_ELEMENTARYCOEFFICIENTS_H"]
    print("\n".join(out))


if __name__ == "__main__":
    main()
