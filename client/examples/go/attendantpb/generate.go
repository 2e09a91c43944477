// Package attendantpb holds the messages and the stubs of attendant.v1, which go generate makes from the folder proto.
package attendantpb

//go:generate protoc --proto_path=../../../../proto --go_out=. --go-grpc_out=. --go_opt=module=example/attendantpb --go-grpc_opt=module=example/attendantpb --go_opt=Mattendant/v1/tensor.proto=example/attendantpb --go-grpc_opt=Mattendant/v1/tensor.proto=example/attendantpb --go_opt=Mattendant/v1/encoder_service.proto=example/attendantpb --go-grpc_opt=Mattendant/v1/encoder_service.proto=example/attendantpb attendant/v1/tensor.proto attendant/v1/encoder_service.proto
