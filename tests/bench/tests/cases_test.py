"""Tests of the lengths in the sets, and of how they are put into batches."""
import pathlib
import statistics
import unittest

import checkpoint_kinds
from cases import (DEFAULT_SEED, MODELS, PACKED_TOKENS, Case, arrangements, cases_in, default_cases, engine_batches,
                   full_cases, log_normal, ms_marco, uniform)
from contenders import can_cap_peers, form_contender, onednn_contender, own_contenders, peer_contenders


class Lengths(unittest.TestCase):
    def test_uniform_is_5_to_512_each_as_often(self):
        lengths = sorted(uniform(508))
        self.assertEqual((lengths[0], lengths[-1]), (5, 512))
        self.assertEqual(len(set(lengths)), 508)

    def test_log_normal_has_median_24_and_a_long_tail(self):
        lengths = log_normal(1000)
        self.assertEqual(round(statistics.median(lengths)), 24)
        self.assertGreater(max(lengths), 150)
        self.assertGreater(statistics.mean(lengths), 24)

    def test_ms_marco_is_half_short_queries_and_half_passages(self):
        lengths = sorted(ms_marco(1000))
        self.assertAlmostEqual(statistics.median(lengths[:500]), 9, delta=1)
        self.assertAlmostEqual(statistics.median(lengths[500:]), 78, delta=2)

    def test_the_same_every_time_and_in_no_order(self):
        self.assertEqual(uniform(24), uniform(24))
        self.assertNotEqual(list(uniform(24)), sorted(uniform(24)))

    def test_another_seed_is_another_order_of_the_same_lengths(self):
        for draw in (uniform, log_normal, ms_marco):
            self.assertEqual(draw(24), draw(24, DEFAULT_SEED))
            self.assertNotEqual(draw(24, 7), draw(24))
            self.assertEqual(sorted(draw(24, 7)), sorted(draw(24)))
        for make in (default_cases, full_cases):
            ragged = [(one, other) for one, other in zip(make(), make(7)) if one.ragged]
            self.assertTrue(ragged)
            self.assertTrue(all(one.lengths != other.lengths for one, other in ragged))


class Batches(unittest.TestCase):
    def setUp(self):
        self.case = Case(MODELS["bert-base"], "ragged-uniform", uniform(64), 8)

    def test_each_arrangement_has_every_sequence_once(self):
        for batches in [*arrangements(self.case).values(), engine_batches(self.case)]:
            self.assertEqual(sorted(index for batch in batches for index in batch), list(range(64)))

    def test_peers_get_batches_of_their_size_in_arrival_order_by_length_and_alone(self):
        by_name = arrangements(self.case)
        self.assertEqual(by_name["arrival"], [list(range(i, i + 8)) for i in range(0, 64, 8)])
        lengths = [self.case.lengths[index] for batch in by_name["sorted"] for index in batch]
        self.assertEqual(lengths, sorted(lengths))
        self.assertEqual(by_name["single"], [[i] for i in range(64)])

    def test_the_engine_packs_about_1024_tokens_in_arrival_order(self):
        batches = engine_batches(self.case)
        self.assertEqual([index for batch in batches for index in batch], list(range(64)))
        for batch, following in zip(batches, batches[1:]):
            tokens = sum(self.case.lengths[i] for i in batch)
            self.assertLessEqual(tokens, PACKED_TOKENS)
            self.assertGreater(tokens + self.case.lengths[following[0]], PACKED_TOKENS)

    def test_the_default_run_has_the_cases_that_have_targets(self):
        names = {f"{case.model.name}.{case.name}" for case in default_cases()}
        self.assertLessEqual({"bert-base.8x128", "bert-base.8x512", "bert-base.1x16", "bert-base.ragged-uniform",
                              "bert-base.ragged-lognormal", "minilm-l6.8x128", "minilm-l6.1x16", "qwen3-0.6b.4x512",
                              "qwen3-0.6b.1x32", "embeddinggemma.8x128", "bge-m3.8x128"}, names)

    def test_many_short_sequences_and_a_few_long_ones_are_cases_too(self):
        for made in (default_cases(), full_cases()):
            by_name = {f"{case.model.name}.{case.name}": case for case in made}
            self.assertEqual(by_name["bert-base.32x32"].lengths, (32,) * 32)
            self.assertEqual(by_name["bert-base.4x2048"].lengths, (2048,) * 4)

    def test_checkpoints_have_a_position_for_every_token(self):
        self.assertLessEqual(max(max(case.lengths) for case in full_cases()), checkpoint_kinds.POSITIONS)


class Flops(unittest.TestCase):
    def test_products_are_those_of_the_layers_weights(self):
        for model in MODELS.values():
            if not model.embeds:
                continue
            weights = [shape for name, shape in checkpoint_kinds.KINDS[model.kind].tensors(model)
                       if "layer" in name and len(shape) == 2]
            products = 2 * sum(out * width for out, width in weights)
            attention = model.layers * 4 * model.query_width
            self.assertEqual(model.flops([1]), products + attention, model.name)

    def test_causal_attention_counts_what_the_mask_leaves(self):
        qwen3, gemma = MODELS["qwen3-0.6b"], MODELS["embeddinggemma"]
        for model, pairs in ((qwen3, 4 * 5 / 2), (gemma, 16)):
            self.assertEqual(model.flops([4]) - 4 * model.flops([1]), model.layers * 4 * model.query_width * (pairs - 4))
        self.assertEqual((qwen3.query_width, qwen3.key_value_width), (2048, 1024))
        self.assertEqual((gemma.query_width, gemma.key_value_width), (768, 256))


