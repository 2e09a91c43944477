#include "server/settings/settings.h"

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/settings/model_name.h"
#include "server/settings/model_setting.h"
#include "server/settings/read_settings.h"
#include "server/settings/setting_kinds.h"
#include "server/settings/settings_table.h"

namespace attendant::server {
namespace settings_test {

using ::testing::Contains;
using ::testing::HasSubstr;
using Arguments = std::vector<std::string>;
using Environment = std::vector<std::pair<std::string, std::string>>;

// A config file that exists as long as the test.
class ConfigFile {
 public:
  explicit ConfigFile(const std::string& text) : path_(Path()) { std::ofstream(path_) << text; }
  ~ConfigFile() { std::filesystem::remove(path_); }
  const std::string& path() const { return path_; }

 private:
  static std::string Path() {
    return testing::TempDir() + "attendant_" +
           testing::UnitTest::GetInstance()->current_test_info()->name() + ".ini";
  }
  std::string path_;
};

Settings Read(const Arguments& arguments, const Environment& environment = {}) {
  absl::StatusOr<SettingsRequest> request = ReadSettings(arguments, environment);
  EXPECT_TRUE(request.ok()) << request.status();
  if (!request.ok()) return {};
  EXPECT_EQ(request->kind, SettingsRequest::Kind::kServe);
  return request->settings;
}

std::string Error(const Arguments& arguments, const Environment& environment = {}) {
  absl::StatusOr<SettingsRequest> request = ReadSettings(arguments, environment);
  EXPECT_EQ(request.status().code(), absl::StatusCode::kInvalidArgument);
  return std::string(request.status().message());
}

TEST(SettingsTest, DefaultsServeTheWorkedExample) {
  const Settings settings = Read({});
  ASSERT_EQ(settings.models.size(), 1u);
  EXPECT_EQ(settings.models[0].name, "worked-example");
  EXPECT_EQ(settings.models[0].source, "worked-example");
  EXPECT_EQ(settings.port, 8001);
  EXPECT_EQ(settings.http_port, 8002);
  EXPECT_EQ(settings.http_address, "");
  EXPECT_EQ(settings.max_batch_tokens, 1024);
}

TEST(SettingsTest, FlagWinsOverVariableOverFileOverDefault) {
  const ConfigFile file("port = 1001\nhttp-port = 1002\nmax-inflight = 3\n");
  const Settings settings = Read({"--config", file.path(), "--port", "3001"},
                                 {{"ATTENDANT_PORT", "2001"}, {"ATTENDANT_HTTP_PORT", "2002"}});
  EXPECT_EQ(settings.port, 3001);
  EXPECT_EQ(settings.http_port, 2002);
  EXPECT_EQ(settings.max_inflight, 3);
  EXPECT_EQ(settings.stream_window, 16);
}

TEST(SettingsTest, TheHttpAddressIsThatOfGrpcUnlessAnySourceNamesAnother) {
  EXPECT_EQ(Read({"--address=10.0.0.1"}).http_address, "");
  EXPECT_EQ(Read({"--http-address=127.0.0.1"}).address, "0.0.0.0");
  const ConfigFile file("http-address = 127.0.0.1\n");
  EXPECT_EQ(Read({"--config", file.path()}).http_address, "127.0.0.1");
  EXPECT_EQ(Read({"--config", file.path()}, {{"ATTENDANT_HTTP_ADDRESS", "::1"}}).http_address,
            "::1");
  EXPECT_EQ(Read({"--config", file.path()}, {{"ATTENDANT_HTTP_ADDRESS", ""}}).http_address, "");
  EXPECT_EQ(Read({"--http-address=::1"}, {{"ATTENDANT_HTTP_ADDRESS", ""}}).http_address, "::1");
}

TEST(SettingsTest, ConfigFileMayBeNamedByVariable) {
  const ConfigFile file("; a comment\nport = 1001\n");
  EXPECT_EQ(Read({}, {{"ATTENDANT_CONFIG", file.path()}}).port, 1001);
}

TEST(SettingsTest, BothFormsOfAFlagAndTheLastOfTwoCounts) {
  EXPECT_EQ(Read({"--port=1", "--port", "2"}).port, 2);
}

TEST(SettingsTest, ReadsEveryKind) {
  const Settings settings = Read({"--receive-timeout=250ms",
                                  "--drain-timeout=1m",
                                  "--lame-duck=5s",
                                  "--min-receive-rate=512KiB",
                                  "--max-answer-bytes=2048",
                                  "--nonfinite=reject",
                                  absl::StrCat("--isa=", IsaCaps().back().name),
                                  "--row-plan=rows",
                                  "--max-registered-bytes=0",
                                  "--max-registered-age=1h",
                                  "--cache-bytes=64MiB",
                                  "--log-format=json",
                                  "--log-level=warn",
                                  "--slow-request=2s",
                                  "--trusted-proxies=10.0.0.0/8,::1",
                                  "--address=::1",
                                  "--http-address=127.0.0.1",
                                  "--http-idle-timeout=2m",
                                  "--port-file=ports",
                                  "--stream-idle-timeout=24h",
                                  "--model-repository=models",
                                  "--repository-poll=250ms",
                                  "--alias=ada=minilm;org/e5=BAAI/bge-m3",
                                  "--cors-origin=https://a.example",
                                  "--cors-origin=http://localhost:3000",
                                  "--repository-width=768"});
  EXPECT_EQ(settings.receive_timeout, absl::Milliseconds(250));
  EXPECT_EQ(settings.stream_idle_timeout, absl::Hours(24));
  EXPECT_EQ(settings.http_idle_timeout, absl::Minutes(2));
  EXPECT_EQ(settings.drain_timeout, absl::Minutes(1));
  EXPECT_EQ(settings.lame_duck, absl::Seconds(5));
  EXPECT_EQ(settings.slow_request, absl::Seconds(2));
  EXPECT_EQ(settings.min_receive_rate, int64_t{512} << 10);
  EXPECT_EQ(settings.max_answer_bytes, 2048);
  EXPECT_EQ(settings.max_registered_bytes, 0);
  EXPECT_EQ(settings.max_registered_age, absl::Hours(1));
  EXPECT_EQ(settings.cache_bytes, int64_t{64} << 20);
  EXPECT_EQ(settings.nonfinite, NonfinitePolicy::kReject);
  EXPECT_EQ(settings.isa, IsaCaps().back().value);
  EXPECT_EQ(settings.row_plan, RowPolicy::kRows);
  EXPECT_EQ(settings.log_format, LogFormat::kJson);
  EXPECT_EQ(settings.log_level, "warn");
  ASSERT_EQ(settings.trusted_proxies.size(), 2u);
  EXPECT_EQ(FormatNetwork(settings.trusted_proxies[1]), "::1/128");
  EXPECT_EQ(settings.address, "::1");
  EXPECT_EQ(settings.http_address, "127.0.0.1");
  EXPECT_EQ(settings.port_file, "ports");
  EXPECT_EQ(settings.model_repository, "models");
  EXPECT_EQ(settings.repository_poll, absl::Milliseconds(250));
  EXPECT_EQ(settings.repository_width, 768);
  EXPECT_EQ(settings.aliases.at("ada"), "minilm");
  EXPECT_EQ(settings.aliases.at("org/e5"), "BAAI/bge-m3");
  EXPECT_EQ(settings.cors_origins,
            std::vector<std::string>({"https://a.example", "http://localhost:3000"}));
  EXPECT_EQ(settings.models.size(), 0u);
}

TEST(SettingsTest, SeveralModelsFromEachSource) {
  const ConfigFile file("model = a=x\nmodel = \"b=/a folder/y\"\n");
  EXPECT_EQ(Read({"--config", file.path()}).models.size(), 2u);
  EXPECT_EQ(Read({"--config", file.path()}).models[1].source, "/a folder/y");
  const Settings variable = Read({}, {{"ATTENDANT_MODEL", "a=x;b=y"}});
  ASSERT_EQ(variable.models.size(), 2u);
  EXPECT_EQ(variable.models[1].name, "b");
  EXPECT_EQ(Read({}, {{"ATTENDANT_MODEL", "a=x; b=y; "}}).models[1].name, "b");
  const Settings flags =
      Read({"--model", "c=x", "--model", "d=y"}, {{"ATTENDANT_MODEL", "a=x;b=y"}});
  ASSERT_EQ(flags.models.size(), 2u);
  EXPECT_EQ(flags.models[0].name, "c");
}

TEST(SettingsTest, TheRestOfALineOfTheConfigFileIsOneValue) {
  const ConfigFile file(
      "# a comment\n  model = a=/a folder/x,dtype=int8,weights=bf16\r\n"
      "model = b=y;c=z\n\ntrusted-proxies = 10.0.0.0/8,fd00::/8\n"
      "tls-cert=/etc/my certs/#1.crt\nlog-level = \"debug\"\n");
  const Settings settings = Read({"--config", file.path()});
  ASSERT_EQ(settings.models.size(), 3u);
  EXPECT_EQ(FormatModelSetting(settings.models[0]), "a=/a folder/x,dtype=int8,weights=bf16");
  EXPECT_EQ(FormatModelSetting(settings.models[2]), "c=z");
  EXPECT_EQ(settings.trusted_proxies.size(), 2u);
  EXPECT_EQ(settings.tls_cert, "/etc/my certs/#1.crt");
  EXPECT_EQ(settings.log_level, "debug");
}

TEST(SettingsTest, RefusesBadLinesOfTheConfigFile) {
  const auto error = [](const std::string& text) {
    const ConfigFile file(text);
    const std::string message = Error({"--config", file.path()});
    return message.substr(("config file " + file.path() + ": ").size());
  };
  EXPECT_EQ(error("port = 1 2\n"), "port: expected an integer from 0 to 65535; got \"1 2\"");
  EXPECT_EQ(error("port = 1 # one\n"),
            "port: expected an integer from 0 to 65535; got \"1 # one\"");
  EXPECT_EQ(error("x=\n"), "unknown setting \"x\"");
  EXPECT_EQ(error("port = 1\n\noffline\n"), "line 3: expected NAME = VALUE; got \"offline\"");
  EXPECT_EQ(error("config = other.ini\n"), "unknown setting \"config\"");
}

TEST(SettingsTest, ReadsAddressesOfEveryForm) {
  for (const std::string text : {"127.0.0.1", "localhost", "::", "fe80::1", "unix:/run/socket"}) {
    EXPECT_EQ(Read({"--address", text}).address, text);
  }
  EXPECT_EQ(Read({}, {{"ATTENDANT_HTTP_ADDRESS", ""}}).http_address, "");
}

TEST(SettingsTest, RefusesUnknownNamesWithTheNearestOne) {
  EXPECT_EQ(Error({"--max-batch-token", "5"}),
            "unknown flag --max-batch-token; did you mean --max-batch-tokens?; see --help");
  EXPECT_EQ(Error({"--zzzzzzzzzzzzzzzzzzz=1"}), "unknown flag --zzzzzzzzzzzzzzzzzzz; see --help");
  EXPECT_EQ(Error({"--"}), "unknown flag --; see --help");
  EXPECT_EQ(Error({"serve"}), "unexpected argument \"serve\"; see --help");
  EXPECT_EQ(Error({}, {{"ATTENDANT_PROT", "1"}}),
            "unknown variable ATTENDANT_PROT; did you mean ATTENDANT_PORT?");
  EXPECT_EQ(Error({}, {{"ATTENDANT_COLOUR_OF_LOGS", "1"}}),
            "unknown variable ATTENDANT_COLOUR_OF_LOGS");
  const ConfigFile file("prot = 1\n");
  EXPECT_EQ(Error({"--config", file.path()}),
            "config file " + file.path() + ": unknown setting \"prot\"; did you mean port?");
}

TEST(SettingsTest, IgnoresOtherVariables) {
  EXPECT_EQ(Read({}, {{"PORT", "1"}, {"PATH", "/"}}).port, 8001);
}

TEST(SettingsTest, NamesKubernetesServiceLinks) {
  EXPECT_EQ(
      Error({}, {{"ATTENDANT_SERVICE_HOST", "10.0.0.1"}}),
      "unknown variable ATTENDANT_SERVICE_HOST (\"10.0.0.1\"); if Kubernetes set it for a Service, "
      "set enableServiceLinks: false in the pod");
  EXPECT_THAT(Error({}, {{"ATTENDANT_PORT", "tcp://10.0.0.1:8001"}}),
              HasSubstr("enableServiceLinks"));
}

TEST(SettingsTest, RefusesBadFiles) {
  EXPECT_EQ(Error({"--config", "/nowhere/x.ini"}), "config file /nowhere/x.ini: cannot be read");
  EXPECT_EQ(Error({"--config", "/"}), "config file /: cannot be read");
  const ConfigFile file("[server]\nport = 1\n");
  EXPECT_EQ(Error({"--config", file.path()}),
            "config file " + file.path() + ": sections are not supported");
}

TEST(SettingsTest, RefusesBadValuesWithSourceAndBounds) {
  EXPECT_EQ(Error({"--port", "65536"}),
            "--port: expected an integer from 0 to 65535; got \"65536\"");
  EXPECT_EQ(Error({"--port=-1"}), "--port: expected an integer from 0 to 65535; got \"-1\"");
  EXPECT_EQ(Error({"--port", "abc"}), "--port: expected an integer from 0 to 65535; got \"abc\"");
  EXPECT_EQ(Error({"--port", "80 "}), "--port: expected an integer from 0 to 65535; got \"80 \"");
  EXPECT_EQ(Error({}, {{"ATTENDANT_PORT", ""}}),
            "ATTENDANT_PORT: expected an integer from 0 to 65535; got \"\"");
  for (const std::string text : {"127.0.0.1:8001", "localhost:8001", "[::1]:8001", "[::1]", ""}) {
    EXPECT_EQ(Error({"--address", text}),
              "--address: expected an address without a port, such as 127.0.0.1 or ::1; got \"" +
                  text + "\"");
  }
  EXPECT_EQ(Error({"--http-address", "0.0.0.0:8002"}),
            "--http-address: expected an address without a port, such as 127.0.0.1 or ::1; got "
            "\"0.0.0.0:8002\"");
  EXPECT_EQ(Error({"--http-address", "unix:/run/s"}),
            "--http-address: expected an address without a port, such as 127.0.0.1 or ::1; got "
            "\"unix:/run/s\"");
  EXPECT_EQ(
      Error({"--max-batch-tokens=99999999999999999999"}),
      "--max-batch-tokens: expected an integer from 1 to 1048576; got \"99999999999999999999\"");
  EXPECT_EQ(Error({"--receive-timeout=10"}),
            "--receive-timeout: expected a duration from 1ms to 1h, such as 250ms, 10s or 1m; got "
            "\"10\"");
  EXPECT_EQ(Error({"--lame-duck=2h"}),
            "--lame-duck: expected a duration from 0 to 1h, such as 250ms, 10s or 1m; got \"2h\"");
  EXPECT_EQ(
      Error({"--drain-timeout=inf"}),
      "--drain-timeout: expected a duration from 0 to 1h, such as 250ms, 10s or 1m; got \"inf\"");
  EXPECT_EQ(
      Error({"--max-model-bytes=1GB"}),
      "--max-model-bytes: expected bytes from 1 to 16TiB, such as 1048576 or 512MiB; got \"1GB\"");
  EXPECT_EQ(Error({"--max-connections=0"}),
            "--max-connections: expected an integer from 1 to 1048576; got \"0\"");
  EXPECT_EQ(Error({"--max-connections-per-address=many"}),
            "--max-connections-per-address: expected an integer from 1 to 1048576; got \"many\"");
  EXPECT_EQ(Error({"--max-connection-age=0"}),
            "--max-connection-age: expected a duration from 1s to 168h, such as 250ms, 10s or 1m; "
            "got \"0\"");
  EXPECT_EQ(Error({"--http-idle-timeout=0"}),
            "--http-idle-timeout: expected a duration from 1s to 24h, such as 250ms, 10s or 1m; "
            "got \"0\"");
  EXPECT_EQ(
      Error({"--trusted-proxies=10.0.0.0/33"}),
      "--trusted-proxies: expected networks such as 10.0.0.0/8,fd00::/8; got \"10.0.0.0/33\"");
#ifdef __aarch64__
  const std::string caps = "best, neon, neon-dotprod, neon-i8mm, neon-bf16";
#else
  const std::string caps = "best, avx2, avx512, avx512-vnni, avx512-bf16, amx";
#endif
  EXPECT_EQ(Error({"--isa=sse"}), "--isa: expected one of " + caps + "; got \"sse\"");
  EXPECT_EQ(Error({"--row-plan=columns"}),
            "--row-plan: expected one of auto, team, rows; got \"columns\"");
  EXPECT_EQ(Error({"--log-format=xml"}), "--log-format: expected one of text, json; got \"xml\"");
  const ConfigFile file("port = x\n");
  EXPECT_EQ(
      Error({"--config", file.path(), "--port", "1"}),
      "config file " + file.path() + ": port: expected an integer from 0 to 65535; got \"x\"");
}

TEST(SettingsTest, RefusesBadAliasesAndOrigins) {
  EXPECT_EQ(Error({"--alias=a=b", "--alias=a=c"}), "--alias: two aliases are named \"a\"");
  const std::string expected =
      absl::StrCat("--alias: expected NAME=MODEL, where NAME is ", kModelNameRule, "; got ");
  EXPECT_EQ(Error({"--alias=a"}), expected + "\"a\"");
  EXPECT_EQ(Error({"--alias=a="}), expected + "\"a=\"");
  EXPECT_EQ(Error({"--alias=a/infer=b"}), expected + "\"a/infer=b\"");
  for (const std::string origin :
       {"example.com", "https://", "https://a.example/page", "a b://c d"}) {
    EXPECT_EQ(Error({"--cors-origin=" + origin}),
              absl::StrCat("--cors-origin: expected * or an origin such as "
                           "https://app.example.com, without a path; got \"",
                           origin, "\""));
  }
  EXPECT_EQ(Read({"--cors-origin=*"}).cors_origins, std::vector<std::string>({"*"}));
  EXPECT_EQ(Read({"--cors-origin= https://A.example ; https://b.example;"}).cors_origins,
            std::vector<std::string>({"https://a.example", "https://b.example"}));
}

TEST(SettingsTest, RefusesTimesThatTheSchedulerCannotUse) {
  const std::string expected = ", such as 250ms, 10s or 1m; got \"0\"";
  EXPECT_EQ(Error({"--max-batch-seconds=0"}),
            "--max-batch-seconds: expected a duration from 1ms to 1m" + expected);
  EXPECT_EQ(Error({"--max-queue-seconds=0"}),
            "--max-queue-seconds: expected a duration from 1ms to 1h" + expected);
  EXPECT_EQ(Error({"--default-deadline=0"}),
            "--default-deadline: expected a duration from 1ms to 24h" + expected);
}

TEST(SettingsTest, RefusesAFlagWithoutValue) {
  EXPECT_EQ(Error({"--port"}), "--port: expected a value; see --help");
  EXPECT_EQ(Error({"--config"}), "--config: expected a value; see --help");
}

TEST(SettingsTest, RestIsSwitchedOnAndOff) {
  EXPECT_TRUE(Read({}).rest);
  EXPECT_FALSE(Read({"--rest=off"}).rest);
  EXPECT_TRUE(Read({"--rest=on"}, {{"ATTENDANT_REST", "off"}}).rest);
  EXPECT_EQ(Error({"--rest=1"}), "--rest: expected one of on, off; got \"1\"");
}

TEST(SettingsTest, RefusesValuesThatDoNotFitTogether) {
  EXPECT_EQ(Error({"--port=9", "--http-port=9"}),
            "--port, --http-port: expected two different ports; got 9 for both");
  EXPECT_EQ(Error({"--max-queue-tokens=10"}),
            "--max-queue-tokens: expected at least --max-request-tokens (16384); got 10");
  EXPECT_EQ(Read({"--port=0", "--http-port=0"}).port, 0);
}

TEST(SettingsTest, RefusesBadModels) {
  EXPECT_EQ(Error({"--model", "a=x", "--model", "a=y"}), "--model: two models are named \"a\"");
  EXPECT_EQ(Error({"--model", "folder"}),
            "--model: expected NAME=SOURCE[,key=value...]; got \"folder\"");
  EXPECT_EQ(Error({"--model", "a="}), "--model: expected NAME=SOURCE[,key=value...]; got \"a=\"");
  EXPECT_EQ(Error({"--model", "a/infer=x"}),
            absl::StrCat("--model: expected ", kModelNameRule, "; got \"a/infer\""));
  EXPECT_EQ(
      Error({"--model", "a=x,colour=red"}),
      "--model: expected the key adapter, causal, dtype, emulate, gemm, overlay, pooling, prune, "
      "route, task, tower, weights, weights-sha256 or allow-nonfinite-weights; got \"colour\"");
  EXPECT_EQ(Error({"--model", "a=x,pooling=median"}),
            "--model: expected mean, first_token, last_token, max, pooler or yes_no for pooling; "
            "got \"median\"");
  EXPECT_EQ(Error({"--model", "b=a,overlay=n,pooling=mean", "--model", "a=x"}),
            "--model: pooling cannot be combined with overlay; got \"b=a,overlay=n,pooling=mean\"; "
            "set them on the base");
  EXPECT_EQ(Error({"--model", "a=x,causal=no"}),
            "--model: expected true or false for causal; got \"no\"");
  EXPECT_EQ(Error({"--model", "b=a,overlay=n,causal=false", "--model", "a=x"}),
            "--model: causal cannot be combined with overlay; got \"b=a,overlay=n,causal=false\"; "
            "set them on the base");
  EXPECT_EQ(Error({"--model", "a=x,prune="}), "--model: expected a file for prune; got \"\"");
  EXPECT_EQ(Error({"--model", "a=x,tower=eiffel"}),
            "--model: expected text or vision for tower; got \"eiffel\"");
  EXPECT_EQ(Error({"--model", "a=x,route="}),
            "--model: expected the name of a route for route; got \"\"");
  for (const char* key : {"tower=vision", "route=query"}) {
    const std::string model = absl::StrCat("b=a,overlay=n,", key);
    EXPECT_EQ(Error({"--model", model, "--model", "a=x"}),
              absl::StrCat("--model: tower and route cannot be combined with overlay; got \"",
                           model, "\"; set them on the base"));
  }
  EXPECT_EQ(Error({"--model", "a=x,task="}),
            "--model: expected the name of a task for task; got \"\"");
  EXPECT_EQ(Error({"--model", "b=a,overlay=n,adapter=/x", "--model", "a=x"}),
            "--model: adapter and task cannot be combined with overlay; got "
            "\"b=a,overlay=n,adapter=/x\"; set them on the base");
  EXPECT_EQ(Error({"--model", "a=x,adapter="}),
            "--model: expected a directory for adapter; got \"\"");
  EXPECT_EQ(Error({"--model", "a=x,dtype=int8,dtype=f32"}),
            "--model: expected the key dtype once; got \"a=x,dtype=int8,dtype=f32\"");
  EXPECT_EQ(Error({"--model", "a=x,dtype=f16"}),
            "--model: expected f32, bf16x3, bf16 or int8 for dtype; got \"f16\"");
  EXPECT_EQ(Error({"--model", "a=x,dtype=int8,emulate=1"}),
            "--model: expected true or false for emulate; got \"1\"");
  for (const std::string model : {"a=x,emulate=true", "a=x,emulate=true,dtype=f32"}) {
    EXPECT_EQ(Error({"--model", model}),
              "--model: emulate=true requires a dtype other than f32; got \"" + model + "\"");
  }
  EXPECT_EQ(Error({"--model", "a=x,dtype=bf16,gemm=amx"}),
            "--model: expected auto, onednn, tiles or vector for gemm; got \"amx\"");
  EXPECT_EQ(Error({"--model", "a=x,weights=int4"}),
            "--model: expected auto, f32, bf16 or f16 for weights; got \"int4\"");
  for (const std::string model : {"a=x,gemm=tiles", "a=x,dtype=bf16,emulate=true,gemm=tiles"}) {
    EXPECT_EQ(Error({"--model", model}),
              "--model: gemm=tiles requires a dtype other than f32, without emulate; got \"" +
                  model + "\"");
  }
  EXPECT_EQ(Error({"--model", "a=x,weights-sha256=12"}),
            "--model: expected 64 hexadecimal digits for weights-sha256; got \"12\"");
  EXPECT_EQ(Error({"--model", "a=x,allow-nonfinite-weights=yes"}),
            "--model: expected true or false for allow-nonfinite-weights; got \"yes\"");
}

TEST(SettingsTest, TakesModelsOfTheHub) {
  const Settings settings =
      Read({"--model", "a=hf:org/repo@refs/pr/1,dtype=int8", "--model=b=hf:gpt2"});
  const Settings nameless = Read({"--model=hf:BAAI/bge-m3@v1,dtype=int8", "--model", "hf:gpt2"});
  EXPECT_THAT(DescribeSettings(nameless),
              Contains("model = BAAI/bge-m3=hf:BAAI/bge-m3@v1,dtype=int8;gpt2=hf:gpt2"));
  EXPECT_THAT(Error({"--model", "hf:org/2024"}), HasSubstr("got \"org/2024\""));
  EXPECT_EQ(settings.models[0].source, "hf:org/repo@refs/pr/1");
  EXPECT_EQ(settings.models[0].place(), "hf:org/repo@refs/pr/1");
  EXPECT_EQ(settings.models[0].compute.type, ComputeType::kInt8);
  EXPECT_THAT(DescribeSettings(settings),
              Contains("model = a=hf:org/repo@refs/pr/1,dtype=int8;b=hf:gpt2"));
  EXPECT_EQ(Error({"--model", "a=hf:org/repo/x"}),
            "--model: expected ORG/REPO[@REVISION], a repository of the Hugging Face Hub; got "
            "\"org/repo/x\"");
  EXPECT_THAT(Error({"--model", "a=hf:org/repo@"}), HasSubstr("expected a branch, a tag"));
  EXPECT_THAT(Error({"--describe", "hf:.."}), HasSubstr("--describe: expected ORG/REPO"));
}

TEST(SettingsTest, AnswersABareNameWithItsForm) {
  const std::string expected = "--model: expected NAME=SOURCE[,key=value...]; got \"";
  EXPECT_EQ(Error({"--model", "BAAI/bge-small-en-v1.5"}),
            expected +
                "BAAI/bge-small-en-v1.5\"; to serve that Hub repository: --model "
                "hf:BAAI/bge-small-en-v1.5");
  EXPECT_EQ(Error({"--model", "org/repo@v1,dtype=int8"}),
            expected +
                "org/repo@v1,dtype=int8\"; to serve that Hub repository: --model "
                "hf:org/repo@v1,dtype=int8");
  EXPECT_EQ(Error({"--model", "synthetic:tiny"}), expected + "synthetic:tiny\"");
  const std::string folder = testing::TempDir() + "attendant_models/minilm";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(Error({"--model", folder}),
            expected + folder + "\"; to serve that directory: --model minilm=" + folder);
}

TEST(SettingsTest, ASwitchMayStandAlone) {
  EXPECT_FALSE(Read({}).offline);
  EXPECT_TRUE(Read({"--offline"}).offline);
  EXPECT_TRUE(Read({"--offline", "--port=1"}).offline);
  EXPECT_TRUE(Read({"--offline", "on"}).offline);
  EXPECT_TRUE(Read({}, {{"ATTENDANT_OFFLINE", "on"}}).offline);
  EXPECT_FALSE(Read({"--offline=off"}, {{"ATTENDANT_OFFLINE", "on"}}).offline);
  EXPECT_EQ(Error({"--offline", "yes"}), "--offline: expected one of on, off; got \"yes\"");
  EXPECT_EQ(Error({"--rest"}), "--rest: expected a value; see --help");
}

TEST(SettingsTest, PullsOneRepository) {
  const auto request =
      ReadSettings({"--pull", "org/repo@v1", "--model-cache=/cache"}, {{"ATTENDANT_MODEL", "m=x"}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->kind, SettingsRequest::Kind::kPull);
  ASSERT_EQ(request->settings.models.size(), 1u);
  EXPECT_EQ(request->settings.models[0].source, "hf:org/repo@v1");
  EXPECT_EQ(request->settings.model_cache, "/cache");
  EXPECT_EQ(ReadSettings({"--pull=hf:org/repo"}, {})->settings.models[0].source, "hf:org/repo");
  EXPECT_THAT(Error({"--pull", "/models/x"}), HasSubstr("--pull: expected ORG/REPO[@REVISION]"));
  EXPECT_EQ(Error({"--pull"}), "--pull: expected a value; see --help");
  EXPECT_EQ(Error({"--pull=a/b", "--describe=x"}),
            "--pull: cannot be combined with --describe; see --help");
}

TEST(SettingsTest, LaysAnOverlayOverAnotherModel) {
  const auto request =
      ReadSettings({"--model", "b=a,overlay=norms.safetensors", "--model", "a=x"}, {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->settings.models[0].source, "a");
  EXPECT_EQ(request->settings.models[0].overlay, "norms.safetensors");
  EXPECT_THAT(DescribeSettings(request->settings),
              Contains("model = b=a,overlay=norms.safetensors;a=x"));
}

TEST(SettingsTest, AnOverlayMayLeaveOutHeads) {
  const auto request =
      ReadSettings({"--model", "b=a,overlay=n,prune=heads.json", "--model", "a=x"}, {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->settings.models[0].prune_file, "heads.json");
  EXPECT_THAT(DescribeSettings(request->settings),
              Contains("model = b=a,overlay=n,prune=heads.json;a=x"));
}

TEST(SettingsTest, RefusesOverlaysWithoutBase) {
  constexpr char kNoBase[] =
      "--model b: expected the name of a base model before ,overlay= (not an overlay); got ";
  EXPECT_EQ(Error({"--model", "b=folder,overlay=f"}), absl::StrCat(kNoBase, "folder"));
  EXPECT_EQ(Error({"--model", "b=b,overlay=f"}), absl::StrCat(kNoBase, "b"));
  EXPECT_EQ(Error({"--model", "a=x", "--model", "c=a,overlay=f", "--model", "b=c,overlay=f"}),
            absl::StrCat(kNoBase, "c"));
  EXPECT_EQ(Error({"--model", "b=a,overlay="}), "--model: expected a file for overlay; got \"\"");
  EXPECT_EQ(Error({"--model", "b=a,overlay=f,dtype=int8"}),
            "--model: dtype, emulate, gemm and weights cannot be combined with overlay; got "
            "\"b=a,overlay=f,dtype=int8\"; set them on the base");
  EXPECT_EQ(Error({"--model", "b=a,overlay=f,gemm=onednn"}),
            "--model: dtype, emulate, gemm and weights cannot be combined with overlay; got "
            "\"b=a,overlay=f,gemm=onednn\"; set them on the base");
  EXPECT_EQ(Error({"--model", "b=a,overlay=f,weights=f32"}),
            "--model: dtype, emulate, gemm and weights cannot be combined with overlay; got "
            "\"b=a,overlay=f,weights=f32\"; set them on the base");
  EXPECT_EQ(Error({"--describe", "a,overlay=f"}),
            "--describe: expected a base model; got an overlay");
}

TEST(SettingsTest, DescribesOneModelWithTheOtherSettings) {
  const auto request = ReadSettings(
      {"--describe", "/models/a=b,dtype=int8", "--json", "--ranks", "--max-request-tokens=64"},
      {{"ATTENDANT_MODEL", "other=x"}});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->kind, SettingsRequest::Kind::kDescribe);
  EXPECT_TRUE(request->describe.json);
  EXPECT_TRUE(request->describe.ranks);
  ASSERT_EQ(request->settings.models.size(), 1u);
  EXPECT_EQ(request->settings.models[0].source, "/models/a=b");
  EXPECT_EQ(request->settings.models[0].name, "/models/a=b");
  EXPECT_EQ(request->settings.models[0].compute.type, ComputeType::kInt8);
  EXPECT_EQ(request->settings.max_request_tokens, 64);
  const auto plain = ReadSettings({"--describe=x"}, {});
  EXPECT_FALSE(plain->describe.json || plain->describe.ranks);
}

TEST(SettingsTest, RefusesToDescribeNothing) {
  EXPECT_EQ(Error({"--json"}), "--json: requires --describe; see --help");
  EXPECT_EQ(Error({"--ranks"}), "--ranks: requires --describe; see --help");
  EXPECT_EQ(Error({"--describe"}), "--describe: expected a value; see --help");
  EXPECT_EQ(Error({"--describe", ""}), "--describe: expected SOURCE[,key=value...]; got \"\"");
  EXPECT_EQ(Error({"--describe", "x,colour=red"}),
            "--describe: expected the key adapter, causal, dtype, emulate, gemm, overlay, pooling, "
            "prune, route, task, tower, weights, weights-sha256 or allow-nonfinite-weights; got "
            "\"colour\"");
}

TEST(IsModelNameTest, TakesWhatCanBeToldApartInAPath) {
  for (const std::string name : {"m", "BAAI/bge-m3", "a/b/c", ".m", "...", "m.1", "1.5", "v2",
                                 "info", "a@b:c+d", "100%", "\"q\"", "back\\slash", "a?b#c",
                                 "modèle", "模型/嵌入", "\xF0\x9F\x98\x80", "infer.x", "Stats"}) {
    EXPECT_TRUE(IsModelName(name)) << name;
  }
  EXPECT_TRUE(IsModelName(std::string(256, 'a')));
  for (const std::string name : {"",
                                 "/",
                                 "a/",
                                 "/a",
                                 "a//b",
                                 ".",
                                 "..",
                                 "a/..",
                                 "./a",
                                 "7",
                                 "org/7",
                                 "0012",
                                 "versions",
                                 "a/infer",
                                 "ready",
                                 "config/a",
                                 "a/stats/b",
                                 "a b",
                                 "a=b",
                                 "a,b",
                                 "a;b",
                                 "a\n",
                                 "a\x7f",
                                 "a\xC2\xA0"
                                 "b",
                                 "a\xC2\x85",
                                 "\xE2\x80\xAE",
                                 "\xE3\x80\x80",
                                 "\xEF\xBB\xBF",
                                 "\xFF",
                                 "\xC3",
                                 "\xC0\xAF",
                                 "\xED\xA0\x80",
                                 "\xE2\x82",
                                 "\x80",
                                 "\xF4\x90\x80\x80",
                                 "\xF8\x88\x80\x80\x80"}) {
    EXPECT_FALSE(IsModelName(name)) << name;
  }
  EXPECT_FALSE(IsModelName(std::string(257, 'a')));
  EXPECT_FALSE(IsModelName(absl::string_view("a\0b", 3)));
}

TEST(ParseModelSettingTest, ReadsKeys) {
  const std::string digest(64, 'A');
  const absl::StatusOr<ModelSetting> model =
      ParseModelSetting("m=/models/x=y,weights-sha256=" + digest + ",allow-nonfinite-weights=true");
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->source, "/models/x=y");
  EXPECT_EQ(model->weights_sha256, std::string(64, 'a'));
  EXPECT_TRUE(model->allow_nonfinite_weights);
}

TEST(ParseModelKeysTest, ReadsThemAlone) {
  EXPECT_EQ(ParseModelKeys("")->compute, ComputeMode());
  const absl::StatusOr<ModelSetting> keys = ParseModelKeys("dtype=int8,prune=x");
  ASSERT_TRUE(keys.ok()) << keys.status();
  EXPECT_EQ(keys->compute.type, ComputeType::kInt8);
  EXPECT_EQ(keys->prune_file, "x");
  EXPECT_EQ(keys->source, "");
  EXPECT_FALSE(ParseModelKeys("folder,dtype=int8").ok());
}

TEST(ParseModelSettingTest, ReadsTheComputeType) {
  const auto compute = [](const std::string& keys) {
    const absl::StatusOr<ModelSetting> model = ParseModelSetting("m=x" + keys);
    EXPECT_TRUE(model.ok()) << model.status();
    return model.ok() ? model->compute : ComputeMode{};
  };
  EXPECT_EQ(compute(""), ComputeMode{});
  EXPECT_EQ(compute(",dtype=f32,emulate=false"), ComputeMode{});
  EXPECT_EQ(compute(",dtype=bf16x3"), (ComputeMode{ComputeType::kBf16x3, false}));
  EXPECT_EQ(compute(",dtype=bf16"), (ComputeMode{ComputeType::kBf16, false}));
  EXPECT_EQ(compute(",emulate=true,dtype=int8"), (ComputeMode{ComputeType::kInt8, true}));
  EXPECT_EQ(compute(",gemm=auto"), ComputeMode{});
  EXPECT_EQ(compute(",gemm=onednn"), ComputeMode{.gemm = Gemm::kOneDnn});
  EXPECT_EQ(compute(",gemm=vector"), ComputeMode{.gemm = Gemm::kVector});
  EXPECT_EQ(compute(",weights=auto"), ComputeMode{});
  EXPECT_EQ(compute(",weights=f32"), ComputeMode{.weights = WeightType::kF32});
  EXPECT_EQ(compute(",weights=bf16"), ComputeMode{.weights = WeightType::kBf16});
  EXPECT_EQ(compute(",weights=f16"), ComputeMode{.weights = WeightType::kF16});
  EXPECT_EQ(compute(",gemm=tiles,dtype=bf16"),
            (ComputeMode{ComputeType::kBf16, false, Gemm::kTiles}));
}

TEST(SettingsTest, HelpAndVersionComeBeforeEverythingElse) {
  const absl::StatusOr<SettingsRequest> help =
      ReadSettings({"--help", "--nonsense"}, {{"ATTENDANT_X", ""}});
  ASSERT_TRUE(help.ok()) << help.status();
  EXPECT_EQ(help->kind, SettingsRequest::Kind::kHelp);
  const absl::StatusOr<SettingsRequest> version = ReadSettings({"--version"}, {});
  ASSERT_TRUE(version.ok()) << version.status();
  EXPECT_EQ(version->kind, SettingsRequest::Kind::kVersion);
  EXPECT_THAT(version->text, HasSubstr("attendant-server 0."));
  EXPECT_THAT(version->text, HasSubstr("oneDNN " + OneDnnVersion()));
  EXPECT_THAT(version->text, HasSubstr(EffectiveIsa()));
}

TEST(SettingsTest, CompletionKnowsEveryFlag) {
  const absl::StatusOr<SettingsRequest> request = ReadSettings({"--completion", "bash"}, {});
  ASSERT_TRUE(request.ok()) << request.status();
  EXPECT_EQ(request->kind, SettingsRequest::Kind::kCompletion);
  for (const SettingRow& row : SettingsTable()) {
    EXPECT_THAT(request->text, HasSubstr("--" + row.name));
  }
  EXPECT_THAT(request->text, HasSubstr("--log-format) words='text json'"));
  EXPECT_EQ(Error({"--completion", "zsh"}), "--completion: expected bash; got \"zsh\"; see --help");
  EXPECT_EQ(Error({"--completion"}), "--completion: expected a value; see --help");
}

TEST(SettingsTest, EveryRowIsInHelpAndDescriptionAndReadsItsDefault) {
  const std::string help = HelpText();
  const std::vector<std::string> described = DescribeSettings(Settings());
  EXPECT_EQ(described.size(), SettingsTable().size());
  for (const SettingRow& row : SettingsTable()) {
    const std::string value = row.kind.show(Settings());
    EXPECT_THAT(help, HasSubstr("--" + row.name + " " + row.placeholder + "    " +
                                VariableName(row.name) + "\n"));
    EXPECT_THAT(described, Contains(row.name + " = " + value));
    Settings settings;
    EXPECT_TRUE(row.kind.read({value}, settings).ok()) << row.name << " = " << value;
  }
  EXPECT_THAT(help, HasSubstr("Default 8001; an integer from 0 to 65535."));
}

TEST(SettingsTest, DescribesModelsAsTheyAreGiven) {
  EXPECT_THAT(
      DescribeSettings(Read({"--model", "a=x,allow-nonfinite-weights=true", "--model",
                             "b=y,prune=p.json,emulate=true,dtype=int8", "--model",
                             "c=z,weights=bf16,gemm=vector", "--model",
                             "d=w,prune=p.json,task=t,causal=false,adapter=/a,pooling=first_token;"
                             "e=v,causal=true;f=u,tower=vision,route=query"})),
      Contains("model = a=x,allow-nonfinite-weights=true;"
               "b=y,dtype=int8,emulate=true,prune=p.json;c=z,gemm=vector,weights=bf16;"
               "d=w,adapter=/a,pooling=first_token,task=t,causal=false,prune=p.json;"
               "e=v,causal=true;f=u,route=query,tower=vision"));
}

TEST(SettingKindsTest, BytesRoundTrip) {
  EXPECT_EQ(*ParseBytes("3KiB"), 3072);
  EXPECT_EQ(*ParseBytes("16TiB"), int64_t{16} << 40);
  EXPECT_EQ(FormatBytes(3072), "3KiB");
  EXPECT_EQ(FormatBytes(1025), "1025");
  EXPECT_EQ(FormatBytes(0), "0");
  for (const char* text :
       {"", "MiB", "1.5GiB", "-1", "99999999TiB", "1 MiB", "99999999999999999999"}) {
    EXPECT_FALSE(ParseBytes(text).ok()) << text;
  }
}

}  // namespace settings_test
}  // namespace attendant::server
