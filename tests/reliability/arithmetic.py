"""The arithmetic of the figures, apart from how they are measured."""
import collections
import math
import statistics

import numpy as np


def percentile(values, percent: float) -> float:
    """The smallest value that `percent` of all do not exceed."""
    if not values:
        raise ValueError("no values")
    ordered = sorted(values)
    return ordered[max(1, math.ceil(percent / 100 * len(ordered))) - 1]


def slope(xs, ys) -> float:
    """The slope of the line through the points that has the least squares."""
    return float(np.polyfit(np.asarray(xs, float), np.asarray(ys, float), 1)[0])


def median_ratio(pairs) -> float:
    """The median of the ratios of rounds, each a pair of what took turns."""
    return statistics.median(value / base for value, base in pairs)


def slices_waited(p99: float, own: float, one_slice: float) -> float:
    """How many slices of another call a small call waited for, beyond its own service time; all in seconds."""
    return max(0.0, p99 - own) / one_slice


def lost_calls(answered: int, ends: list) -> int:
    """The calls that servers accepted and callers got no answer to. answered: requests that servers answered with OK;
    ends: for each group of callers a Counter of (code, reason). UNAVAILABLE says that a call may be tried again: it was
    refused, or its connection was closed before. Of the others, each good answer that left has to arrive."""
    codes = collections.Counter()
    for group in ends:
        for (code, _), times in group.items():
            codes[code] += times
    failed = sum(codes.values()) - codes["OK"] - codes["UNAVAILABLE"]
    return failed + max(0, answered - codes["OK"])


def sum_of_series(text: str, name: str, **labels) -> float:
    """The sum over the series of a metric, in the text format of Prometheus, that have all these labels."""
    total = 0.0
    for line in text.splitlines():
        head, _, value = line.rpartition(" ")
        metric, _, rest = head.partition("{")
        if metric == name and all(f'{label}="{wanted}"' in rest for label, wanted in labels.items()):
            total += float(value)
    return total


def cost_share(rows, parts) -> float:
    """The share of the samples whose symbol or library contains one of `parts`. rows: (percent, text)."""
    total = sum(percent for percent, _ in rows)
    return sum(percent for percent, text in rows if any(part in text for part in parts)) / total if total else 0.0
