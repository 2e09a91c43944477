// Command example calls a running attendant-server: go run . [HOST:PORT]
package main

import (
	"context"
	"encoding/binary"
	"fmt"
	"log"
	"os"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	pb "example/attendantpb"
)

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

// tensor takes a slice of float32 or int64.
func tensor(dtype pb.DataType, values any, shape ...int64) *pb.Tensor {
	return &pb.Tensor{Dtype: dtype, Shape: shape, Data: must(binary.Append(nil, binary.LittleEndian, values))}
}

// printRow prints the beginning of a row of a FLOAT32 tensor [..., width].
func printRow(label string, t *pb.Tensor, row int64, count int) {
	values := make([]float32, count)
	must(binary.Decode(t.Data[4*row*t.Shape[len(t.Shape)-1]:], binary.LittleEndian, values))
	fmt.Println(label, strings.Trim(fmt.Sprintf("%.4f", values), "[]"))
}

// fieldOf tells which field an error names: its details do, or else the beginning of its message.
func fieldOf(failure *status.Status) string {
	for _, detail := range failure.Details() {
		if bad, ok := detail.(*errdetails.BadRequest); ok && len(bad.FieldViolations) > 0 {
			return bad.FieldViolations[0].Field
		}
	}
	field, _, _ := strings.Cut(failure.Message(), ":")
	return field
}

func main() {
	address := append(os.Args[1:], "localhost:8001")[0]
	connection := must(grpc.NewClient(address,
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy()))
	defer connection.Close()
	client := pb.NewEncoderServiceClient(connection)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()

	// One sequence of three tokens. The mask keeps two; the third row is returned as zeros.
	request := &pb.AttendRequest{
		Model:         "worked-example",
		HiddenStates:  tensor(pb.DataType_FLOAT32, []float32{1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1}, 1, 3, 4),
		AttentionMask: tensor(pb.DataType_INT64, []int64{1, 1, 0}, 1, 3),
	}
	attended := must(client.Attend(ctx, request)).Output
	fmt.Println("Attend")
	for row := range int64(3) {
		printRow(fmt.Sprintf("  row %d:", row), attended, row, 3)
	}

	// Three sequences of unequal lengths, one after the other, without padding.
	ids := tensor(pb.DataType_INT64, []int64{1, 2, 3, 4, 5, 6, 7}, 7)
	packed := &pb.EncodeRequest{Model: "tiny", TokenIds: ids, Lengths: []int64{4, 1, 2}}
	encoded := must(client.Encode(ctx, packed)).HiddenStates
	fmt.Println("Encode")
	first := int64(0)
	for _, length := range packed.Lengths {
		printRow(fmt.Sprintf("  row %d begins a sequence of %d:", first, length), encoded, first, 3)
		first += length
	}

	// Texts, which the server tokenizes: a vector of each.
	texts := &pb.EncodeRequest{
		Model: "minilm", Texts: []string{"hello world", "good morning"}, ReturnPooled: true, OmitHiddenStates: true,
	}
	embedded := must(client.Encode(ctx, texts))
	fmt.Println("Texts")
	for row, text := range texts.Texts {
		printRow(fmt.Sprintf("  %s, %d tokens:", text, embedded.Lengths[row]), embedded.Pooled, int64(row), 3)
	}

	// The model has one layer, and this is not it.
	request.Layer = 7
	_, err := client.Attend(ctx, request)
	failure := status.Convert(err)
	fmt.Printf("Error\n  code %d, field %s\n  %s\n", failure.Code(), fieldOf(failure), failure.Message())

	// A millisecond is too short for 8192 tokens.
	states := tensor(pb.DataType_FLOAT32, make([]float32, 32768), 1, 8192, 4)
	hurried, cancelHurried := context.WithTimeout(ctx, time.Millisecond)
	defer cancelHurried()
	_, err = client.Attend(hurried, &pb.AttendRequest{Model: "worked-example", HiddenStates: states})
	if status.Code(err) == codes.DeadlineExceeded {
		fmt.Println("Deadline\n  exceeded")
	}
}