class Types(unittest.TestCase):
    def test_bf16x3_is_measured_where_it_has_a_target(self):
        self.assertEqual([f"{case.model.name}.{case.name}" for case in cases_in("bf16x3", default_cases())],
                         ["bert-base.8x128"])
        self.assertEqual(cases_in("f32", default_cases()), default_cases())
        for dtype in ("bf16", "int8"):
            self.assertEqual(cases_in(dtype, default_cases()),
                             [case for case in default_cases() if not case.model.large])

    def test_the_price_of_equal_bits_is_measured_of_many_rows_and_of_few(self):
        self.assertEqual([f"{case.model.name}.{case.name}" for case in default_cases() if case.priced],
                         ["bert-base.8x128", "bert-base.1x16"])

    def test_of_large_models_few_contenders_run_at_once(self):
        def names(large, full=False):
            return {peer.name for peer in peer_contenders(pathlib.Path("python"), "m", "f32", 2, large, full)}
        self.assertEqual(names(large=True),
                         {"openvino", "onnxruntime", "ctranslate2-1x2", "torch-eager", "torch-compiled", "llama.cpp"})
        self.assertEqual(names(large=True, full=True), names(large=True))
        self.assertEqual(names(large=False),
                         {"openvino", "openvino-2-streams", "onnxruntime", "ctranslate2-1x2", "ctranslate2-2x1",
                          "torch-eager", "torch-nested"})
        self.assertIn("torch-compiled", names(large=False, full=True))

    def test_the_engine_chooses_unless_it_runs_beside_itself(self):
        engine, *alone = own_contenders(pathlib.Path("bin"), "m", "bf16", 2)
        onednn = onednn_contender(engine)
        self.assertNotIn("--gemm", engine.command)
        self.assertEqual(onednn.command, (*engine.command, "--gemm", "onednn"))
        self.assertEqual((onednn.name, onednn.environment), ("attendant-onednn", engine.environment))
        self.assertEqual({contender.role for contender in alone}, {"bound", "bound16", "products"})

    def test_the_engine_runs_beside_itself_with_other_types(self):
        def form(dtype):
            return form_contender(own_contenders(pathlib.Path("bin"), "m", dtype, 2)[0], dtype)
        self.assertEqual(form("f32").command[-2:], ("--weights", "bf16"))
        self.assertEqual(form("int8").command[-2:], ("--dtype", "f32"))
        self.assertEqual((form("f32").name, form("int8").name), ("attendant-bf16-file", "attendant-f32"))
        self.assertEqual({form("f32").role, form("int8").role}, {"form"})
        self.assertEqual((form("bf16"), form("bf16x3")), (None, None))
        self.assertEqual([f"{case.model.name}.{case.name}" for case in default_cases() if case.in_forms],
                         ["bert-base.8x128", "bert-base.1x16", "bert-base.1x4"])

    def test_a_cap_is_that_of_the_engine_and_of_its_bound(self):
        for contender in own_contenders(pathlib.Path("bin"), "m", "f32", 2, isa="avx2"):
            self.assertIn("--isa avx2", " ".join(contender.command))
        for contender in own_contenders(pathlib.Path("bin"), "m", "f32", 2):
            self.assertNotIn("--isa", contender.command)

    def test_peers_that_cannot_be_capped_are_left_out(self):
        def peers(isa):
            return {peer.name: peer.environment
                    for peer in peer_contenders(pathlib.Path("python"), "m", "int8", 2, large=False, full=False, isa=isa)}
        capped, others = peers("avx2"), peers("best")
        self.assertEqual(set(others) - set(capped), {"onnxruntime", "openvino", "openvino-2-streams"})
        for name, environment in capped.items():
            self.assertEqual(environment["ONEDNN_MAX_CPU_ISA"], "AVX2", name)
        self.assertEqual(capped["ctranslate2-1x2"]["CT2_FORCE_CPU_ISA"], "AVX2")
        for environment in others.values():
            self.assertNotIn("ONEDNN_MAX_CPU_ISA", environment)
        self.assertEqual([isa for isa in ("best", "avx2", "avx512") if can_cap_peers(isa)], ["best", "avx2"])

    def test_bf16x3_competes_with_f32(self):
        def commands(dtype):
            return [peer.command for peer in peer_contenders(pathlib.Path("python"), "m", dtype, 2, large=False,
                                                                full=True)]
        self.assertEqual(commands("bf16x3"), commands("f32"))
        self.assertNotEqual(commands("bf16x3"), commands("bf16"))
        for contender in own_contenders(pathlib.Path("bin"), "m", "bf16x3", 2):
            self.assertIn("bf16x3", contender.command)


if __name__ == "__main__":
    unittest.main()
