package example;

import attendant.v1.EncoderServiceGrpc;
import attendant.v1.EncoderServiceOuterClass.AttendRequest;
import attendant.v1.EncoderServiceOuterClass.EncodeRequest;
import attendant.v1.EncoderServiceOuterClass.EncodeResponse;
import attendant.v1.TensorOuterClass.DataType;
import attendant.v1.TensorOuterClass.Tensor;
import com.google.protobuf.Any;
import com.google.protobuf.ByteString;
import com.google.protobuf.InvalidProtocolBufferException;
import com.google.rpc.BadRequest;
import io.grpc.Grpc;
import io.grpc.InsecureChannelCredentials;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import io.grpc.protobuf.StatusProto;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Calls a running attendant-server: mvn compile exec:java -Dexec.args=HOST:PORT */
public final class Example {
  static Tensor floats(List<Long> shape, float... values) {
    ByteBuffer data = ByteBuffer.allocate(4 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    data.asFloatBuffer().put(values);
    return Tensor.newBuilder().setDtype(DataType.FLOAT32).addAllShape(shape).setData(ByteString.copyFrom(data)).build();
  }

  static Tensor integers(List<Long> shape, long... values) {
    ByteBuffer data = ByteBuffer.allocate(8 * values.length).order(ByteOrder.LITTLE_ENDIAN);
    data.asLongBuffer().put(values);
    return Tensor.newBuilder().setDtype(DataType.INT64).addAllShape(shape).setData(ByteString.copyFrom(data)).build();
  }

  /** Prints the first three values of a row of a FLOAT32 tensor [..., width]. */
  static void printRow(String label, Tensor tensor, long row) {
    int first = (int) (4 * row * tensor.getShape(tensor.getShapeCount() - 1));
    ByteBuffer data = tensor.getData().asReadOnlyByteBuffer().order(ByteOrder.LITTLE_ENDIAN);
    System.out.printf(Locale.ROOT, "  %s: %.4f %.4f %.4f%n", label,
        data.getFloat(first), data.getFloat(first + 4), data.getFloat(first + 8));
  }

  /** The field that an error names: its details do, or else the beginning of its message. */
  static String fieldOf(StatusRuntimeException error) throws InvalidProtocolBufferException {
    com.google.rpc.Status status = StatusProto.fromThrowable(error);
    for (Any detail : status.getDetailsList()) {
      if (detail.is(BadRequest.class) && detail.unpack(BadRequest.class).getFieldViolationsCount() > 0) {
        return detail.unpack(BadRequest.class).getFieldViolations(0).getField();
      }
    }
    return status.getMessage().split(":")[0];
  }

  static void call(ManagedChannel channel) throws InvalidProtocolBufferException {
    var stub = EncoderServiceGrpc.newBlockingStub(channel);

    // One sequence of three tokens. The mask keeps two; the third row is returned as zeros.
    AttendRequest attend = AttendRequest.newBuilder()
        .setModel("worked-example")
        .setHiddenStates(floats(List.of(1L, 3L, 4L), 1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1))
        .setAttentionMask(integers(List.of(1L, 3L), 1, 1, 0))
        .build();
    Tensor attended = stub.withDeadlineAfter(5, TimeUnit.SECONDS).attend(attend).getOutput();
    System.out.println("Attend");
    for (int row = 0; row < 3; ++row) {
      printRow("row " + row, attended, row);
    }

    // Three sequences of unequal lengths, one after the other, without padding.
    EncodeRequest packed = EncodeRequest.newBuilder()
        .setModel("tiny")
        .setTokenIds(integers(List.of(7L), 1, 2, 3, 4, 5, 6, 7))
        .addAllLengths(List.of(4L, 1L, 2L))
        .build();
    Tensor encoded = stub.withDeadlineAfter(5, TimeUnit.SECONDS).encode(packed).getHiddenStates();
    System.out.println("Encode");
    long first = 0;
    for (long length : packed.getLengthsList()) {
      printRow("row " + first + " begins a sequence of " + length, encoded, first);
      first += length;
    }

    // Texts, which the server tokenizes: a vector of each.
    EncodeRequest texts = EncodeRequest.newBuilder()
        .setModel("minilm")
        .addAllTexts(List.of("hello world", "good morning"))
        .setReturnPooled(true)
        .setOmitHiddenStates(true)
        .build();
    EncodeResponse embedded = stub.withDeadlineAfter(5, TimeUnit.SECONDS).encode(texts);
    System.out.println("Texts");
    for (int row = 0; row < texts.getTextsCount(); ++row) {
      printRow(texts.getTexts(row) + ", " + embedded.getLengths(row) + " tokens", embedded.getPooled(), row);
    }

    // The model has one layer, and this is not it.
    try {
      stub.withDeadlineAfter(5, TimeUnit.SECONDS).attend(attend.toBuilder().setLayer(7).build());
    } catch (StatusRuntimeException error) {
      Status status = error.getStatus();
      System.out.printf("Error%n  code %d, field %s%n", status.getCode().value(), fieldOf(error));
      System.out.println("  " + status.getDescription());
    }

    // A millisecond is too short for 8192 tokens.
    Tensor many = floats(List.of(1L, 8192L, 4L), new float[32768]);
    try {
      stub.withDeadlineAfter(1, TimeUnit.MILLISECONDS)
          .attend(AttendRequest.newBuilder().setModel("worked-example").setHiddenStates(many).build());
    } catch (StatusRuntimeException error) {
      if (error.getStatus().getCode() == Status.Code.DEADLINE_EXCEEDED) {
        System.out.printf("Deadline%n  exceeded%n");
      }
    }
  }

  public static void main(String[] args) throws Exception {
    String address = args.length > 0 ? args[0] : "localhost:8001";
    ManagedChannel channel = Grpc.newChannelBuilder(address, InsecureChannelCredentials.create()).build();
    try {
      call(channel);
    } finally {
      channel.shutdownNow().awaitTermination(5, TimeUnit.SECONDS);
    }
  }
}
