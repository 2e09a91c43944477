"""The arithmetic of the figures, apart from how they are measured."""
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


def is_lost(code: str, details: str, reason: str | None) -> bool:
    """Whether a call without retries failed after a server had accepted it. A refusal names its reason in a trailer; a
    call that found no server says so, and so does one that came after what a connection still takes (GOAWAY). Any other
    failure might be of an accepted call."""
    if code == "OK":
        return False
    never_sent = ("failed to connect to all addresses", "Connection refused", "GOAWAY received")
    return not (code == "UNAVAILABLE" and (reason == "draining" or any(text in details for text in never_sent)))


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
