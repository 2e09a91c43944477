"""Tests that requests are equal in every run, and valid for their model."""
import unittest

import numpy as np

from attendant.v1 import encoder_service_pb2 as pb
from questions import LENGTHS, questions

LAYER = pb.LayerDescription(hidden_size=8, heads=2, key_input_width=8, value_input_width=8, has_output_projection=True)
BERT = pb.GetModelResponse(name="bert.f32", family="synthetic:bert", layers=4, layer=LAYER, pooled_width=8,
                           embeddings=pb.EmbeddingDescription(vocabulary=50, longest_sequence=16, token_types=2))


def changed(**fields) -> pb.GetModelResponse:
    model = pb.GetModelResponse()
    model.CopyFrom(BERT)
    model.MergeFrom(pb.GetModelResponse(**fields))
    return model


def asked(model: pb.GetModelResponse) -> dict:
    return {question.stage: question.request for question in questions(model)}


class Questions(unittest.TestCase):
    def test_each_has_a_name(self):
        self.assertEqual(len(questions(BERT)), len(asked(BERT)))

    def test_the_same_inputs_for_each_type(self):
        f32, int8 = asked(BERT), asked(changed(name="bert.int8"))
        for request in [*f32.values(), *int8.values()]:
            request.model = ""
        self.assertEqual(f32, int8)

    def test_stages_of_the_first_and_last_layer(self):
        stages = {(request.layer, request.stage) for stage, request in asked(BERT).items()
                  if stage.startswith("Attend layer")}
        self.assertEqual(stages, {(layer, stage) for layer in (0, 3) for stage in (pb.CONTEXT, pb.PROJECTED, pb.BLOCK)})

    def test_without_an_output_projection(self):
        model = changed()
        model.layer.has_output_projection = False
        self.assertNotIn(pb.PROJECTED, {question.request.stage for question in questions(model)
                                        if question.method == "Attend"})

    def test_only_what_the_model_pools(self):
        self.assertIn("Encode pooled MODEL_POOLING", asked(BERT))
        self.assertNotIn("Encode pooled CLASSIFIER", asked(BERT))
        self.assertIn("Encode pooled CLASSIFIER", asked(changed(classes=3)))
        bare = changed()
        bare.pooled_width = 0
        self.assertNotIn("Encode pooled MODEL_POOLING", asked(bare))

    def test_token_ids_that_fit(self):
        text = asked(BERT)["Encode token ids"]
        self.assertEqual(text.token_ids.shape, [len(LENGTHS), 16])
        ids = np.frombuffer(text.token_ids.data, np.int64)
        self.assertTrue(0 <= ids.min() and ids.max() < 50)
        self.assertTrue(text.HasField("token_type_ids"))
        bare = changed()
        bare.ClearField("embeddings")
        self.assertNotIn("Encode token ids", asked(bare))

    def test_masks_are_ragged(self):
        mask = asked(BERT)["Encode last layer"].attention_mask
        kept = np.frombuffer(mask.data, np.uint8).reshape(mask.shape).sum(axis=1)
        self.assertEqual(list(kept[1:]), list(LENGTHS[1:]))
        self.assertTrue(0 < kept[0] < LENGTHS[0])

    def test_one_layer_of_one_head(self):
        model = changed()
        model.layers = model.layer.heads = 1
        for question in questions(model):
            if question.method == "Attend":
                self.assertEqual(question.request.layer, 0)


if __name__ == "__main__":
    unittest.main()
