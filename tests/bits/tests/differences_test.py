"""Tests that a single bit is found and named as a difference."""
import unittest

import numpy as np

from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import tensor_pb2
from differences import Difference, differences, tensors_of


def tensor(values, kind="f4", dtype=tensor_pb2.FLOAT32) -> tensor_pb2.Tensor:
    array = np.array(values, kind)
    return tensor_pb2.Tensor(dtype=dtype, shape=array.shape, data=array.tobytes())


def attend(values, kind="f4", dtype=tensor_pb2.FLOAT32) -> pb.AttendResponse:
    return pb.AttendResponse(output=tensor(values, kind, dtype))


class Differences(unittest.TestCase):
    def what(self, base: pb.AttendResponse, current: pb.AttendResponse) -> str:
        (found,) = differences(base, current)
        self.assertEqual(found.tensor, "output")
        return found.what

    def test_the_same_bits_do_not_differ(self):
        values = [1.5, -0.0, float("nan"), float("inf")]
        self.assertEqual(differences(attend(values), attend(values)), [])

    def test_times_do_not_matter(self):
        slow = attend([1])
        slow.execution.compute_ns = 10**9
        self.assertEqual(differences(attend([1]), slow), [])

    def test_one_bit_of_one_element(self):
        next_up = float(np.nextafter(np.float32(1), np.float32(2)))
        self.assertEqual(self.what(attend([[1, 1], [1, 1]]), attend([[1, next_up], [1, 1]])),
                         "1 of 4 elements differ, by up to 1.2e-07")

    def test_largest_of_some(self):
        self.assertEqual(self.what(attend([1, 2, 3]), attend([1.5, 2, -1])), "2 of 3 elements differ, by up to 4")

    def test_zeros_of_other_signs(self):
        self.assertEqual(self.what(attend([0.0]), attend([-0.0])), "1 of 1 elements differ, by up to 0")

    def test_what_is_no_number(self):
        self.assertEqual(self.what(attend([1]), attend([float("nan")])), "1 of 1 elements differ, by up to nan")

    def test_halves(self):
        self.assertEqual(self.what(attend([1, 2], "f2", tensor_pb2.FLOAT16), attend([1, 4], "f2", tensor_pb2.FLOAT16)),
                         "1 of 2 elements differ, by up to 2")
        one, two = 0x3f80, 0x4000
        self.assertEqual(self.what(attend([one], "u2", tensor_pb2.BFLOAT16), attend([two], "u2", tensor_pb2.BFLOAT16)),
                         "1 of 1 elements differ, by up to 1")

    def test_keys(self):
        base, current = (pb.EncodeResponse(attention_keys=[pb.LayerTensor(
            layer=3, tensor=tensor([7, key], "i4", tensor_pb2.INT32))]) for key in (-1, 2))
        self.assertEqual(differences(base, current),
                         [Difference("attention_keys.3", "1 of 2 elements differ, by up to 3")])

    def test_shape_and_type(self):
        self.assertEqual(self.what(attend([[1, 2]]), attend([1, 2])), "FLOAT32 [2], of the base FLOAT32 [1, 2]")
        self.assertEqual(self.what(attend([1]), attend([1], "f2", tensor_pb2.FLOAT16)),
                         "FLOAT16 [1], of the base FLOAT32 [1]")

    def test_data_that_its_shape_does_not_tell(self):
        short = attend([1, 2])
        short.output.data = short.output.data[:4]
        self.assertEqual(self.what(attend([1, 2]), short), "4 bytes, of the base 8")

    def test_what_one_lacks(self):
        self.assertEqual(self.what(attend([1]), pb.AttendResponse()), "only in the answer of the base")
        self.assertEqual(self.what(pb.AttendResponse(), attend([1])), "only in the answer of the tree")

    def test_every_tensor_of_an_answer(self):
        one, two = tensor([1]), tensor([2])
        layers = [pb.LayerTensor(layer=0, tensor=one), pb.LayerTensor(layer=5, tensor=two)]
        answer = pb.EncodeResponse(hidden_states=one, pooled=two, intermediate=layers,
                                   attention_probabilities=layers[1:], execution=pb.Execution(tokens=3))
        self.assertEqual(tensors_of(answer), {"hidden_states": one, "pooled": two, "intermediate.0": one,
                                              "intermediate.5": two, "attention_probabilities.5": two})
        current = pb.EncodeResponse()
        current.CopyFrom(answer)
        current.intermediate[1].tensor.CopyFrom(tensor([3]))
        current.pooled.CopyFrom(tensor([2.5]))
        self.assertEqual({found.tensor for found in differences(answer, current)}, {"intermediate.5", "pooled"})


if __name__ == "__main__":
    unittest.main()
