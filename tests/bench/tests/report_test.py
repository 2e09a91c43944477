"""Who did not take part is in the text, in the page and in the JSON."""
import json
import unittest

import report_html
import report_text
from cases import MODELS
from figures import json_of
from made_results import result_of, results_of, timings
from results import ModelResult


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
