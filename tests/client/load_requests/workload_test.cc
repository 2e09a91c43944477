#include "client/load_requests/workload.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "absl/synchronization/notification.h"
#include "tests/client/support/fake_server.h"

namespace attendant::client {
namespace workload_test {

using testing::HasSubstr;

ModelInfo SomeModel() {
  ModelInfo model;
  model.set_name("m");
  model.mutable_layer()->set_hidden_size(64);
  model.mutable_embeddings()->set_vocabulary(50);
  return model;
}

Workload Make(const WorkloadOptions& options, const std::string& lengths) {
  return Workload::Make(options, LengthDistribution::Parse(lengths).value(), SomeModel()).value();
}

std::string Refusal(const WorkloadOptions& options, const std::string& lengths,
                    const ModelInfo& model) {
  const auto workload = Workload::Make(options, LengthDistribution::Parse(lengths).value(), model);
  EXPECT_EQ(workload.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(workload.status().message());
}

// Sends the first request to a server and returns what came there.
class WorkloadTest : public testing::Test {
 protected:
  void Send(const Workload& workload) {
    absl::Notification done;
    Client::Connect(server_.address())
        .SendAsync(workload.item(0).request, {}, [&](const absl::StatusOr<Execution>& execution) {
          EXPECT_TRUE(execution.ok()) << execution.status();
          done.Notify();
        });
    done.WaitForNotification();
  }

  FakeServer server_;
};

TEST_F(WorkloadTest, PacksHiddenStates) {
  const Workload workload = Make(
      {.method = Method::kAttend, .model = "m", .batch = 3, .dtype = DataType::kBFloat16}, "5..20");
  Send(workload);
  const v1::AttendRequest sent = server_.attended().at(0);
  EXPECT_EQ(sent.model(), "m");
  EXPECT_EQ(sent.lengths_size(), 3);
  const int64_t tokens = std::accumulate(sent.lengths().begin(), sent.lengths().end(), int64_t{0});
  EXPECT_EQ(workload.item(0).tokens, tokens);
  EXPECT_THAT(sent.hidden_states().shape(), testing::ElementsAre(tokens, 64));
  EXPECT_EQ(sent.hidden_states().dtype(), v1::BFLOAT16);
  EXPECT_EQ(sent.hidden_states().data().size(), static_cast<size_t>(tokens) * 64 * 2);
}

TEST_F(WorkloadTest, PadsToTheLongest) {
  Send(Make({.model = "", .batch = 4, .padded = true}, "5..20"));
  const v1::EncodeRequest sent = server_.encoded().at(0);
  const int64_t longest = *std::max_element(sent.lengths().begin(), sent.lengths().end());
  EXPECT_THAT(sent.hidden_states().shape(), testing::ElementsAre(4, longest, 64));
}

TEST_F(WorkloadTest, DrawsTokenIdsFromTheVocabulary) {
  Send(Make({.model = "", .batch = 2, .token_ids = true, .pooled = true}, "500"));
  const v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_TRUE(sent.return_pooled());
  EXPECT_TRUE(sent.omit_hidden_states());
  const Tensor ids{DataType::kInt64, {1000}, sent.token_ids().data()};
  const std::vector<int64_t> values = ToInt64s(ids).value();
  EXPECT_EQ(*std::min_element(values.begin(), values.end()), 0);
  EXPECT_EQ(*std::max_element(values.begin(), values.end()), 49);
}

TEST_F(WorkloadTest, HiddenStatesAreStandardNormal) {
  Send(Make({.model = ""}, "2000"));
  const v1::Tensor sent = server_.encoded().at(0).hidden_states();
  const auto values = ToFloats({DataType::kFloat32, {2000, 64}, sent.data()}).value();
  double sum = 0;
  double squares = 0;
  for (float value : values) {
    sum += value;
    squares += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(sum / 128000, 0, 0.012);
  EXPECT_NEAR(squares / 128000, 1, 0.02);
}

TEST_F(WorkloadTest, LengthsOfAFileComeInItsOrder) {
  const auto workload =
      Workload::Make({.model = "", .batch = 2}, Sequences::OfLengths({3, 9, 4, 2, 8}), SomeModel());
  ASSERT_TRUE(workload.ok()) << workload.status();
  ASSERT_EQ(workload->size(), 3u);
  EXPECT_EQ(workload->item(0).tokens, 12);
  EXPECT_EQ(workload->item(1).tokens, 6);
  EXPECT_EQ(workload->item(2).tokens, 8);  // the last one has what is left
  EXPECT_EQ(workload->item(3).tokens, 12);
}

TEST_F(WorkloadTest, IdsOfAFileAreSentAsTheyAre) {
  const Sequences ids = Sequences::OfIds({{1, 2, 3}, {4}});
  Send(*Workload::Make({.model = "", .batch = 2, .token_ids = true}, ids, SomeModel()));
  v1::EncodeRequest sent = server_.encoded().at(0);
  EXPECT_THAT(sent.lengths(), testing::ElementsAre(3, 1));
  EXPECT_EQ(sent.token_ids().data(), Int64Tensor({4}, {1, 2, 3, 4}).data);
  Send(*Workload::Make({.model = "", .batch = 2, .padded = true, .token_ids = true}, ids,
                       SomeModel()));
  sent = server_.encoded().at(1);
  EXPECT_EQ(sent.token_ids().data(), Int64Tensor({6}, {1, 2, 3, 4, 0, 0}).data);
}

TEST(WorkloadBoundsTest, RefusesIdsThatTheModelDoesNotKnow) {
  for (const int64_t id : {-1, 50}) {
    const absl::Status refused = Workload::Make({.model = "", .token_ids = true},
                                                Sequences::OfIds({{1}, {2, id}}), SomeModel())
                                     .status();
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(refused.message(),
              absl::StrCat("sequence 2: id ", id, " is not below 50, the vocabulary of m"));
  }
}

TEST(WorkloadBoundsTest, RefusesMoreOfAFileThanFits) {
  const absl::Status refused =
      Workload::Make({.model = ""}, Sequences::OfLengths(std::vector<int64_t>(3000, 2000)),
                     SomeModel())
          .status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()),
              HasSubstr("expected at most 1 GiB of requests, about "));
}

TEST(WorkloadBoundsTest, RequestsComeRoundAndStayInBounds) {
  const Workload small = Make({.model = ""}, "5..20");
  EXPECT_EQ(small.size(), 512u);
  EXPECT_EQ(small.item(0).tokens, small.item(512).tokens);
  EXPECT_NEAR(small.mean_tokens(), 12.5, 1);
  const Workload large = Make({.model = "", .batch = 100}, "2000");  // 51.2 MB each
  EXPECT_LT(large.size(), 7u);
}

TEST(WorkloadBoundsTest, SameSeedSameLengths) {
  const Workload a = Make({.model = "", .seed = 3}, "1..1000");
  const Workload b = Make({.model = "", .seed = 3}, "1..1000");
  const Workload c = Make({.model = "", .seed = 4}, "1..1000");
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(a.item(i).tokens, b.item(i).tokens);
    differs |= a.item(i).tokens != c.item(i).tokens;
  }
  EXPECT_TRUE(differs);
}

TEST(WorkloadBoundsTest, Refuses) {
  const WorkloadOptions attend_ids{.method = Method::kAttend, .model = "", .token_ids = true};
  EXPECT_EQ(Refusal(attend_ids, "5", SomeModel()), "attend: expected hidden states; got token ids");
  const WorkloadOptions attend_pooled{.method = Method::kAttend, .model = "", .pooled = true};
  EXPECT_EQ(Refusal(attend_pooled, "5", SomeModel()), "attend: pooled vectors not supported");
  ModelInfo no_ids = SomeModel();
  no_ids.clear_embeddings();
  EXPECT_EQ(Refusal({.model = "", .token_ids = true}, "5", no_ids), "m does not accept token ids");
  EXPECT_THAT(Refusal({.model = "", .batch = 65536}, "16777216", SomeModel()),
              HasSubstr("is too large"));
  EXPECT_THAT(Refusal({.model = ""}, "5", ModelInfo()), HasSubstr("0 wide, is too large"));
}

}  // namespace workload_test
}  // namespace attendant::client
