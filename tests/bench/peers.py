"""Laws of what ./tessera peers says, on made-up measurements, and of its rows and contests: peers.py <bench/peers>. Needs no peer."""
import math
import os
import pathlib
import sys
import tempfile
import unittest
import xml.etree.ElementTree as ElementTree

sys.path.insert(0, sys.argv.pop(1))
import contest  # noqa: E402
import limits  # noqa: E402
import report  # noqa: E402
import rows  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def row(name, ratio, interval, group="product", model="BERT-base", share=0.5, **others):
    ours = 1e-3
    return {"name": name, "kind": "product", "group": group, "model": model, "shape": {"M": 4, "N": 5}, "dtype": "f32", "prepared": False, "cold": False,
            "threads": 1, "operations": 2_000_000, "bytes": 1_000_000,
            "seconds": {"Tessera": {"way": "default", "median": ours, "interval": [ours, ours]},
                        "PyTorch": {"way": "mm", "median": ours * ratio, "interval": [ours, ours]}},
            "best_peer": "PyTorch", "ratio": ratio, "interval": interval, "limit": {"what": "arithmetic", "seconds": share * ours},
            "share": share, "without": {}, **others}


def made_up():
    found = [row("a", 2.0, [1.9, 2.1]), row("b", 0.5, [0.4, 0.6], model="a < b & c", share=0.25), row("c", 1.0, [0.9, 1.1], share=1.5),
             row("d", 50.0, [40.0, 60.0], group="softmax", model="sample", limit={
                 "what": "copy", "seconds": 5e-4}, without={"OpenBLAS": "has none"}),
             row("e", 0.01, [0.005, 0.02], group="softmax", model="sample", threads=2)]
    return {"format": "tessera-peers", "version": 1, "machine": {"processor": "P", "kind": "Zen 5", "architecture": "x86_64", "threads": 2},
            "versions": {"PyTorch": "2"}, "rows": found, "left_out": [{"name": "f", "why": "because"}]}


class Report(unittest.TestCase):
    def test_a_row_is_won_or_lost_by_its_whole_interval(self):
        self.assertEqual([report.verdict(r) for r in made_up()["rows"]], ["won", "lost", "even", "won", "lost"])

    def test_a_summary_is_of_geometric_means(self):
        s = report.summary(made_up()["rows"][:2])
        self.assertAlmostEqual(s["ratio"], 1)
        self.assertAlmostEqual(s["share"], math.sqrt(0.125))
        self.assertEqual((s["rows"], s["least"], s["won"], s["even"], s["lost"]), (2, 0.5, 1, 0, 1))

    def test_speeds_are_of_what_limits(self):
        found = made_up()["rows"]
        self.assertEqual([report.speed(found[i]) for i in (0, 3)], [(2.0, "Gop/s"), (1.0, "GB/s")])

    def test_tables_have_every_row_and_as_many_cells_as_their_head(self):
        lines = report.markdown(made_up(), "here.svg").splitlines()
        width = None
        for text in lines:
            if text.startswith("|"):
                width = width or text.count("|")
                self.assertEqual(text.count("|"), width, text)
            else:
                width = None
        page = "\n".join(lines)
        self.assertEqual(sum(page.count(words)
                         for words in ("2.00 (1.90..2.10)", "**0.50** (0.40..0.60)", "1.00 (0.90..1.10)", "50.00 (40.00..60.00)")), 4)
        for words in ("(here.svg)", "softmax, OpenBLAS: has none", "- f: because", "product M=4 N=5", "**the sample**"):
            self.assertIn(words, page)

    def bars(self, made):
        root = ElementTree.fromstring(report.svg(made))
        return root, [r for r in root.iter(SVG + "rect") if r.get("class")]

    def test_the_plot_has_a_bar_and_a_dot_for_every_row(self):
        root, bars = self.bars(made_up())
        self.assertEqual([b.get("class") for b in bars], ["won", "lost", "even", "won", "lost"])
        self.assertEqual(len({b.get("fill") for b in bars}), 3)
        dots = list(root.iter(SVG + "circle"))
        self.assertEqual(len(dots), 5)
        x = [float(d.get("cx")) for d in dots]
        self.assertLess(x[1], x[0])
        self.assertLess(x[0], x[2])
        self.assertIn("a < b & c  M=4 N=5", [t.text for t in root.iter(SVG + "text")])

    def test_half_and_twice_are_bars_of_one_length_on_either_side_of_1(self):
        _, (twice, half, *_) = self.bars(made_up())
        self.assertAlmostEqual(float(twice.get("width")), float(half.get("width")), delta=0.2)
        self.assertAlmostEqual(float(half.get("x")) + float(half.get("width")), float(twice.get("x")), delta=0.2)

    def test_windows_are_named_by_what_moves_over_what(self):
        shape = {"batch": 8, "HW": 56, "C": 64, "O": 128, "R": 3, "stride": 2, "padding": 1}
        self.assertEqual(report.shape_text(row("g", 1, [1, 1], shape=shape, prepared=True)), "3×3/2, 64 to 128, 8×56²")

    def test_nothing_leaves_the_plot(self):
        root, bars = self.bars(made_up())
        width, height = float(root.get("width")), float(root.get("height"))
        for bar in bars:
            self.assertGreaterEqual(float(bar.get("x")), report.LEFT - 0.1)
            self.assertLessEqual(float(bar.get("x")) + float(bar.get("width")), report.LEFT + report.PLOT + 0.1)
        for element in root.iter():
            self.assertLessEqual(float(element.get("cx") or element.get("x2") or 0), width)
            self.assertLessEqual(float(element.get("cy") or element.get("y2") or 0), height)

    def test_a_report_without_rows_is_a_report(self):
        empty = {**made_up(), "rows": [], "left_out": []}
        report.markdown(empty, "a.svg")
        ElementTree.fromstring(report.svg(empty))

    def test_the_same_measurements_give_the_same_files(self):
        with tempfile.TemporaryDirectory() as folder:
            stem = os.path.join(folder, "x")
            contents = []
            for _ in range(2):
                report.write(made_up(), stem)
                self.assertEqual(sorted(os.listdir(folder)), ["x.json", "x.md", "x.svg"])
                contents.append([pathlib.Path(stem + end).read_bytes() for end in (".json", ".md", ".svg")])
            self.assertEqual(*contents)


    def test_rows_are_added_on_the_same_machine_only(self):
        with tempfile.TemporaryDirectory() as folder:
            stem = os.path.join(folder, "x")
            self.assertEqual(report.read(stem, {}), {"rows": [], "left_out": []})
            report.write(made_up(), stem)
            self.assertEqual(report.read(stem, made_up()["machine"]), made_up())
            with self.assertRaises(SystemExit) as left:
                report.read(stem, {**made_up()["machine"], "kind": "Zen 4"})
            self.assertEqual(str(left.exception), f"error[peers.machine]: {stem}.json was measured on P (Zen 5), x86_64, 2 threads, and this "
                             "machine is P (Zen 4), x86_64, 2 threads. Leave --add out, or name another file with --out")


