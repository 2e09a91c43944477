"""Tests that a refusal by either build is a difference."""
import unittest

import grpc

import compare
from attendant.v1 import encoder_service_pb2 as pb
from attendant.v1 import tensor_pb2
from differences import Difference
from questions import Question

QUESTION = Question("Encode last layer", "Encode", pb.EncodeRequest())
TENSOR = tensor_pb2.Tensor(dtype=tensor_pb2.FLOAT32, shape=[1], data=bytes(4))
ANSWER = pb.EncodeResponse(hidden_states=TENSOR, pooled=TENSOR)


class Refusal(grpc.RpcError):
    def code(self):
        return grpc.StatusCode.INVALID_ARGUMENT

    def details(self):
        return "layers: expected others"


class Answering:
    def __init__(self, answer):
        self._answer = answer

    def ask(self, *_):
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


class CompareAnswers(unittest.TestCase):
    def compare(self, base, current) -> tuple:
        return compare.compare_answers(Answering(base), Answering(current), QUESTION)

    def test_counts_tensors(self):
        self.assertEqual(self.compare(ANSWER, ANSWER), (2, []))

    def test_counts_those_of_one_alone(self):
        fewer = pb.EncodeResponse(pooled=TENSOR)
        count, (found,) = self.compare(fewer, ANSWER)
        self.assertEqual((count, found.tensor), (2, "hidden_states"))

    def test_refusals(self):
        told = "INVALID_ARGUMENT: layers: expected others"
        self.assertEqual(self.compare(Refusal(), ANSWER), (1, [Difference("base", told)]))
        self.assertEqual(self.compare(ANSWER, Refusal()), (1, [Difference("tree", told)]))
        self.assertEqual(self.compare(Refusal(), Refusal()), (1, [Difference("base", told)]))


if __name__ == "__main__":
    unittest.main()
