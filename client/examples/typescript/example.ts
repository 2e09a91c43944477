// Calls a running attendant-server: npm start --silent -- [HOST:PORT]
import { CallOptions, credentials, Metadata, ServiceError, status } from "@grpc/grpc-js";

import { AttendRequest, EncodeRequest, EncoderServiceClient } from "./generated/attendant/v1/encoder_service.js";
import { DataType, Tensor } from "./generated/attendant/v1/tensor.js";
import { BadRequest } from "./generated/google/rpc/error_details.js";
import { Status } from "./generated/google/rpc/status.js";

type Done<Answer> = (error: ServiceError | null, answer: Answer) => void;
type Method<Request, Answer> = (request: Request, headers: Metadata, options: CallOptions, done: Done<Answer>) => unknown;

const client = new EncoderServiceClient(process.argv[2] ?? "localhost:8001", credentials.createInsecure(),
  { "grpc.enable_http_proxy": 0 });

function call<Request, Answer>(method: Method<Request, Answer>, request: Request, milliseconds = 5000): Promise<Answer> {
  return new Promise((resolve, reject) =>
    method.call(client, request, new Metadata(), { deadline: Date.now() + milliseconds }, (error, answer) =>
      error ? reject(error) : resolve(answer)));
}

// Typed arrays have the machine's byte order, which is little-endian wherever Node runs as a rule.
function tensor(dtype: DataType, shape: bigint[], values: Float32Array | BigInt64Array): Tensor {
  return { dtype, shape, data: Buffer.from(values.buffer) };
}

// The first three values of a row of a FLOAT32 tensor [..., width].
function rowText(tensor: Tensor, row: number): string {
  const first = 4 * row * Number(tensor.shape.at(-1));
  return [0, 4, 8].map((offset) => tensor.data.readFloatLE(first + offset).toFixed(4)).join(" ");
}

// The field that an error names: its details do, or else the beginning of its message.
function fieldOf(error: ServiceError): string {
  const [encoded] = error.metadata.get("grpc-status-details-bin");
  const details = encoded ? Status.decode(encoded as Buffer).details : [];
  const detail = details.find((any) => any.typeUrl.endsWith("/google.rpc.BadRequest"));
  const [violation] = detail ? BadRequest.decode(detail.value).fieldViolations : [];
  return violation?.field ?? error.details.split(":")[0];
}

// One sequence of three tokens. The mask keeps two; the third row is returned as zeros.
const attend = AttendRequest.fromPartial({
  model: "worked-example",
  hiddenStates: tensor(DataType.FLOAT32, [1n, 3n, 4n], Float32Array.of(1, 0, 1, 0, 0, 2, 0, 2, 1, 1, 1, 1)),
  attentionMask: tensor(DataType.INT64, [1n, 3n], BigInt64Array.of(1n, 1n, 0n)),
});
const attended = await call(client.attend, attend);
console.log("Attend");
for (let row = 0; row < 3; ++row) console.log(`  row ${row}: ${rowText(attended.output!, row)}`);

// Three sequences of unequal lengths, one after the other, without padding.
const packed = EncodeRequest.fromPartial({
  model: "tiny",
  tokenIds: tensor(DataType.INT64, [7n], BigInt64Array.of(1n, 2n, 3n, 4n, 5n, 6n, 7n)),
  lengths: [4n, 1n, 2n],
});
const encoded = await call(client.encode, packed);
console.log("Encode");
let first = 0;
for (const length of packed.lengths) {
  console.log(`  row ${first} begins a sequence of ${length}: ${rowText(encoded.hiddenStates!, first)}`);
  first += Number(length);
}

// Texts, which the server tokenizes: a vector of each.
const texts = EncodeRequest.fromPartial({
  model: "minilm", texts: ["hello world", "good morning"], returnPooled: true, omitHiddenStates: true,
});
const embedded = await call(client.encode, texts);
console.log("Texts");
texts.texts.forEach((text, row) =>
  console.log(`  ${text}, ${embedded.lengths[row]} tokens: ${rowText(embedded.pooled!, row)}`));

// The model has one layer, and this is not it.
await call(client.attend, { ...attend, layer: 7 }).catch((error: ServiceError) =>
  console.log(`Error\n  code ${error.code}, field ${fieldOf(error)}\n  ${error.details}`));

// A millisecond is too short for 8192 tokens.
const hiddenStates = tensor(DataType.FLOAT32, [1n, 8192n, 4n], new Float32Array(32768));
await call(client.attend, AttendRequest.fromPartial({ model: "worked-example", hiddenStates }), 1).catch((error: ServiceError) => {
  if (error.code === status.DEADLINE_EXCEEDED) console.log("Deadline\n  exceeded");
});
client.close();