class Rows(unittest.TestCase):
    def test_a_selection_has_rows(self):
        few = [rows.product("one", 2, 3, 5), rows.product("two", 2, 3, 5, quick=True)]
        self.assertEqual(rows.select(few, "one|two", False), few)
        self.assertEqual(rows.select(few, "", True), few[1:])
        for regex, words in (("one", "error[peers.rows]: none of the 2 rows has 'one' in its name and is quick. --list shows their names"),
                             ("(", "error[peers.rows]: --rows '(' is no regular expression: missing ), unterminated subpattern at position 0. "
                                   "Brackets and the like take a backslash before them")):
            with self.assertRaises(SystemExit) as left:
                rows.select(few, regex, True)
            self.assertEqual(str(left.exception), words)

    def test_names_are_unique(self):
        names = [r.name for r in rows.all_rows()]
        self.assertEqual(len(names), len(set(names)))

    def test_a_seed_gives_its_sample(self):
        self.assertEqual(rows.sample(1, 2), rows.sample(1, 2))
        self.assertNotEqual(rows.sample(1, 2), rows.sample(2, 2))
        self.assertTrue(all(r.model == "sample" and not r.quick for r in rows.sample(1, 2)))

    def test_every_class_is_there_and_groups_are_together(self):
        kinds = [r.kind for r in rows.all_rows()]
        self.assertEqual(set(kinds), set(rows.CLASSES))
        groups = [r.group for r in rows.all_rows()]
        self.assertEqual(len(set(groups)), 1 + sum(a != b for a, b in zip(groups, groups[1:])))

    def test_work_is_what_is_computed_and_moved(self):
        self.assertEqual(rows.operations(rows.product("", 2, 3, 5)), 60)
        self.assertEqual(rows.bytes_moved(rows.product("", 2, 3, 5)), (4 * (10 + 15), 4 * 6))
        self.assertEqual(rows.bytes_moved(rows.product("", 2, 3, 5, dtype="u8s8")), (25, 24))
        stem = rows.conv("ResNet-50", 1, 224, 3, 64, 7, 2)
        self.assertEqual(rows.windows(stem.extents), 112)
        self.assertEqual(rows.operations(stem), 2 * 112 * 112 * 64 * 3 * 49)
        full, causal = rows.attention("", 2, 10, 4), rows.attention("", 2, 10, 4, causal=True)
        self.assertEqual(rows.operations(full) * 11, rows.operations(causal) * 20)


class Contests(unittest.TestCase):
    def test_everybody_has_as_many_turns(self):
        taken = contest.turns({"a": lambda: None, "b": lambda: None}, 4, least=0)
        self.assertEqual({name: len(values) for name, values in taken.items()}, {"a": 4, "b": 4})

    def test_what_goes_before_a_call_is_not_timed(self):
        now = [0.0]

        def pass_by(seconds):
            now[0] += seconds
        self.assertEqual(contest.seconds(lambda: pass_by(2), least=5, clock=lambda: now[0], before=lambda: pass_by(100)), 2)

    def test_an_interval_is_around_its_median(self):
        median, low, high = contest.median_with_interval([float(i) for i in range(31)])
        self.assertEqual(median, 15)
        self.assertTrue(low < 15 < high)
        self.assertEqual(contest.median_with_interval([3.0] * 5), (3.0, 3.0, 3.0))


class Limits(unittest.TestCase):
    def test_processors_have_kinds(self):
        kinds = {("AuthenticAMD", 26, 2): "Zen 5", ("AuthenticAMD", 25, 17): "Zen 4", ("AuthenticAMD", 25, 1): "Zen 3",
                 ("GenuineIntel", 6, 143): "Sapphire Rapids", ("GenuineIntel", 6, 1): "unknown", (None, 0, 0): "unknown"}
        self.assertEqual({processor: limits.kind_of(*processor) for processor in kinds}, kinds)


if __name__ == "__main__":
    unittest.main()
