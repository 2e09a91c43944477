#include "server/served_repository.h"

#include <utility>

namespace attendant::server {
namespace {

RepositoryOptions OptionsOf(const Settings& settings) {
  return {settings.model_repository, settings.repository_poll, settings.drain_timeout};
}

}  // namespace

ServedRepository::ServedRepository(LoaderOptions options, RepositoryParts parts)
    : loader_(options),
      repository_(OptionsOf(options.settings), Hooks(parts), parts.models, parts.clock) {}

RepositoryHooks ServedRepository::Hooks(RepositoryParts parts) {
  RepositoryHooks hooks;
  hooks.load = [this](const std::string& name, const VersionFolder& version) {
    return loader_.Load(name, version);
  };
  hooks.on_load = [parts](const std::string& name, bool ok) {
    parts.metrics.RecordModelLoad(name, ok);
  };
  hooks.on_change = [parts](const std::string& name, bool served) {
    return served ? parts.health.Set(name, true) : parts.health.Remove(name);
  };
  hooks.on_retired = [parts] { parts.cross_kv.EvictRetired(); };
  hooks.upkeep = [this] { loader_.CollectFreed(); };
  return hooks;
}

void ServedRepository::Stop() {
  repository_.Stop();
  loader_.Stop();
}

absl::StatusOr<std::unique_ptr<ServedRepository>> ServedRepository::Start(LoaderOptions options,
                                                                          RepositoryParts parts) {
  std::unique_ptr<ServedRepository> served(new ServedRepository(std::move(options), parts));
  if (absl::Status status = served->repository_.LoadAll(); !status.ok()) return status;
  served->repository_.Start();
  return served;
}

}  // namespace attendant::server
