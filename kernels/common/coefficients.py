"""Computes the polynomial coefficients in vmath.h: python3 coefficients.py (needs numpy) prints them.

Each is fitted to its function in the largest error, the errors weighed by what an ULP of the result is worth (least squares,
reweighted until the error is level: Lawson's method). The coefficients are rounded to float32 one by one, the most
important first, and those that remain are fitted again to what is left, so that rounding costs next to nothing."""
import math

import numpy as np


def fit(powers, target, weight, low, high, points=4000, rounds=60):
    """Coefficients of x**p for p in powers, float32, most important (lowest power) first."""
    nodes = np.cos(np.pi * (np.arange(points) + 0.5) / points)
    x = (low + high) / 2 + (high - low) / 2 * nodes
    y = np.array([target(v) for v in x])
    w = np.array([weight(v) for v in x])
    found = []
    for k in range(len(powers)):
        basis = np.stack([x**p for p in powers[k:]], axis=1) * w[:, None]
        left = (y - sum((c * x**p for c, p in zip(found, powers)), np.zeros_like(x))) * w
        scale = np.abs(basis).max(axis=0)
        lawson = np.ones_like(x)
        for _ in range(rounds):
            root = np.sqrt(lawson)
            c = np.linalg.lstsq(basis / scale * root[:, None], left * root, rcond=None)[0] / scale
            error = np.abs(left - basis @ c)
            lawson *= error / error.max() + 1e-3
            lawson /= lawson.sum()
        found.append(float(np.float32(c[0])))
    error = np.abs(y - sum(c * x**p for c, p in zip(found, powers))) * w
    return found, error.max()


def series_tail(x, first, term):
    """Σ term(k) x**k from k = first: what a difference of nearly equal numbers would lose."""
    return math.fsum(term(k) * x**k for k in range(first, first + 40))


def normal_tail(v):
    """u · exp(u²/2) · Φ(-u) where v = 1/u²; from u = 20 on by its asymptotic series."""
    if v < 1 / 400:
        return (1 - v * (1 - 3 * v * (1 - 5 * v * (1 - 7 * v)))) / math.sqrt(2 * math.pi)
    u = 1 / math.sqrt(v)
    return u * math.erfc(u / math.sqrt(2)) * math.exp(u * u / 2) / 2


def tanh_tail(s):
    """(tanh(√s)/√s - 1)/s, by tanh's continued fraction so that small s keeps its digits."""
    f = 0.0
    for k in range(41, 3, -2):
        f = s / (k + f)
    return -1 / (3 + f) / (1 + s / (3 + f))


LN2 = math.log(2)
SETS = {
    "EXP2: 2^r = 1 + r · P(r)": (
        range(6), lambda r: LN2 * series_tail(r * LN2, 0, lambda k: 1 / math.factorial(k + 1)), lambda r: abs(r) / 2**r, -0.5001, 0.5001),
    "TANH: tanh(x) = x + x³ · P(x²)": (
        range(6), tanh_tail, lambda s: s, 0, 0.625**2),
    "NORMAL_TAIL: u · exp(u²/2) · Φ(-u) = P(1/u²)": (
        range(7), normal_tail, lambda v: 1 / normal_tail(v), 0, 1 / 3.99**2),
}


# Four pieces, by the integer nearest to 7/8 u, with their centers: towards the upper end where the function falls steeply,
# so that terms have one sign, and of those one whose coefficients lose little when they are rounded; the first is 0, and the function
# u · P(u) there.
ENDS = [0, 4 / 7, 12 / 7, 20 / 7, 4]
PIECES = {
    "GELU_TAIL: u · Φ(-u)": (lambda u: u * math.erfc(u / math.sqrt(2)) / 2, [0, 1.5, 2.625, 4]),
    "ERF: erf(u), u less in the first piece": (lambda u: math.erf(u) - (u if u < 4 / 7 else 0), [0, 1.125, 2.25, 3.5]),
}


def piece(function, degree, center, low, high):
    """As fit, of function(center + y); beyond the ends by what rounding may do there."""
    beyond = 1e-6
    if center:
        return fit(range(degree + 1), lambda y: function(center + y), lambda y: 1 / function(center + y), low - center, high - center - beyond, 600)
    found, error = fit(range(degree), lambda y: function(y) / y, lambda y: y / function(y), beyond, high - beyond, 600)
    return [0.0, *found], error


if __name__ == "__main__":
    for name, (powers, *rest) in SETS.items():
        found, error = fit(list(powers), *rest)
        print(f"{name}; largest error 2^{math.log2(error):.1f} of the result")
        print("    " + ", ".join(f"{c.hex()}f" for c in found))
    for name, (function, centers) in PIECES.items():
        found, errors = zip(*(piece(function, 9, *where) for where in zip(centers, ENDS, ENDS[1:])))
        print(f"{name}; largest error 2^{math.log2(max(errors)):.1f} of the result")
        for row in [centers, *zip(*found)]:
            print("    {" + ", ".join(f"{float(c).hex()}f" for c in row) + "},")
