"""Line charts as plain SVG, legible on light and on dark pages."""

import math
from html import escape

WIDTH, HEIGHT = 840, 400
LEFT, RIGHT, TOP, BOTTOM = 70, 290, 34, 52

# Each reads on white and on near-black.
COLOURS = ["#d9480f", "#e67700", "#c2255c", "#1c7ed6", "#0c8599", "#5c7cfa", "#2b8a3e", "#74b816", "#868e96"]

STYLE = """
text { font: 13px system-ui, sans-serif; fill: #24292f } .note, .tick { font-size: 11px; fill: #57606a }
.title { font-weight: 600 } .axis { stroke: #57606a } .grid { stroke: #d0d7de }
.mark { stroke: #57606a; stroke-dasharray: 2 4 } .line { fill: none; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .note, .tick { fill: #9da7b3 }
.axis { stroke: #9da7b3 } .grid { stroke: #30363d } .mark { stroke: #9da7b3 }
}
"""


class Scale:
    """From values to pixels; on a logarithmic one ticks are at 1, 2, 5 times powers of ten."""

    def __init__(self, low, high, begin, end, logarithmic):
        self.low, self.high, self.begin, self.end, self.logarithmic = low, high, begin, end, logarithmic

    def __call__(self, value):
        low, high, value = self.low, self.high, min(max(value, -1e12), 1e12)
        if self.logarithmic:
            low, high, value = math.log10(low), math.log10(high), math.log10(max(value, 1e-12))
        return self.begin + (value - low) / (high - low) * (self.end - self.begin)

    def ticks(self):
        if not self.logarithmic:
            step = 10 ** (math.floor(math.log10(self.high - self.low)) - 1)
            step = next(step * part for part in (1, 2, 5, 10, 20) if (self.high - self.low) / (step * part) <= 6)
            first = math.ceil(self.low / step)
            return [step * i for i in range(first, math.floor(self.high / step * (1 + 1e-12)) + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 2, 5) if len(powers) <= 4 else (1,)
        return [step * 10.0**p for p in powers for step in steps if self.low <= step * 10.0**p <= self.high]


class Line:
    def __init__(self, name, points, colour, bold=False, dots=False):
        self.name, self.points, self.colour, self.bold, self.dots = name, points, colour, bold, dots


def draw(title, lines, x, y, x_label, y_label, marks=()):
    """`x` and `y` are (low, high, logarithmic); `marks` are (y value, words) of horizontal lines."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    across, down = Scale(x[0], x[1], LEFT, right, x[2]), Scale(y[0], y[1], bottom, TOP, y[2])
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<clipPath id="inside"><rect x="{LEFT}" y="{TOP}" width="{right - LEFT}" height="{bottom - TOP}"/></clipPath>',
        text(LEFT, 20, title, "title"),
    ]
    for value in across.ticks():
        at = across(value)
        parts.append(rule(at, TOP, at, bottom, "grid") + text(at, bottom + 17, f"{value:g}", "tick", "middle"))
    for value in down.ticks():
        at = down(value)
        parts.append(rule(LEFT, at, right, at, "grid") + text(LEFT - 7, at + 4, f"{value:.4g}", "tick", "end"))
    parts += [rule(LEFT, bottom, right, bottom, "axis"), rule(LEFT, TOP, LEFT, bottom, "axis")]
    for value, words in marks:
        at = down(value)
        parts.append(rule(LEFT, at, right, at, "mark") + text(LEFT + 6, at - 4, words, "note"))
    parts.append(text((LEFT + right) / 2, HEIGHT - 14, x_label, anchor="middle"))
    middle = (TOP + bottom) / 2
    parts.append(f'<g transform="rotate(-90 16 {middle})">{text(16, middle, y_label, anchor="middle")}</g>')
    for number, line in enumerate(lines):
        places = [(across(a), down(b)) for a, b in line.points]
        path = " ".join(f"{a:.1f},{b:.1f}" for a, b in places)
        stroke = f'stroke="{line.colour}" stroke-width="{3 if line.bold else 1.6}"'
        parts.append(f'<polyline class="line" clip-path="url(#inside)" {stroke} points="{path}"/>')
        if line.dots:
            parts += [f'<circle cx="{a:.1f}" cy="{b:.1f}" r="3" fill="{line.colour}"/>' for a, b in places]
        at = TOP + 10 + 20 * number
        parts.append(f'<path d="M{right + 14} {at} h22" {stroke}/>' + text(right + 42, at + 4, line.name))
    return "\n".join([*parts, "</svg>"]) + "\n"


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(words)}</text>'


def rule(x1, y1, x2, y2, kind):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'
