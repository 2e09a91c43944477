#include "tests/client/support/fake_server.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace attendant::client {
namespace {

constexpr int64_t kTokenWidth = 2;

std::unique_ptr<grpc::Server> Listen(grpc::Service* service, int& port) {
  grpc::EnableDefaultHealthCheckService(true);
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(-1);
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(service);
  return builder.BuildAndStart();
}

void SetExecution(int64_t tokens, v1::Execution* execution) {
  execution->set_queue_ns(1'500'000);
  execution->set_copy_ns(250'000);
  execution->set_compute_ns(8'000'000);
  execution->set_tokens(tokens);
  execution->set_batch_tokens(2 * tokens);
  execution->set_batch_requests(2);
  execution->set_compute_dtype(v1::FLOAT32);
  execution->set_compute_type("f32");
}

// Two vectors: 0.5 and 1.5 at 3 and 7, and 0.25 at 5.
v1::SparseVectors SomeSparse() {
  v1::SparseVectors sparse;
  sparse.add_counts(2);
  sparse.add_counts(1);
  sparse.mutable_indices()->set_dtype(v1::INT32);
  sparse.mutable_indices()->add_shape(3);
  sparse.mutable_indices()->set_data(std::string("\3\0\0\0\7\0\0\0\5\0\0\0", 12));
  sparse.mutable_weights()->set_dtype(v1::FLOAT32);
  sparse.mutable_weights()->add_shape(3);
  sparse.mutable_weights()->set_data(std::string("\0\0\0\x3f\0\0\xc0\x3f\0\0\x80\x3e", 12));
  return sparse;
}

v1::Tensor Rows(const std::vector<float>& values, int64_t width) {
  v1::Tensor rows;
  rows.set_dtype(v1::FLOAT32);
  rows.add_shape(static_cast<int64_t>(values.size()) / width);
  rows.add_shape(width);
  rows.set_data(std::string(reinterpret_cast<const char*>(values.data()), 4 * values.size()));
  return rows;
}

void EncodedTexts(const v1::EncodeRequest& request, int classes, v1::EncodeResponse* response) {
  const bool classifies = request.pooling() == v1::CLASSIFIER;
  const auto width = static_cast<size_t>(classifies ? classes : kTokenWidth);
  std::vector<float> rows(width * static_cast<size_t>(request.texts_size()));
  size_t tokens = 0;
  for (int i = 0; i < request.texts_size(); ++i) {
    const std::string& scored =
        request.text_pairs_size() > 0 ? request.text_pairs(i) : request.texts(i);
    if (classifies) rows[i * width] = static_cast<float>(scored.size()) / 10;
    response->add_lengths(static_cast<int64_t>(request.texts(i).size()));
    tokens += request.texts(i).size();
  }
  if (request.return_pooled()) {
    *response->mutable_pooled() = Rows(rows, static_cast<int64_t>(width));
  }
  if (request.return_token_vectors()) *response->mutable_token_vectors() = Rows({1, 2}, 2);
  if (request.has_query_vectors()) {
    std::vector<float> scores;
    for (const std::string& text : request.texts()) {
      scores.push_back(static_cast<float>(text.size()));
    }
    *response->mutable_scores() = Rows(scores, 1);
    response->mutable_scores()->mutable_shape()->RemoveLast();
  }
  if (!request.omit_hidden_states()) {
    *response->mutable_hidden_states() =
        Rows(std::vector<float>(tokens * kTokenWidth), kTokenWidth);
  }
  SetExecution(static_cast<int64_t>(tokens), response->mutable_execution());
}

void Encoded(const v1::EncodeRequest& request, v1::EncodeResponse* response) {
  v1::Tensor output = request.hidden_states();
  if (request.has_token_ids()) {
    output.set_dtype(v1::FLOAT32);
    *output.mutable_shape() = request.token_ids().shape();
    output.add_shape(kTokenWidth);
    int64_t bytes = 4;
    for (int64_t dimension : output.shape()) bytes *= dimension;
    output.set_data(std::string(static_cast<size_t>(bytes), '\0'));
  }
  if (!request.omit_hidden_states()) *response->mutable_hidden_states() = output;
  if (request.return_pooled()) *response->mutable_pooled() = output;
  if (request.return_token_vectors()) *response->mutable_token_vectors() = output;
  if (request.return_sparse()) *response->mutable_sparse() = SomeSparse();
  for (uint32_t layer : request.intermediate_layers()) {
    v1::LayerTensor* added = response->add_intermediate();
    added->set_layer(layer);
    *added->mutable_tensor() = output;
  }
  for (uint32_t layer : request.attention_layers()) {
    v1::LayerTensor* added = response->add_attention_probabilities();
    added->set_layer(layer);
    *added->mutable_tensor() = output;
    if (request.attention_form() == v1::TOP_KEYS) *response->add_attention_keys() = *added;
  }
  SetExecution(3, response->mutable_execution());
}

}  // namespace

FakeServer::FakeServer() {
  int port = 0;
  server_ = Listen(this, port);
  address_ = absl::StrCat("127.0.0.1:", port);
  set_healthy(true);
}

FakeServer::~FakeServer() { server_->Shutdown(); }

void FakeServer::set_status(grpc::Status status, int calls) {
  absl::MutexLock lock(&mutex_);
  status_ = std::move(status);
  calls_to_fail_ = calls;
}

void FakeServer::set_before_answer(std::function<void(grpc::ServerContext&)> hook) {
  absl::MutexLock lock(&mutex_);
  before_answer_ = std::move(hook);
}

void FakeServer::set_unsound(bool unsound) {
  absl::MutexLock lock(&mutex_);
  unsound_ = unsound;
}

void FakeServer::set_classes(int classes) {
  absl::MutexLock lock(&mutex_);
  classes_ = classes;
}

void FakeServer::set_multi_vector(bool multi_vector) {
  absl::MutexLock lock(&mutex_);
  multi_vector_ = multi_vector;
}

void FakeServer::set_truncates_left(bool truncates_left) {
  absl::MutexLock lock(&mutex_);
  truncates_left_ = truncates_left;
}

void FakeServer::set_healthy(bool healthy) {
  grpc::HealthCheckServiceInterface* service = server_->GetHealthCheckService();
  service->SetServingStatus(healthy);
  service->SetServingStatus("a", healthy);
}

std::vector<v1::AttendRequest> FakeServer::attended() const {
  absl::MutexLock lock(&mutex_);
  return attended_;
}

std::vector<v1::EncodeRequest> FakeServer::encoded() const {
  absl::MutexLock lock(&mutex_);
  return encoded_;
}

std::vector<v1::PutMemoryRequest> FakeServer::put() const {
  absl::MutexLock lock(&mutex_);
  return put_;
}

std::vector<v1::TokenizeRequest> FakeServer::tokenized() const {
  absl::MutexLock lock(&mutex_);
  return tokenized_;
}

std::vector<v1::EncodeStreamRequest> FakeServer::streamed() const {
  absl::MutexLock lock(&mutex_);
  return streamed_;
}

grpc::Status FakeServer::Ready(grpc::ServerContext& context) {
  std::function<void(grpc::ServerContext&)> hook;
  {
    absl::MutexLock lock(&mutex_);
    if (!status_.ok() && calls_to_fail_-- > 0) return status_;
    hook = before_answer_;
  }
  if (hook) hook(context);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Attend(grpc::ServerContext* context, const v1::AttendRequest* request,
                                v1::AttendResponse* response) {
  bool unsound = false;
  {
    absl::MutexLock lock(&mutex_);
    attended_.push_back(*request);
    unsound = unsound_;
  }
  if (grpc::Status status = Ready(*context); !status.ok()) return status;
  *response->mutable_output() = request->hidden_states();
  if (unsound) response->mutable_output()->add_shape(2);
  if (request->return_attention_probabilities()) {
    *response->mutable_attention_probabilities() = request->hidden_states();
    if (request->attention_form() == v1::TOP_KEYS) {
      *response->mutable_attention_keys() = request->hidden_states();
    }
  }
  if (request->return_weighted_values()) {
    *response->mutable_weighted_values() = request->hidden_states();
  }
  SetExecution(3, response->mutable_execution());
  return grpc::Status::OK;
}

grpc::Status FakeServer::PutMemory(grpc::ServerContext* context,
                                   const v1::PutMemoryRequest* request,
                                   v1::PutMemoryResponse* response) {
  {
    absl::MutexLock lock(&mutex_);
    put_.push_back(*request);
  }
  if (grpc::Status status = Ready(*context); !status.ok()) return status;
  response->set_handle("h1");
  response->set_bytes(96);
  response->set_expires_unix_ms(1'000'000);
  SetExecution(3, response->mutable_execution());
  return grpc::Status::OK;
}

grpc::Status FakeServer::DropMemory(grpc::ServerContext*, const v1::DropMemoryRequest* request,
                                    v1::DropMemoryResponse* response) {
  if (request->handle() != "h1") return {grpc::StatusCode::NOT_FOUND, "no such memory"};
  response->set_bytes(96);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Encode(grpc::ServerContext* context, const v1::EncodeRequest* request,
                                v1::EncodeResponse* response) {
  {
    absl::MutexLock lock(&mutex_);
    encoded_.push_back(*request);
  }
  if (grpc::Status status = Ready(*context); !status.ok()) return status;
  if (request->texts_size() == 0) {
    Encoded(*request, response);
    return grpc::Status::OK;
  }
  absl::MutexLock lock(&mutex_);
  EncodedTexts(*request, classes_, response);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Tokenize(grpc::ServerContext*, const v1::TokenizeRequest* request,
                                  v1::TokenizeResponse* response) {
  absl::MutexLock lock(&mutex_);
  tokenized_.push_back(*request);
  for (const std::string& text : request->texts()) {
    const auto size = static_cast<uint32_t>(text.size());
    v1::TextTokens* tokens = response->add_texts();
    const auto add = [&](uint32_t id, uint32_t source, uint32_t end, const std::string& token) {
      tokens->add_ids(id);
      tokens->add_token_type_ids(0);
      tokens->add_sources(source);
      tokens->add_begins(0);
      tokens->add_ends(end);
      tokens->add_byte_begins(0);
      tokens->add_byte_ends(end);
      tokens->add_tokens(token);
    };
    add(101, 2, 0, "[CLS]");
    add(7, 0, size, "▁" + text);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::EncodeStream(
    grpc::ServerContext*,
    grpc::ServerReaderWriter<v1::EncodeStreamResponse, v1::EncodeStreamRequest>* stream) {
  std::vector<v1::EncodeStreamRequest> requests;
  v1::EncodeStreamRequest request;
  while (stream->Read(&request)) requests.push_back(request);
  {
    absl::MutexLock lock(&mutex_);
    streamed_ = requests;
  }
  while (!requests.empty()) {
    v1::EncodeStreamResponse answer;
    answer.set_id(requests.back().id());
    if (requests.back().request().has_hidden_states()) {
      Encoded(requests.back().request(), answer.mutable_response());
    } else {
      answer.mutable_error()->set_code(grpc::StatusCode::INVALID_ARGUMENT);
      answer.mutable_error()->set_message("hidden_states: missing");
    }
    stream->Write(answer);
    requests.pop_back();
  }
  absl::MutexLock lock(&mutex_);
  return status_;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                                    v1::ListModelsResponse* response) {
  for (const std::string name : {"a", "b"}) response->add_names(name);
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetModel(grpc::ServerContext*, const v1::GetModelRequest* request,
                                  v1::GetModelResponse* response) {
  const std::string& name = request->model();
  if (!name.empty() && name != "a" && name != "b") {
    return {grpc::StatusCode::NOT_FOUND, absl::StrCat("no model '", name, "'")};
  }
  response->set_name(name);
  if (name.empty()) response->set_name("a");
  response->set_family("bert");
  response->set_layers(12);
  v1::LayerDescription* layer = response->mutable_layer();
  layer->set_hidden_size(4);
  layer->set_key_input_width(4);
  layer->set_value_input_width(4);
  layer->set_heads(2);
  layer->set_key_width(2);
  layer->set_value_width(2);
  layer->set_score_scale(0.125f);
  layer->set_norm_placement("post");
  layer->set_activation("gelu");
  layer->set_has_output_projection(true);
  layer->set_norm_kind("rms");
  layer->set_feed_forward_width(8);
  layer->set_has_gate(true);
  layer->set_has_branch_scale(true);
  layer->set_relative_positions("rotary");
  layer->set_attention("additive");
  layer->set_window(2);
  layer->set_window_block(64);
  layer->set_first_global_blocks(1);
  layer->set_last_global_blocks(3);
  layer->set_full_attention_up_to(704);
  v1::BlockPair* pair = response->add_block_pairs();
  pair->set_query(5);
  pair->set_key(9);
  response->add_global_blocks(12);
  response->set_weight_sets(4);
  response->set_has_exit_norm(true);
  v1::PrunedLayer* pruned = response->add_pruned_layers();
  pruned->set_layer(3);
  pruned->add_heads(1);
  response->add_pruned_layers()->set_layer(5);
  v1::StageCost* qkv = response->add_stage_costs();
  qkv->set_stage("attention.qkv");
  qkv->set_flops_per_token(96);
  v1::StageCost* scores = response->add_stage_costs();
  scores->set_stage("attention.scores");
  scores->set_flops_per_pair(8);
  v1::StageCost* dense = response->add_stage_costs();
  dense->set_stage("pooling.dense");
  dense->set_flops_per_sequence(32);
  response->mutable_embeddings()->set_vocabulary(100);
  response->mutable_embeddings()->set_longest_sequence(512);
  response->mutable_front()->set_own_rows(2);
  response->mutable_front()->set_features(196);
  response->mutable_front()->set_feature_width(4);
  response->add_windowed_layers(1);
  response->set_compute_dtype(v1::FLOAT32);
  response->set_compute_type("f32");
  response->set_gemm("mixed");
  response->mutable_limits()->set_max_request_tokens(16384);
  response->mutable_thread_plan()->set_isa("avx2");
  response->mutable_thread_plan()->add_instance_nodes(1);
  response->mutable_thread_plan()->set_rows_per_thread_from(512);
  response->add_unused_tensors("cls.bias");
  response->set_takes_texts(response->name() == "a");
  if (!response->takes_texts()) response->set_why_no_texts("its directory has no tokenizer.json");
  response->set_text_pooling(v1::MEAN);
  response->set_class_scores(v1::SCORES_SOFTMAX);
  response->set_rank_scores(v1::SCORES_SIGMOID);
  absl::MutexLock lock(&mutex_);
  response->set_classes(classes_);
  response->set_multi_vector(multi_vector_);
  response->mutable_embeddings()->set_truncates_left(truncates_left_);
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetTokenizer(grpc::ServerContext*, const v1::GetTokenizerRequest* request,
                                      v1::GetTokenizerResponse* response) {
  if (request->model() == "b") return {grpc::StatusCode::NOT_FOUND, "no tokenizer"};
  response->set_tokenizer_json("{}");
  response->set_max_sequence_length(256);
  response->set_lower_case(true);
  (*response->mutable_prompts())["query"] = "query: ";
  (*response->mutable_prompts())["passage"] = "passage:\n";
  response->set_default_prompt("query");
  response->add_labels("good");
  response->add_labels("bad");
  (*response->mutable_special_ids())["sep"] = 102;
  (*response->mutable_special_ids())["cls"] = 101;
  return grpc::Status::OK;
}

std::string DeadAddress() {
  int port = 0;
  v1::EncoderService::Service service;
  std::unique_ptr<grpc::Server> server = Listen(&service, port);
  server->Shutdown();
  return absl::StrCat("127.0.0.1:", port);
}

}  // namespace attendant::client
