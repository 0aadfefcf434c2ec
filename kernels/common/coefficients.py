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


def normal_tail(s):
    """exp(u²/2) · Φ(-u) · (u + 2.5) where s = u / (u + 2.5)."""
    u = 2.5 * s / (1 - s)
    return math.erfc(u / math.sqrt(2)) * math.exp(u * u / 2) / 2 * (u + 2.5)


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
    "NORMAL_TAIL: exp(u²/2) · Φ(-u) = P(u / (u + 2.5)) / (u + 2.5)": (
        range(10), normal_tail, lambda s: 1 / normal_tail(s), 0, 20 / 22.5),
}

if __name__ == "__main__":
    for name, (powers, *rest) in SETS.items():
        found, error = fit(list(powers), *rest)
        print(f"{name}; largest error 2^{math.log2(error):.1f} of the result")
        print("    " + ", ".join(f"{c.hex()}f" for c in found))
