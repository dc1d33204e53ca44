#!/usr/bin/env python3
"""What compare.py measured, as a table and a plot: report.py STEM.json writes STEM.md and STEM.svg beside it. Nothing but Python is needed.

The plot has a bar for each row, from 1 to the ratio on a logarithmic axis: won where the whole interval is above 1, lost where it is below,
even where 1 is in it. A dot is the share of the machine's limit."""
import html
import json
import math
import os
import re
import statistics
import sys

COLOURS = {"won": "#2a7f62", "even": "#9a9a9a", "lost": "#c0392b"}


def verdict(row):
    low, high = row["interval"]
    return "won" if low > 1 else "lost" if high < 1 else "even"


def speed(row):
    """Of ours, with its unit."""
    seconds = row["seconds"]["Tessera"]["median"]
    if row["limit"]["what"] == "copy":
        return row["bytes"] / seconds * 1e-9, "GB/s"
    return row["operations"] / seconds * 1e-9, "Gop/s"


def shape_text(row):
    shape = row["shape"]
    if "HW" in shape:  # of a window
        channels = f"{shape['C']} to {shape['O']}" if "O" in shape else f"{shape['C']}"
        stride = f"/{shape['stride']}" if shape["stride"] > 1 else ""
        words = [f"{shape['R']}×{shape['R']}{stride}, {channels}, {shape['batch']}×{shape['HW']}²"]
    else:
        words = [f"{name}={extent}" for name, extent in shape.items()]
        words += ["prepared"] if row["prepared"] else []
    if row["threads"] > 1:
        words = [row["kind"], *([row["dtype"]] if row["dtype"] != "f32" else []), *words]
    return " ".join(words)


def line(row):
    low, high = row["interval"]
    value, unit = speed(row)
    return (f"{row['name']:62} {value:8.1f} {unit:5} {100 * row['share']:4.0f} %   {row['ratio']:.2f} ({low:.2f}..{high:.2f}) "
            f"{row['best_peer']} {row['seconds'][row['best_peer']]['way']}")


def geomean(values):
    return statistics.geometric_mean(values) if values else math.nan


def groups_of(rows):
    """Rows by their group, in the order in which groups come."""
    groups = {}
    for row in rows:
        groups.setdefault(row["group"], []).append(row)
    return groups


def summary(rows):
    """Of rows: their number, the geometric means of ratio and share, the least ratio, and how many are won, even and lost."""
    ratios, verdicts = [row["ratio"] for row in rows], [verdict(row) for row in rows]
    return {"rows": len(rows), "ratio": geomean(ratios), "least": min(ratios, default=math.nan),
            "share": geomean([row["share"] for row in rows]), **{kind: verdicts.count(kind) for kind in COLOURS}}


def processor(report):
    machine = report["machine"]
    return f"{machine['processor']} ({machine['kind']}), {machine['architecture']}, {machine['threads']} threads"


def seconds_text(seconds):
    return f"{seconds * 1e6:.3g} us" if seconds < 1e-3 else f"{seconds * 1e3:.3g} ms"


def table(header, rows):
    return ["| " + " | ".join(header) + " |", "|" + "---|" * len(header), *("| " + " | ".join(row) + " |" for row in rows), ""]


def markdown(report, plot):
    """The page; `plot` is the file that it shows."""
    rows = report["rows"]
    lines = ["# Beside the peers", "", f"{processor(report)}. {'; '.join(' '.join(pair) for pair in report['versions'].items())}.", "",
             "`./tessera peers` made this page, one thread but for rows that say more. The ratio is the best peer's time by ours: above 1 the",
             "generated kernel is faster; its 95 % interval is of the median. The share is of the limit that binds a row, measured in the same",
             "turns: multiply-adds on registers, or a plain copy of as many bytes. A row is won or lost where the whole interval is on one side",
             "of 1.", "",
             f"![Ratios to the best peer]({plot})", ""]

    def numbers(name, some):
        s = summary(some)
        return [name, str(s["rows"]), f"{s['ratio']:.2f}", f"{s['least']:.2f}", f"{100 * s['share']:.0f} %", *(str(s[kind]) for kind in COLOURS)]
    lines += ["## In short", ""]
    totals = [numbers(name, some) for name, some in groups_of(rows).items()]
    for name, some in (("shapes of models", [r for r in rows if r["model"] != "sample"]),
                       ("the sample", [r for r in rows if r["model"] == "sample"]), ("all", rows)):
        if some:
            totals.append(numbers(f"**{name}**", some))
    lines += table(["class", "rows", "ratio, geometric mean", "least", "share of limit", "won", "even", "lost"], totals)
    for name, some in groups_of(rows).items():
        peers = list(dict.fromkeys(peer for row in some for peer in row["seconds"] if peer != "Tessera"))
        lines += [f"## {name[0].upper()}{name[1:]}", ""]
        body = []
        for row in some:
            value, unit = speed(row)
            cells = [row["model"], shape_text(row), f"{seconds_text(row['seconds']['Tessera']['median'])}, {value:.3g} {unit}",
                     f"{100 * row['share']:.0f} % {row['limit']['what']}"]
            for peer in peers:
                side = row["seconds"].get(peer)
                cells.append(f"{seconds_text(side['median'])} ({side['way']})" if side else "–")
            low, high = row["interval"]
            mark = "**" if verdict(row) == "lost" else ""
            body.append([*cells, f"{mark}{row['ratio']:.2f}{mark} ({low:.2f}..{high:.2f})"])
        lines += table(["shape of", "shape", "Tessera", "share of limit", *peers, "ratio"], body)
    missing = {f"{row['group']}, {peer}: {why}": None for row in rows for peer, why in row["without"].items()}
    if missing:
        lines += ["## Peers that are missing", "", *(f"- {words}" for words in missing), ""]
    if report["left_out"]:
        lines += ["## Left out", "", *(f"- {row['name']}: {row['why']}" for row in report["left_out"]), ""]
    return "\n".join(lines)


