#include "server/text_calls/text_call.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "server/account/request_recorder.h"
#include "server/base/fault.h"
#include "server/execution/prepare_request.h"
#include "server/models/model_message.h"
#include "server/request/parse_request.h"
#include "server/text_calls/text_models.h"

namespace attendant::server {
namespace {

// Memory per JSON value while a body is parsed, in addition to its text.
constexpr int64_t kValueBytes = 72;

std::string_view View(const grpc::Slice& slice) {
  return {reinterpret_cast<const char*>(slice.begin()), slice.size()};
}

// The most memory that reading the body takes: one piece, its texts in the parser's tree, in its
// buffer and in the task, and its values.
int64_t ReadingBytes(const MessageSlices& body) {
  int64_t bytes = 0, values = 1;
  for (const grpc::Slice& slice : body) {
    bytes += static_cast<int64_t>(slice.size());
    values += std::count_if(slice.begin(), slice.end(),
                            [](uint8_t c) { return c == ',' || c == '[' || c == '{' || c == ':'; });
  }
  return 4 * bytes + values * kValueBytes;
}

int64_t BytesOf(const TextTask& task) {
  int64_t bytes = 0;
  for (const TextInput& input : task.inputs) {
    bytes += static_cast<int64_t>(sizeof(TextInput) + input.text.capacity());
    if (input.pair) bytes += static_cast<int64_t>(input.pair->capacity());
    if (input.ids) bytes += static_cast<int64_t>(input.ids->capacity() * sizeof(int32_t));
  }
  return bytes;
}

int64_t BytesOf(const PartMessage& message) {
  int64_t bytes = 0;
  for (const auto& [path, payload] : message.payloads) bytes += payload.size();
  return bytes;
}

}  // namespace

TextCall::TextCall(BodyCallArgs entry, const TextRoute& route, std::string model,
                   absl::Duration timeout)
    : BodyCall(std::move(entry)),
      route_(route),
      model_name_(std::move(model)),
      deadline_(started_ + timeout) {}

HttpAnswer TextCall::AnswerOf(const absl::Status& error) const {
  return TextErrorAnswer(route_.errors, error, RetryAfter(context_));
}

absl::Status TextCall::OnMessage(MessageSlices body) {
  RETURN_IF_ERROR(ReadTask(std::move(body)));
  RETURN_IF_ERROR(FindModel());
  RETURN_IF_ERROR(BeginResult());
  Divide();
  return Work();
}

absl::Status TextCall::ReadTask(MessageSlices slices) {
  RETURN_IF_ERROR(Charge(memory_.amount() + ReadingBytes(slices), HeldFor::kReceiving));
  std::string joined;
  if (slices.size() > 1) {
    joined.reserve(static_cast<size_t>(ByteSize(slices)));
    for (const grpc::Slice& slice : slices) joined.append(View(slice));
    slices.clear();
  }
  TextRequest request = {slices.empty() ? joined : View(slices.front()), model_name_};
  request.main_wish = [this](const std::string& name) -> absl::StatusOr<TextWish> {
    ASSIGN_OR_RETURN(const auto model, ChooseTextModel(context_.models, name, {TextWish::kTokens}));
    return MainWish(*model);
  };
  ASSIGN_OR_RETURN(TextForm form, ReadText(route_, request));
  task_ = std::move(form.task);
  write_ = std::move(form.write);
  task_bytes_ = BytesOf(task_);
  return absl::OkStatus();
}

absl::Status TextCall::FindModel() {
  const bool texts = std::any_of(task_.inputs.begin(), task_.inputs.end(),
                                 [](const TextInput& input) { return !input.ids; });
  ASSIGN_OR_RETURN(auto model, ChooseTextModel(context_.models, task_.model,
                                               {task_.wish, task_.query.has_value(), texts}));
  model_ = std::move(model);
  entry_.account.SetModel(model_->name);
  // A model with both ranks by its classes, as trained.
  task_.interacts = task_.query && !model_->encoder->description().classifier;
  RETURN_IF_ERROR(CheckIds(task_, *model_));
  CutIds();
  if (!task_.truncation) task_.truncation = DefaultTruncation(*model_->tokenization);
  const int64_t width = TextVectorWidth(*model_);
  if (task_.wish == TextWish::kVectors && task_.dimensions.value_or(1) > width) {
    return InvalidMember("dimensions",
                         absl::StrCat("1..", width, ", the width of the model's vectors"),
                         absl::StrCat(*task_.dimensions));
  }
  return absl::OkStatus();
}

void TextCall::CutIds() {
  const size_t most = static_cast<size_t>(MostTokens());
  for (TextInput& input : task_.inputs) {
    if (!input.ids || most == 0 || input.ids->size() <= most) continue;
    if (task_.truncation == v1::TRUNCATE_LEFT) {
      input.ids->erase(input.ids->begin(), input.ids->end() - static_cast<std::ptrdiff_t>(most));
    } else {
      input.ids->resize(most);
    }
  }
}

int64_t TextCall::MostTokens() const {
  const std::optional<EmbeddingShape>& embeddings = model_->encoder->description().embeddings;
  if (!embeddings || task_.truncation == v1::NO_TRUNCATION) return 0;
  return MaxSequenceLength(*embeddings, *model_->tokenization, TaskOf(task_, *model_));
}

absl::Status TextCall::BeginResult() {
  collector_.emplace(task_, *model_, task_.model.empty() ? model_->name : task_.model);
  RETURN_IF_ERROR(ChargeResult());
  collector_->Begin();
  return absl::OkStatus();
}

absl::Status TextCall::ChargeResult() {
  const int64_t most = context_.limits.max_answer_bytes, bytes = collector_->answer_bytes();
  if (bytes > most) {
    return TextError(TextErrorKind::kOversized,
                     absl::StrCat("the response: expected at most ", most,
                                  " bytes (--max-answer-bytes); got up to ", bytes,
                                  "; send fewer inputs at a time"));
  }
  return Charge(task_bytes_ + collector_->bytes(), HeldFor::kRequest);
}

void TextCall::Divide() {
  PartLimits limits;
  limits.batch_tokens = context_.limits.max_batch_tokens;
  limits.request_tokens = context_.limits.max_request_tokens;
  limits.input_tokens = MostTokens();
  limits.padded_tokens = model_->tokenization->padding.length;
  parts_ = DivideInputs(task_, limits);
  if (task_.interacts) parts_.insert(parts_.begin(), TextPart());
}

absl::Status TextCall::CheckAwaited() const {
  if (cancelled_->load(std::memory_order_relaxed))
    return absl::CancelledError("the client has disconnected");
  if (context_.clock.Now() < deadline_) return absl::OkStatus();
  return absl::DeadlineExceededError("the deadline passed before the response was ready");
}

absl::Status TextCall::Work() {
  const absl::Status status = Guarded([&] { return Turn(); });
  if (status.ok()) return status;
  std::vector<Computed> computed;
  {
    absl::MutexLock lock(&mutex_);
    abandoned_ = true;
    computed.swap(computed_);
  }
  cancelled_->store(true, std::memory_order_relaxed);
  context_.queue.FailExpired();
  return status;
}

absl::Status TextCall::Turn() {
  std::vector<Computed> computed;
  {
    absl::MutexLock lock(&mutex_);
    computed.swap(computed_);
  }
  in_flight_ -= static_cast<int64_t>(computed.size());
  if (!computed.empty()) held_back_ = false;
  const bool goes_on = MayGoOn();
  absl::Status status = CheckAwaited();
  for (Computed& one : computed) {
    if (status.ok()) status = TakeComputed(std::move(one));
  }
  if (status.ok() && goes_on) {
    status = task_.wish == TextWish::kTokens ? TokenizeNext() : SubmitNext();
  }
  if (!status.ok()) return status;
  if (taken_ == parts_.size()) return Answer();
  {
    absl::MutexLock lock(&mutex_);
    working_ = !computed_.empty() || MayGoOn();
    if (!working_) return absl::OkStatus();
  }
  RunOnWorker([this] { return Work(); });
  return absl::OkStatus();
}

bool TextCall::MayGoOn() const {
  if (next_ == parts_.size() || held_back_) return false;
  if (task_.interacts && next_ == 1 && taken_ == 0) return false;  // until the query is there
  if (in_flight_ >= context_.limits.stream_window) return false;
  return in_flight_ < 2 || context_.queue.TakesMoreOf(entry_.peer);
}

absl::Status TextCall::TakeComputed(Computed computed) {
  if (!computed.end.response.ok()) return computed.end.response.status();
  if (taken_ == 0) queued_ = computed.end.queued;
  if (computed.part.empty()) {
    collector_->TakeQuery(*std::move(computed.end.response));
  } else {
    collector_->Take(computed.part, *std::move(computed.end.response));
  }
  ++taken_;
  return ChargeResult();
}

absl::Status TextCall::TokenizeNext() {
  const TextPart& part = parts_[next_];
  const PartMessage message = MakePartMessage(task_, part, *model_);
  TextFields fields = ReadTextFields(message.request, RequestPayloads(message.payloads, {}));
  fields.add_special_tokens = task_.add_special_tokens;
  fields.places = true;
  fields.limits_texts = false;
  fields.most_tokens = int64_t{1} << 40;
  Budget::Reservation memory;
  RETURN_IF_ERROR(context_.admission.Charge(
      {entry_.peer, 2 * TokenizingBytes(fields, *model_), HeldFor::kRequest}, memory));
  const auto made = TokenizeTexts(fields, *model_, context_.clock);
  if (!made.ok()) return SplitNext(made.status());
  for (size_t i = 0; i < part.size(); ++i) collector_->TakeTokens(part[i], made->Describe(i));
  ++next_;
  ++taken_;
  return ChargeResult();
}

PartMessage TextCall::MessageOf(const TextPart& part) const {
  if (part.empty()) return MakeQueryMessage(task_, *model_);
  PartMessage message = MakePartMessage(task_, part, *model_);
  if (task_.interacts) ScoreBy(collector_->query(), message);
  return message;
}

absl::Status TextCall::SubmitNext() {
  const PartMessage message = MessageOf(parts_[next_]);
  const RequestPayloads payloads(message.payloads, {});
  Held held;
  absl::Status status = context_.admission.Charge(
      {entry_.peer, TokenizingBytes(message.request, payloads, context_), HeldFor::kRequest},
      held.memory);
  if (!status.ok()) return HoldBack(status);
  absl::StatusOr<PreparedCompute> prepared = PrepareRequest(
      ParseRequest(message.request, payloads, context_, entry_.peer), BytesOf(message), context_);
  if (absl::IsInvalidArgument(prepared.status())) return SplitNext(prepared.status());
  if (!prepared.ok()) return prepared.status();
  if (prepared->request.span.model != model_) {
    return absl::UnavailableError(
        absl::StrCat("model ", model_->name, " has just been replaced; send the request again"));
  }
  status =
      context_.admission.Charge({entry_.peer, prepared->bytes, HeldFor::kRequest}, held.memory);
  return status.ok() ? Submit(std::move(prepared->request), std::move(held)) : HoldBack(status);
}

absl::Status TextCall::Submit(ComputeRequest request, Held held) {
  entry_.account.Describe(request);
  JobTerms terms = {entry_.peer, deadline_, /*patient=*/next_ > 0, cancelled_, std::move(held)};
  RETURN_IF_ERROR(
      SubmitJob(context_, std::move(request), std::move(terms),
                [this, self = shared_from_this(), part = parts_[next_]](ComputeJob::End end) {
                  OnComputed({part, std::move(end)});
                }));
  ++next_;
  ++in_flight_;
  return absl::OkStatus();
}

absl::Status TextCall::HoldBack(const absl::Status& status) {
  held_back_ = absl::IsResourceExhausted(status) && in_flight_ > 0;
  return held_back_ ? absl::OkStatus() : status;
}

absl::Status TextCall::SplitNext(const absl::Status& error) {
  TextPart& part = parts_[next_];
  if (part.empty()) return NameQuery(error);
  if (part.size() == 1) return NameInput(error, task_, part.front());
  const auto half = part.begin() + static_cast<std::ptrdiff_t>(part.size() / 2);
  TextPart second(half, part.end());
  part.erase(half, part.end());
  parts_.insert(parts_.begin() + static_cast<std::ptrdiff_t>(next_) + 1, std::move(second));
  return absl::OkStatus();
}

void TextCall::OnComputed(Computed computed) {
  const absl::Status status = Guarded([&] {
    bool begins;
    {
      absl::MutexLock lock(&mutex_);
      if (abandoned_) return;
      computed_.push_back(std::move(computed));
      begins = !std::exchange(working_, true);
    }
    if (begins) RunOnWorker([this] { return Work(); });
  });
  if (!status.ok()) Fail(status);
}

absl::Status TextCall::Answer() {
  TextResult result = collector_->Finish();
  result.elapsed = context_.clock.Now() - started_;
  const int64_t bytes = collector_->bytes();
  ASSIGN_OR_RETURN(HttpAnswer answer,
                   WriteText({std::move(task_), std::move(write_)}, std::move(result)));
  memory_.Change(std::max(bytes, static_cast<int64_t>(answer.body.size())), HeldFor::kAnswer);
  Finish(std::move(answer), std::move(memory_), queued_);
  return absl::OkStatus();
}

}  // namespace attendant::server
