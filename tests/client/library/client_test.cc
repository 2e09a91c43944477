#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <map>
#include <memory>
#include <thread>
#include <utility>

#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "tests/client/support/fake_server.h"
#include "tests/client/support/small_requests.h"

namespace attendant::client {
namespace client_test {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class ClientTest : public testing::Test {
 protected:
  FakeServer server_;
  Client client_ = Client::Connect(server_.address());
};

TEST_F(ClientTest, AttendSendsEveryField) {
  AttendRequest request = SmallAttend();
  request.model = "m";
  request.layer = 3;
  request.stage = AttendStage::kBlock;
  request.layout = Layout::kSequenceFirst;
  request.attention_mask = Int64Tensor({1, 2}, {1, 0});
  request.lengths = {2};
  request.attention_bias = FloatTensor({1, 1, 1, 2}, {0.0f, 1.0f});
  request.return_attention_probabilities = true;
  request.head_gates = {0.5f, 1.0f};
  request.query_rows = {1};
  request.attention_form = AttentionForm::kTopKeys;
  request.attention_top_k = 2;
  request.return_weighted_values = true;
  request.output_dtype = DataType::kBFloat16;
  request.request_id = "r1";
  const auto result = client_.Attend(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_TRUE(result->attention_probabilities && result->attention_keys && result->weighted_values);

  const v1::AttendRequest sent = server_.attended().at(0);
  EXPECT_THAT(sent.head_gates(), ElementsAre(0.5f, 1.0f));
  EXPECT_THAT(sent.query_rows(), ElementsAre(1));
  EXPECT_EQ(sent.attention_form(), v1::TOP_KEYS);
  EXPECT_EQ(sent.attention_top_k(), 2u);
  EXPECT_TRUE(sent.return_weighted_values());
  EXPECT_EQ(sent.model(), "m");
  EXPECT_EQ(sent.layer(), 3u);
  EXPECT_EQ(sent.stage(), v1::BLOCK);
  EXPECT_EQ(sent.layout(), v1::SEQUENCE_FIRST);
  EXPECT_EQ(sent.hidden_states().dtype(), v1::FLOAT32);
  EXPECT_THAT(sent.hidden_states().shape(), ElementsAre(1, 2, 4));
  EXPECT_EQ(sent.hidden_states().data(), request.hidden_states.data);
  EXPECT_EQ(sent.attention_mask().dtype(), v1::INT64);
  EXPECT_THAT(sent.lengths(), ElementsAre(2));
  EXPECT_THAT(sent.attention_bias().shape(), ElementsAre(1, 1, 1, 2));
  EXPECT_TRUE(sent.return_attention_probabilities());
  EXPECT_EQ(sent.output_dtype(), v1::BFLOAT16);
  EXPECT_EQ(sent.request_id(), "r1");
}

TEST_F(ClientTest, AttendSendsAMemoryOrAHandle) {
  AttendRequest request = SmallAttend();
  request.memory = Memory{.hidden_states = FloatTensor({1, 2, 4}, kSmallValues),
                          .attention_mask = Int64Tensor({1, 2}, {1, 0}),
                          .lengths = {2},
                          .values = FloatTensor({1, 1, 8}, kSmallValues)};
  ASSERT_TRUE(client_.Attend(request).ok());
  const v1::Memory sent = server_.attended().at(0).memory();
  EXPECT_EQ(sent.hidden_states().data(), request.memory->hidden_states.data);
  EXPECT_THAT(sent.attention_mask().shape(), ElementsAre(1, 2));
  EXPECT_THAT(sent.lengths(), ElementsAre(2));
  EXPECT_THAT(sent.values().shape(), ElementsAre(1, 1, 8));
  request = SmallAttend();
  request.memory_handle = "h";
  ASSERT_TRUE(client_.Attend(request).ok());
  EXPECT_FALSE(server_.attended().at(1).has_memory());
  EXPECT_EQ(server_.attended().at(1).memory_handle(), "h");
}

TEST_F(ClientTest, RegistersAndDropsMemories) {
  PutMemoryRequest request;
  request.model = "m";
  request.layer = 3;
  request.layout = Layout::kSequenceFirst;
  request.memory.hidden_states = FloatTensor({1, 2, 4}, kSmallValues);
  request.time_to_live = absl::Microseconds(2'000'001);
  request.request_id = "r";
  const auto kept = client_.PutMemory(request);
  ASSERT_TRUE(kept.ok()) << kept.status();
  EXPECT_EQ(kept->handle, "h1");
  EXPECT_EQ(kept->bytes, 96);
  EXPECT_EQ(kept->expires, absl::FromUnixSeconds(1000));
  EXPECT_EQ(kept->execution.tokens, 3);
  const v1::PutMemoryRequest sent = server_.put().at(0);
  EXPECT_EQ(sent.model(), "m");
  EXPECT_EQ(sent.layer(), 3u);
  EXPECT_EQ(sent.layout(), v1::SEQUENCE_FIRST);
  EXPECT_EQ(sent.time_to_live_ms(), 2001);
  EXPECT_EQ(sent.request_id(), "r");
  EXPECT_THAT(sent.memory().hidden_states().shape(), ElementsAre(1, 2, 4));
  EXPECT_EQ(client_.DropMemory(kept->handle).value(), 96);
  EXPECT_EQ(client_.DropMemory("other").status(), absl::NotFoundError("no such memory"));
}

TEST_F(ClientTest, AttendLeavesOutWhatIsNotSet) {
  ASSERT_TRUE(client_.Attend(SmallAttend()).ok());
  const v1::AttendRequest sent = server_.attended().at(0);
  EXPECT_FALSE(sent.has_attention_mask());
  EXPECT_FALSE(sent.has_attention_bias());
  EXPECT_EQ(sent.output_dtype(), v1::DATA_TYPE_UNSPECIFIED);
}

TEST_F(ClientTest, AttendReturnsTensorsAndExecution) {
  AttendRequest request = SmallAttend();
  request.return_attention_probabilities = true;
  const auto result = client_.Attend(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->output.shape, (std::vector<int64_t>{1, 2, 4}));
  EXPECT_THAT(ToFloats(result->output).value(), testing::ElementsAreArray(kSmallValues));
  ASSERT_TRUE(result->attention_probabilities.has_value());
  EXPECT_EQ(result->execution.queue, absl::Microseconds(1500));
  EXPECT_EQ(result->execution.copy, absl::Microseconds(250));
  EXPECT_EQ(result->execution.compute, absl::Milliseconds(8));
  EXPECT_EQ(result->execution.tokens, 3);
  EXPECT_EQ(result->execution.batch_tokens, 6);
  EXPECT_EQ(result->execution.batch_requests, 2);
  EXPECT_EQ(result->execution.compute_dtype, DataType::kFloat32);
  EXPECT_EQ(result->execution.compute_type, "f32");
}

TEST_F(ClientTest, EncodeSendsEveryField) {
  EncodeRequest request;
  request.model = "m";
  request.layers = LayerSpan{.first = 2, .count = 4};
  request.layout = Layout::kSequenceFirst;
  request.token_ids = Int64Tensor({1, 2}, {101, 102});
  request.token_type_ids = Int64Tensor({1, 2}, {0, 1});
  request.position_ids = Int64Tensor({1, 2}, {5, 6});
  request.attention_mask = Int64Tensor({1, 2}, {1, 1});
  request.lengths = {2};
  request.attention_bias = FloatTensor({1, 1, 1, 1}, {0.0f});
  request.omit_hidden_states = true;
  request.intermediate_layers = {2, 3};
  request.attention_layers = {4};
  request.head_gates = {1, 0.5f};
  request.query_rows = {0, 1};
  request.attention_form = AttentionForm::kTopKeys;
  request.attention_top_k = 1;
  request.return_pooled = true;
  request.pooling = Pooling::kLastToken;
  request.normalize_pooled = true;
  request.return_token_vectors = true;
  request.normalize_token_vectors = true;
  request.prompt_tokens = {3, 0};
  request.task = "query";
  request.return_sparse = true;
  request.output_dtype = DataType::kFloat16;
  request.request_id = "r2";
  const auto result = client_.Encode(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_FALSE(result->hidden_states.has_value());
  ASSERT_TRUE(result->pooled.has_value());
  ASSERT_TRUE(result->sparse.has_value());
  EXPECT_THAT(result->sparse->counts, ElementsAre(2, 1));
  EXPECT_THAT(*ToInt64s(result->sparse->indices), ElementsAre(3, 7, 5));
  EXPECT_THAT(*ToFloats(result->sparse->weights), ElementsAre(0.5f, 1.5f, 0.25f));
  ASSERT_THAT(result->intermediate, SizeIs(2));
  EXPECT_EQ(result->intermediate[1].layer, 3u);
  ASSERT_THAT(result->attention_probabilities, SizeIs(1));
  EXPECT_EQ(result->attention_probabilities[0].layer, 4u);
  ASSERT_THAT(result->attention_keys, SizeIs(1));
  EXPECT_EQ(result->attention_keys[0].layer, 4u);

  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_EQ(sent.model(), "m");
  EXPECT_EQ(sent.layers().first(), 2u);
  EXPECT_EQ(sent.layers().count(), 4u);
  EXPECT_EQ(sent.layout(), v1::SEQUENCE_FIRST);
  EXPECT_FALSE(sent.has_hidden_states());
  EXPECT_THAT(sent.token_ids().shape(), ElementsAre(1, 2));
  EXPECT_TRUE(sent.has_token_type_ids());
  EXPECT_TRUE(sent.has_position_ids());
  EXPECT_TRUE(sent.has_attention_mask());
  EXPECT_THAT(sent.lengths(), ElementsAre(2));
  EXPECT_TRUE(sent.has_attention_bias());
  EXPECT_THAT(sent.head_gates(), ElementsAre(1.0f, 0.5f));
  EXPECT_THAT(sent.query_rows(), ElementsAre(0, 1));
  EXPECT_EQ(sent.attention_form(), v1::TOP_KEYS);
  EXPECT_EQ(sent.attention_top_k(), 1u);
  EXPECT_EQ(sent.pooling(), v1::LAST_TOKEN);
  EXPECT_TRUE(sent.normalize_pooled());
  EXPECT_TRUE(sent.return_token_vectors());
  EXPECT_TRUE(sent.normalize_token_vectors());
  EXPECT_THAT(sent.prompt_tokens(), ElementsAre(3, 0));
  EXPECT_EQ(sent.task(), "query");
  EXPECT_TRUE(sent.return_sparse());
  EXPECT_EQ(sent.output_dtype(), v1::FLOAT16);
  EXPECT_EQ(sent.request_id(), "r2");
}

TEST_F(ClientTest, EncodeWithoutLayersAsksForAll) {
  ASSERT_TRUE(client_.Encode(SmallEncode()).ok());
  EXPECT_FALSE(server_.encoded().at(0).has_layers());
}

TEST_F(ClientTest, ErrorsCarryTheServersCodeAndMessage) {
  server_.set_status({grpc::StatusCode::RESOURCE_EXHAUSTED, "queue full: 64 requests"});
  EXPECT_EQ(client_.Attend(SmallAttend()).status(),
            absl::ResourceExhaustedError("queue full: 64 requests"));
  EXPECT_EQ(client_.Encode(SmallEncode()).status(),
            absl::ResourceExhaustedError("queue full: 64 requests"));
}

TEST_F(ClientTest, UnsoundAnswerIsInternal) {
  server_.set_unsound(true);
  const absl::Status status = client_.Attend(SmallAttend()).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("invalid output: a float32 tensor of shape [1, 2, 4, 2] takes 64 bytes, "
                        "not 32"));
}

TEST_F(ClientTest, DeadlineReachesTheServerAndEndsTheCall) {
  // It is shared with the server, which may hold a late call beyond this test.
  const auto cancelled_calls = std::make_shared<std::atomic<int>>(0);
  server_.set_before_answer([cancelled_calls](grpc::ServerContext& context) {
    EXPECT_LT(context.deadline(), std::chrono::system_clock::now() + std::chrono::minutes(10));
    while (!context.IsCancelled()) std::this_thread::yield();
    ++*cancelled_calls;
  });
  // On a busy machine a call may reach its deadline before it reaches the server.
  for (absl::Duration timeout = absl::Milliseconds(50); *cancelled_calls == 0; timeout *= 2) {
    const auto result = client_.Attend(SmallAttend(), {.timeout = timeout});
    EXPECT_EQ(result.status().code(), absl::StatusCode::kDeadlineExceeded);
  }
}

TEST_F(ClientTest, MessagesBeyondGrpcsDefaultPassBothWays) {
  AttendRequest request;
  request.hidden_states = {DataType::kFloat32, {1, 2048, 1024}, std::string(8 << 20, '\0')};
  const auto result = client_.Attend(request);
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_THAT(result->output.data, SizeIs(8 << 20));
}

TEST_F(ClientTest, MessageLimitCanBeLowered) {
  const Client small = Client::Connect(server_.address(), {.max_message_bytes = 16});
  EXPECT_EQ(small.Attend(SmallAttend()).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST(ClientWithoutServerTest, IsUnavailable) {
  const Client client = Client::Connect(DeadAddress());
  EXPECT_EQ(client.Attend(SmallAttend()).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client.CheckHealth("").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(client.ListModels().status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(ClientTest, ListsAndDescribesModels) {
  EXPECT_THAT(client_.ListModels().value(), ElementsAre("a", "b"));
  const auto model = client_.GetModel("b");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->name(), "b");
  EXPECT_EQ(model->family(), "bert");
  EXPECT_EQ(model->layers(), 12);
  EXPECT_EQ(model->layer().hidden_size(), 4);
  EXPECT_EQ(model->layer().norm_placement(), "post");
  EXPECT_EQ(model->layer().norm_kind(), "rms");
  EXPECT_TRUE(model->layer().has_gate());
  EXPECT_TRUE(model->layer().has_branch_scale());
  EXPECT_EQ(model->layer().relative_positions(), "rotary");
  EXPECT_EQ(model->layer().attention(), "additive");
  EXPECT_EQ(model->layer().window(), 2);
  EXPECT_EQ(model->layer().window_block(), 64);
  EXPECT_EQ(model->layer().first_global_blocks(), 1);
  EXPECT_EQ(model->layer().last_global_blocks(), 3);
  EXPECT_EQ(model->layer().full_attention_up_to(), 704);
  ASSERT_THAT(model->block_pairs(), SizeIs(1));
  EXPECT_EQ(model->block_pairs(0).query(), 5);
  EXPECT_EQ(model->block_pairs(0).key(), 9);
  EXPECT_THAT(model->global_blocks(), ElementsAre(12));
  EXPECT_EQ(model->weight_sets(), 4);
  ASSERT_THAT(model->pruned_layers(), SizeIs(2));
  EXPECT_EQ(model->pruned_layers(0).layer(), 3);
  EXPECT_THAT(model->pruned_layers(0).heads(), ElementsAre(1));
  EXPECT_TRUE(model->has_exit_norm());
  ASSERT_EQ(model->stage_costs_size(), 3);
  EXPECT_EQ(model->stage_costs(0).stage(), "attention.qkv");
  EXPECT_EQ(model->stage_costs(0).flops_per_token(), 96);
  EXPECT_EQ(model->stage_costs(1).flops_per_pair(), 8);
  EXPECT_EQ(model->stage_costs(2).flops_per_sequence(), 32);
  EXPECT_EQ(model->embeddings().vocabulary(), 100);
  EXPECT_EQ(model->front().features(), 196);
  EXPECT_EQ(model->front().own_rows(), 2);
  EXPECT_EQ(model->front().feature_width(), 4);
  EXPECT_FALSE(model->front().needs_every());
  EXPECT_THAT(model->windowed_layers(), ElementsAre(1));
  EXPECT_EQ(model->gemm(), "mixed");
  EXPECT_EQ(model->limits().max_request_tokens(), 16384);
  EXPECT_EQ(model->thread_plan().isa(), "avx2");
  EXPECT_THAT(model->thread_plan().instance_nodes(), ElementsAre(1));
  EXPECT_EQ(model->thread_plan().rows_per_thread_from(), 512);
  EXPECT_THAT(model->unused_tensors(), ElementsAre("cls.bias"));
  EXPECT_EQ(client_.GetModel("c").status(), absl::NotFoundError("no model 'c'"));
}

TEST_F(ClientTest, GetsTokenizers) {
  const auto tokenizer = client_.GetTokenizer("a");
  ASSERT_TRUE(tokenizer.ok()) << tokenizer.status();
  EXPECT_EQ(tokenizer->tokenizer_json(), "{}");
  EXPECT_EQ(tokenizer->max_sequence_length(), 256);
  EXPECT_EQ(client_.GetTokenizer("b").status(), absl::NotFoundError("no tokenizer"));
}

TEST_F(ClientTest, ChecksHealth) {
  EXPECT_EQ(client_.CheckHealth("").value(), Health::kServing);
  EXPECT_EQ(client_.CheckHealth("a").value(), Health::kServing);
  EXPECT_EQ(client_.CheckHealth("c").status().code(), absl::StatusCode::kNotFound);
  server_.set_healthy(false);
  EXPECT_EQ(client_.CheckHealth("").value(), Health::kNotServing);
}

TEST_F(ClientTest, AsyncCallsAnswerOnce) {
  absl::BlockingCounter done(2);
  client_.AttendAsync(SmallAttend(), {}, [&](absl::StatusOr<AttendResult> result) {
    EXPECT_EQ(result.value().output.shape, (std::vector<int64_t>{1, 2, 4}));
    done.DecrementCount();
  });
  client_.EncodeAsync(SmallEncode(), {}, [&](absl::StatusOr<EncodeResult> result) {
    EXPECT_TRUE(result.value().hidden_states.has_value());
    done.DecrementCount();
  });
  done.Wait();
}

TEST_F(ClientTest, AsyncCallsCarryErrors) {
  server_.set_status({grpc::StatusCode::UNAVAILABLE, "draining"});
  absl::BlockingCounter done(3);
  const auto expect_error = [&](const absl::Status& status) {
    EXPECT_EQ(status, absl::UnavailableError("draining"));
    done.DecrementCount();
  };
  client_.AttendAsync(SmallAttend(), {}, [&](auto result) { expect_error(result.status()); });
  client_.EncodeAsync(SmallEncode(), {}, [&](auto result) { expect_error(result.status()); });
  client_.SendAsync(PreparedRequest::Attend(SmallAttend()), {},
                    [&](auto result) { expect_error(result.status()); });
  done.Wait();
}

TEST_F(ClientTest, CallbackOutlivesTheClient) {
  absl::Notification answered;
  absl::Notification go_on;
  server_.set_before_answer([&](grpc::ServerContext&) { go_on.WaitForNotification(); });
  {
    const Client shortlived = Client::Connect(server_.address(), {.own_connection = true});
    shortlived.AttendAsync(SmallAttend(), {}, [&](absl::StatusOr<AttendResult> result) {
      EXPECT_TRUE(result.ok()) << result.status();
      answered.Notify();
    });
  }
  go_on.Notify();
  answered.WaitForNotification();
}

TEST_F(ClientTest, FetchedAnswersKeepTheirTensors) {
  absl::Notification done;
  client_.FetchAsync(PreparedRequest::Attend(SmallAttend()), {},
                     [&](const absl::StatusOr<RawAnswer>& answer) {
                       ASSERT_TRUE(answer.ok()) << answer.status();
                       v1::AttendResponse response;
                       EXPECT_TRUE(response.ParseFromString(answer->content));
                       EXPECT_EQ(response.output().shape_size(), 3);
                       EXPECT_FALSE(response.has_execution());
                       EXPECT_EQ(answer->execution.compute, absl::Milliseconds(8));
                       done.Notify();
                     });
  done.WaitForNotification();
}

TEST_F(ClientTest, RawRequestsCallAnyMethod) {
  absl::Notification listed;
  client_.FetchAsync(PreparedRequest::Raw("/attendant.v1.EncoderService/ListModels", ""), {},
                     [&](const absl::StatusOr<RawAnswer>& answer) {
                       ASSERT_TRUE(answer.ok()) << answer.status();
                       v1::ListModelsResponse response;
                       EXPECT_TRUE(response.ParseFromString(answer->content));
                       EXPECT_EQ(response.names_size(), 2);
                       listed.Notify();
                     });
  listed.WaitForNotification();
  absl::Notification refused;
  client_.FetchAsync(PreparedRequest::Raw("/attendant.v1.EncoderService/Dance", ""), {},
                     [&](const absl::StatusOr<RawAnswer>& answer) {
                       EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnimplemented);
                       refused.Notify();
                     });
  refused.WaitForNotification();
}

TEST_F(ClientTest, PreparedRequestsCanBeSentAgain) {
  const PreparedRequest attend = PreparedRequest::Attend(SmallAttend());
  const PreparedRequest encode = PreparedRequest::Encode(SmallEncode());
  EXPECT_GT(attend.bytes(), static_cast<int64_t>(sizeof(kSmallValues)));
  constexpr int kTimes = 20;
  absl::BlockingCounter done(2 * kTimes);
  const auto count = [&](const absl::StatusOr<Execution>& execution) {
    EXPECT_EQ(execution.value().compute, absl::Milliseconds(8));
    done.DecrementCount();
  };
  for (int i = 0; i < kTimes; ++i) {
    client_.SendAsync(attend, {}, count);
    client_.SendAsync(encode, {}, count);
  }
  done.Wait();
  ASSERT_THAT(server_.attended(), SizeIs(kTimes));
  for (const v1::AttendRequest& sent : server_.attended()) {
    EXPECT_EQ(sent.hidden_states().data(), SmallAttend().hidden_states.data);
  }
  EXPECT_THAT(server_.encoded(), SizeIs(kTimes));
}

TEST_F(ClientTest, StreamAnswersOutOfOrderAndGoesOnAfterAnError) {
  const std::unique_ptr<EncodeStream> stream = client_.OpenEncodeStream();
  EXPECT_TRUE(stream->Write(7, SmallEncode()));
  EXPECT_TRUE(stream->Write(8, EncodeRequest()));
  EXPECT_TRUE(stream->Write(9, SmallEncode()));
  stream->WritesDone();
  std::vector<uint64_t> order;
  std::map<uint64_t, absl::Status> answers;
  while (std::optional<EncodeStream::Answer> answer = stream->Read()) {
    order.push_back(answer->id);
    answers[answer->id] = answer->result.status();
  }
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_THAT(order, ElementsAre(9, 8, 7));
  EXPECT_TRUE(answers[7].ok());
  EXPECT_EQ(answers[8], absl::InvalidArgumentError("hidden_states: missing"));
  EXPECT_TRUE(answers[9].ok());
}

TEST_F(ClientTest, StreamSaysWhereAPartStands) {
  const std::unique_ptr<EncodeStream> stream = client_.OpenEncodeStream();
  EXPECT_TRUE(stream->Write(1, SmallEncode()));
  EXPECT_TRUE(stream->Write(2, SmallEncode(), {.sequence = 5}));
  EXPECT_TRUE(stream->Write(3, SmallEncode(), {.sequence = 5, .first_token = 0, .ends = true}));
  stream->WritesDone();
  while (stream->Read()) {
  }
  EXPECT_TRUE(stream->Finish().ok());
  const std::vector<v1::EncodeStreamRequest> sent = server_.streamed();
  ASSERT_EQ(sent.size(), 3u);
  EXPECT_EQ(sent[0].sequence(), 0u);
  EXPECT_EQ(sent[1].sequence(), 5u);
  EXPECT_FALSE(sent[1].has_first_token());
  EXPECT_FALSE(sent[1].ends());
  EXPECT_TRUE(sent[2].has_first_token());
  EXPECT_TRUE(sent[2].ends());
}

TEST_F(ClientTest, StreamsOwnErrorComesFromFinish) {
  server_.set_status({grpc::StatusCode::UNAVAILABLE, "draining"});
  const std::unique_ptr<EncodeStream> stream = client_.OpenEncodeStream();
  stream->WritesDone();
  EXPECT_FALSE(stream->Read().has_value());
  EXPECT_EQ(stream->Finish(), absl::UnavailableError("draining"));
}

TEST_F(ClientTest, UnfinishedStreamIsCancelled) {
  const std::unique_ptr<EncodeStream> stream = client_.OpenEncodeStream();
  EXPECT_TRUE(stream->Write(1, SmallEncode()));
}

TEST_F(ClientTest, LoadStreamAnswersWithTheExecutionOrTheItemsError) {
  std::vector<absl::StatusOr<Execution>> answers(2);
  {
    const std::unique_ptr<LoadStream> stream = client_.OpenLoadStream();
    stream->SendAsync(PreparedRequest::Encode(SmallEncode()),
                      [&](absl::StatusOr<Execution> answer) { answers[0] = std::move(answer); });
    stream->SendAsync(PreparedRequest::Encode(EncodeRequest()),
                      [&](absl::StatusOr<Execution> answer) { answers[1] = std::move(answer); });
  }
  ASSERT_TRUE(answers[0].ok()) << answers[0].status();
  EXPECT_EQ(answers[0]->queue, absl::Microseconds(1500));
  EXPECT_EQ(answers[1].status(), absl::InvalidArgumentError("hidden_states: missing"));
}

// The fake server answers nothing before the stream is closed.
TEST_F(ClientTest, LoadStreamGivesUpARequestThatIsNotAnsweredInTime) {
  absl::Notification failed;
  const std::unique_ptr<LoadStream> stream =
      client_.OpenLoadStream({.timeout = absl::Milliseconds(1)});
  stream->SendAsync(PreparedRequest::Encode(SmallEncode()),
                    [&](const absl::StatusOr<Execution>& answer) {
                      EXPECT_EQ(answer.status(),
                                absl::DeadlineExceededError("no response on the stream in time"));
                      failed.Notify();
                    });
  failed.WaitForNotification();
}

TEST_F(ClientTest, LoadStreamWithTimeToSpareIsAnswered) {
  absl::Status status = absl::UnknownError("not answered");
  {
    const std::unique_ptr<LoadStream> stream = client_.OpenLoadStream({.timeout = absl::Hours(1)});
    stream->SendAsync(PreparedRequest::Encode(SmallEncode()),
                      [&](const absl::StatusOr<Execution>& answer) { status = answer.status(); });
  }
  EXPECT_TRUE(status.ok()) << status;
}

TEST_F(ClientTest, LoadStreamThatBreaksFailsItsRequestsAndIsOpenedAnew) {
  const std::unique_ptr<LoadStream> stream = Client::Connect(DeadAddress()).OpenLoadStream();
  for (int i = 0; i < 2; ++i) {
    absl::Notification failed;
    stream->SendAsync(PreparedRequest::Encode(SmallEncode()),
                      [&](const absl::StatusOr<Execution>& answer) {
                        EXPECT_EQ(answer.status().code(), absl::StatusCode::kUnavailable);
                        failed.Notify();
                      });
    failed.WaitForNotification();
  }
}

TEST_F(ClientTest, TakesAUrl) {
  EXPECT_TRUE(Client::Connect("http://" + server_.address() + "/").ListModels().ok());
}

TEST_F(ClientTest, AnAddressThatCannotBeOneFailsEachCall) {
  const Client client = Client::Connect("http://localhost:8002/v2");
  const absl::Status expected = absl::InvalidArgumentError(
      "address: expected HOST:PORT, the server's gRPC port, without a path; got "
      "\"http://localhost:8002/v2\"");
  EXPECT_EQ(client.ListModels().status(), expected);
  EXPECT_EQ(client.CheckHealth("").status(), expected);
  absl::Notification failed;
  client.EncodeAsync(SmallEncode(), {}, [&](const absl::StatusOr<EncodeResult>& result) {
    EXPECT_EQ(result.status(), expected);
    failed.Notify();
  });
  failed.WaitForNotification();
}

// A proxy at an address where nobody listens.
TEST_F(ClientTest, TheEnvironmentsProxyIsForThoseWhoAskForIt) {
  const std::string proxy = "http://" + DeadAddress();
  for (const char* variable : {"grpc_proxy", "https_proxy", "http_proxy"}) {
    ASSERT_EQ(setenv(variable, proxy.c_str(), 1), 0);
    EXPECT_TRUE(Client::Connect(server_.address()).ListModels().ok()) << variable;
    EXPECT_EQ(Client::Connect(server_.address(), {.retry = false, .proxy = true})
                  .ListModels()
                  .status()
                  .code(),
              absl::StatusCode::kUnavailable)
        << variable;
    unsetenv(variable);
  }
}

}  // namespace client_test
}  // namespace attendant::client
