# Asks a running attendant-server for the context layer of its worked example. Needs python3-grpcio and python3-protobuf.
#   protoc -I proto --python_out=build attendant/v1/tensor.proto attendant/v1/encoder_service.proto
#   PYTHONPATH=build python3 client/examples/attend.py [HOST:PORT]
import struct, sys
import grpc
from attendant.v1 import encoder_service_pb2 as pb, tensor_pb2

request = pb.AttendRequest(model="worked-example", hidden_states=tensor_pb2.Tensor(
    dtype=tensor_pb2.FLOAT32, shape=[1, 3, 4],
    data=struct.pack("<12f", 1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1)))
attend = grpc.insecure_channel(sys.argv[1] if len(sys.argv) > 1 else "localhost:8001").unary_unary(
    "/attendant.v1.EncoderService/Attend", pb.AttendRequest.SerializeToString, pb.AttendResponse.FromString)
output = attend(request, timeout=5).output
print(list(output.shape), struct.unpack(f"<{len(output.data) // 4}f", output.data))