# ---- the plot

ROW, HEAD, LEFT, PLOT, GAP, SHARE, RIGHT = 15, 26, 370, 420, 40, 130, 16  # heights and widths
LOW, HIGH = 0.25, 8  # the ratios that the axis shows


def svg(report):
    groups = groups_of(report["rows"])
    top = 104
    width = LEFT + PLOT + GAP + SHARE + RIGHT
    height = top + sum(HEAD + ROW * len(rows) for rows in groups.values()) + 20
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
             'font-family="Helvetica, Arial, sans-serif" font-size="11">',
             f'<rect width="{width}" height="{height}" fill="#ffffff"/>']

    def text(x, y, words, **attributes):
        joined = "".join(f' {name.replace("_", "-")}="{value}"' for name, value in attributes.items())
        parts.append(f'<text x="{x:.1f}" y="{y:.1f}"{joined}>{html.escape(words)}</text>')

    def upright(x, colour):
        parts.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - 12}" stroke="{colour}"/>')

    def at(ratio):
        return LEFT + PLOT * math.log(min(max(ratio, LOW), HIGH) / LOW) / math.log(HIGH / LOW)

    def at_share(share):
        return LEFT + PLOT + GAP + SHARE * min(max(share, 0), 1)

    text(12, 22, "Generated kernels beside the best peer of each row", font_size=15, font_weight="bold")
    short = [f"{name} {re.split('[+,]', version)[0]}" for name, version in report["versions"].items() if name != "Tessera"]
    text(12, 40, f"{processor(report)}; {', '.join(short)}", fill="#555555")
    for i, (kind, words) in enumerate({"won": "faster than every peer", "even": "1 is in the interval", "lost": "slower than the best peer"}.items()):
        parts.append(f'<rect x="{12 + 170 * i}" y="51" width="10" height="10" fill="{COLOURS[kind]}"/>')
        text(27 + 170 * i, 60, words)
    text(LEFT + PLOT / 2, top - 24, "speed by the best peer's, 95 % interval", text_anchor="middle")
    text(LEFT + PLOT + GAP + SHARE / 2, top - 24, "share of the limit", text_anchor="middle")
    for ratio in (0.25, 0.5, 1, 2, 4, 8):
        upright(at(ratio), "#333333" if ratio == 1 else "#dddddd")
        text(at(ratio), top - 6, f"{ratio:g}", text_anchor="middle", fill="#555555")
    for share in (0, 0.5, 1):
        upright(at_share(share), "#dddddd")
        text(at_share(share), top - 6, f"{100 * share:.0f} %", text_anchor="middle", fill="#555555")
    y = top
    for name, rows in groups.items():
        s = summary(rows)
        text(12, y + 18, f"{name}: {s['ratio']:.2f} in geometric mean", font_weight="bold")
        y += HEAD
        for row in rows:
            colour, middle = COLOURS[verdict(row)], y + ROW / 2
            left, right = sorted((at(1), at(row["ratio"])))
            low, high = (at(end) for end in row["interval"])
            text(LEFT - 8, middle + 4, f"{row['model']}  {shape_text(row)}", text_anchor="end")
            parts.append(f'<rect class="{verdict(row)}" x="{left:.1f}" y="{y + 3:.1f}" width="{max(right - left, 1):.1f}" height="{ROW - 6}" '
                         f'fill="{colour}"/>')
            parts.append(f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{middle:.1f}" y2="{middle:.1f}" stroke="#222222"/>')
            text(LEFT + PLOT + GAP - 8, middle + 4, f"{row['ratio']:.2f}", text_anchor="end", fill=colour)
            parts.append(f'<circle cx="{at_share(row["share"]):.1f}" cy="{middle:.1f}" r="3.5" fill="{colour}"/>')
            y += ROW
    return "\n".join([*parts, "</svg>", ""])


def write(report, stem):
    """STEM.json, STEM.md and STEM.svg, each whole or as it was."""
    for end, content in ((".json", json.dumps(report, indent=1, ensure_ascii=False) + "\n"),
                         (".md", markdown(report, os.path.basename(stem) + ".svg")), (".svg", svg(report))):
        with open(stem + end + ".part", "w", encoding="utf-8") as stream:
            stream.write(content)
        os.replace(stem + end + ".part", stem + end)


def read(stem, machine):
    """What STEM.json has, to add to it on the same machine, and no rows where there is no such file. Leaves the program where it is of another
    machine."""
    if not os.path.exists(stem + ".json"):
        return {"rows": [], "left_out": []}
    with open(stem + ".json", encoding="utf-8") as stream:
        report = json.load(stream)
    if report["machine"] != machine:
        raise SystemExit(f"error[peers.machine]: {stem}.json was measured on {processor(report)}, and this machine is "
                         f"{processor({'machine': machine})}. Leave --add out, or name another file with --out")
    return report


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        write(json.load(file), sys.argv[1].removesuffix(".json"))
