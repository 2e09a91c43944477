"""Charts as inline SVG. Colours come from the page's style sheet: classes s0, s1, … of a series."""
import html
import math

WIDTH, LABELS, BAR, GAP = 860, 250, 18, 6


def _text(x: float, y: float, value: str, anchor: str = "start", css: str = "") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{css}">{html.escape(value)}</text>'


def _svg(height: float, body: list, title: str) -> str:
    return (f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{html.escape(title)}">'
            f'{"".join(body)}</svg>')


def bars(title: str, rows: list, mark: float | None = None) -> str:
    """Horizontal bars. rows: (label, value, text, series); `mark`: a line at this value."""
    most = max([value for _, value, _, _ in rows] + [mark or 0]) or 1
    scale = (WIDTH - LABELS - 130) / most
    height = len(rows) * (BAR + GAP) + GAP
    body = []
    for i, (label, value, text, series) in enumerate(rows):
        y = GAP + i * (BAR + GAP)
        body.append(_text(LABELS - 8, y + 13, label, "end"))
        body.append(f'<rect x="{LABELS}" y="{y}" width="{value * scale:.1f}" height="{BAR}" class="s{series}"/>')
        body.append(_text(LABELS + value * scale + 6, y + 13, text))
    if mark is not None:
        x = LABELS + mark * scale
        body.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height}" class="mark"/>')
    return _svg(height, body, title)


def stacked(title: str, names: list, rows: list, unit: str) -> str:
    """Bars of parts, all on one scale. rows: (label, (value, solid share of it) in the order of `names`); the rest of a
    part is pale."""
    width = WIDTH - LABELS - 90
    scale = width / max(sum(value for value, _ in parts) for _, parts in rows)
    body = []
    for i, name in enumerate(names):
        x = LABELS + i * (WIDTH - LABELS) / len(names)
        body.append(f'<rect x="{x:.1f}" y="4" width="11" height="11" class="s{i}"/>')
        body.append(_text(x + 15, 14, name))
    for row, (label, parts) in enumerate(rows):
        y, x, total = 24 + row * (BAR + GAP), float(LABELS), sum(value for value, _ in parts)
        body.append(_text(LABELS - 8, y + 13, label, "end"))
        for i, (value, solid) in enumerate(parts):
            part = scale * value
            for css, wide in ((f"s{i} pale", part), (f"s{i}", part * min(1, solid))):
                body.append(f'<rect x="{x:.1f}" y="{y}" width="{wide:.1f}" height="{BAR}" class="{css}"/>')
            if wide > 34:
                body.append(_text(x + wide / 2, y + 13, f"{100 * value / total:.0f} %", "middle", "inside"))
            x += part
        body.append(_text(x + 6, y + 13, f"{total:.3g} {unit}"))
    return _svg(24 + len(rows) * (BAR + GAP) + GAP, body, title)


def scatter(title: str, points: list, x_name: str, y_name: str) -> str:
    """A scatter plot. points: (x, y), both from 0 and in the same unit, with the diagonal on which they should lie."""
    left, size = 60, 340
    most = max(max(x, y) for x, y in points) * 1.05
    body = [f'<rect x="{left}" y="10" width="{size}" height="{size}" class="frame"/>',
            f'<line x1="{left}" y1="{10 + size}" x2="{left + size}" y2="10" class="mark"/>']
    for x, y in points:
        across, down = left + size * x / most, 10 + size * (1 - y / most)
        body.append(f'<circle cx="{across:.1f}" cy="{down:.1f}" r="4" class="s0"/>')
    for step in range(5):
        value = most * step / 4
        body.append(_text(left + size * step / 4, size + 26, f"{value:.0f}", "middle"))
        body.append(_text(left - 6, 14 + size * (1 - step / 4), f"{value:.0f}", "end"))
    body.append(_text(left + size / 2, size + 44, x_name, "middle"))
    body.append(_text(left + size + 10, 20, y_name))
    return _svg(size + 52, body, title)


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten."""
    power = 10 ** math.floor(math.log10(least))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def curves(title: str, rows: list, x_name: str, y_name: str) -> str:
    """Curves over a logarithmic y. rows: (label, points (x, y)), in the order of the series' colours."""
    left, top, width, height = 60, 28, WIDTH - 60 - 190, 300
    xs, ys = zip(*(point for _, points in rows for point in points))
    low, high = math.floor(math.log10(min(ys))), math.ceil(math.log10(max(ys)))
    high = max(high, low + 1)

    def place(x: float, y: float) -> tuple:
        return left + width * x / (max(xs) * 1.05), top + height * (high - math.log10(y)) / (high - low)

    body = [f'<rect x="{left}" y="{top}" width="{width}" height="{height}" class="frame"/>', _text(left, 16, y_name)]
    for exponent in range(low, high + 1):
        y = place(0, 10 ** exponent)[1]
        body.append(f'<line x1="{left}" x2="{left + width}" y1="{y:.1f}" y2="{y:.1f}" class="mark"/>')
        body.append(_text(left - 6, y + 4, f"{10 ** exponent:g}", "end"))
    tick = _round_step(max(xs) / 6)
    for step in range(math.floor(max(xs) * 1.05 / tick) + 1):
        body.append(_text(place(step * tick, ys[0])[0], top + height + 18, f"{step * tick:g}", "middle"))
    body.append(_text(left + width / 2, top + height + 36, x_name, "middle"))
    for i, (label, points) in enumerate(rows):
        placed = [place(x, y) for x, y in points]
        body.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in placed)}" class="s{i}"/>')
        body += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" class="s{i}"/>' for x, y in placed]
        body.append(f'<circle cx="{left + width + 18}" cy="{top + 12 + 22 * i}" r="4.5" class="s{i}"/>')
        body.append(_text(left + width + 28, top + 16 + 22 * i, label))
    return _svg(top + height + 46, body, title)
