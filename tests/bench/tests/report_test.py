"""Tests that the text, the page and the JSON name the contenders that did not take part."""
import json
import unittest

import report_html
import report_text
from cases import MODELS
from figures import figures_of, json_of
from made_results import result_of, results_of, timings
from results import Accuracy, ModelResult


class PeersAlone(unittest.TestCase):
    """The CPU cannot run the engine in a type that peers can use."""

    def setUp(self):
        self.results = results_of("int8", result_of("bert-base", "8x128",
                                                    arrival=timings(openvino=(2.0,), torch_eager=(4.0,))))
        model = self.results.models[0]
        model.refused = "this CPU has no VNNI"
        model.accuracy["openvino"] = Accuracy(0.96, 0.1, None, True)

    def test_their_speed_and_accuracy_are_told_and_no_ratio(self):
        figures = figures_of(self.results)
        self.assertEqual(figures["peer_tokens_per_s.openvino.bert-base.8x128.int8"], 512)
        self.assertEqual(figures["accuracy.openvino.bert-base.int8.lowest_token_cosine"], 0.96)
        self.assertFalse([name for name in figures if name.startswith(("peer.", "bound", "tokens_per_s."))])

    def test_text_and_page(self):
        text = report_text.render(self.results)
        self.assertRegex(text, r"(?m)^bert-base.int8 +refused$")
        self.assertIn("bert-base, int8, beside its peers: peers alone, the engine refuses (this CPU has no VNNI)", text)
        self.assertRegex(text, r"(?m)^openvino +512 +0.9600000 +1.0e-01 +- +agrees$")
        self.assertIn("peers alone", report_html.render(self.results))


class Missing(unittest.TestCase):
    def setUp(self):
        self.results = results_of("f32", result_of("bert-base", "8x128", arrival=timings(attendant=(1.0,))))
        self.results.models[0].failures["openvino"] = "ended: No module named 'openvino'"
        self.results.models.append(ModelResult(MODELS["bert-base"], "int8", refused="this CPU has no VNNI"))
        for _ in range(2):
            self.results.note("minilm-l6: seeded weights")

    def test_json(self):
        found = json.loads(json.dumps(json_of(self.results)))
        self.assertEqual(found["failures"], {"bert-base.f32": {"openvino": "ended: No module named 'openvino'"}})
        self.assertEqual(found["refused"], {"bert-base.int8": "this CPU has no VNNI"})
        self.assertEqual(found["notes"], ["minilm-l6: seeded weights"])
        self.assertEqual(found["machine"]["isa"], "avx512_vnni")

    def test_text_and_page(self):
        for rendered in (report_text.render(self.results), report_html.render(self.results)):
            for line in ("bert-base.f32, openvino: ended", "this CPU has no VNNI", "minilm-l6: seeded weights"):
                self.assertEqual(rendered.count(line), 1, line)


if __name__ == "__main__":
    unittest.main()
