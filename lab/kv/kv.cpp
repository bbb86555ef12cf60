// kv: a gRPC key-value server that loads snapshot and delta files and follows a realtime directory.
// See README.md for files and faults.
#include <atomic>
#include <cstdio>
#include <optional>

#include "lab.grpc.pb.h"
#include "lab/common/grpc_host.h"
#include "lab/common/options.h"
#include "lab/common/process.h"
#include "lab/kv/cache.h"
#include "lab/kv/follower.h"

namespace {

class KeyValue final : public lab::KeyValue::Service {
 public:
  explicit KeyValue(lab::kv::Cache& cache) : cache_(cache) {}

  grpc::Status Get(grpc::ServerContext*, const lab::GetRequest* request,
                   lab::GetReply* reply) override {
    if (request->keys_size() > kMostKeys) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "at most 1000 keys at a time"};
    }
    for (const std::string& key : request->keys()) *reply->add_values() = cache_.find(key);
    cache_.remember_request();
    requests_.fetch_add(1, std::memory_order_relaxed);
    return grpc::Status::OK;
  }
  grpc::Status Stats(grpc::ServerContext*, const lab::StatsRequest*,
                     lab::StatsReply* reply) override {
    reply->set_keys(cache_.keys());
    reply->set_files(cache_.files());
    reply->set_malformed_lines(cache_.malformed());
    return grpc::Status::OK;
  }
  uint64_t requests() const { return requests_; }

 private:
  static constexpr int kMostKeys = 1000;
  lab::kv::Cache& cache_;
  std::atomic<uint64_t> requests_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  lab::Options options("kv", "a gRPC key-value server that follows files");
  options.text("delta-directory", "", "SNAPSHOT_* and DELTA_* files to load at the start");
  options.text("realtime-directory", "", "files that appear here are loaded, too");
  options.number("line-work", 1, 0, 100'000, "checksums over each line that is loaded");
  options.number("file-pause-ms", 0, 0, 60'000, "milliseconds that a file takes to arrive");
  options.number("pollers", 2, 1, 64, "threads that gRPC may poll with");
  options.number("leak-limit-mb", 3000, 1, 1 << 20,
                 "where the fault leak stops, for the machine's sake");
  options.fault("leak", 1 << 24, "bytes remembered for ever per request");
  options.fault("duplicates", 100'000, "copies of every value, kept and handed out");
  options.fault("rwlock", 100, "percent of a file loaded while readers wait");
  options.parse(argc, argv);
  sigset_t signals = lab::block_signals();

  lab::kv::Cache cache(options);
  if (!options.text("delta-directory").empty()) {
    lab::kv::load_all(cache, options.text("delta-directory"));
  }
  std::optional<lab::kv::Follower> follower;
  if (!options.text("realtime-directory").empty()) {
    follower.emplace(cache, options.text("realtime-directory"));
  }
  KeyValue service(cache);
  grpc::ServerBuilder builder;
  builder.RegisterService(&service);
  builder.SetSyncServerOption(grpc::ServerBuilder::SyncServerOption::MAX_POLLERS,
                              static_cast<int>(options.number("pollers")));
  auto server = lab::build(builder, static_cast<int>(options.number("port")));
  lab::wait_for_end(signals);
  lab::shut_down(*server);
  std::printf("served %lu requests, %lu keys from %lu files, %lu malformed lines\n",
              static_cast<unsigned long>(service.requests()),
              static_cast<unsigned long>(cache.keys()), static_cast<unsigned long>(cache.files()),
              static_cast<unsigned long>(cache.malformed()));
  return 0;
}
