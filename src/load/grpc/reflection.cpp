#include "load/grpc/reflection.h"

#include <set>

#include "load/grpc/message_schema.h"
#include "load/grpc/wire_reader.h"

namespace assay::load {
namespace {

// Field numbers of grpc/reflection/v1/reflection.proto; v1alpha has the same.
constexpr uint32_t kFileByFilename = 3, kFileContainingSymbol = 4;
constexpr uint32_t kFileDescriptorResponse = 4, kErrorResponse = 7;
constexpr uint32_t kFileDescriptorProto = 1, kErrorMessage = 2;

constexpr const char* kV1 = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo";
constexpr const char* kV1Alpha = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo";
constexpr int kUnimplemented = 12;
constexpr int kMostRounds = 100;  // imports of imports of …

Result<std::vector<std::string>> ask(const GrpcPeer& peer, const char* path, uint32_t question,
                                     const std::string& name) {
  std::string request;
  append_bytes_field(question, name, request);
  auto answers = grpc_call(peer, path, request);
  if (!answers) return std::unexpected(answers.error());
  if (answers->empty()) return fail("the reflection service gave no answer");
  return descriptors_in(answers->front());
}

}  // namespace

Result<std::vector<std::string>> descriptors_in(std::string_view response) {
  std::vector<std::string> descriptors;
  std::string refusal;
  bool refused = false, whole = true;
  whole &= for_each_field(response, [&](const WireField& field) {
    if (!field.is_bytes) return;
    if (field.id == kFileDescriptorResponse) {
      whole &= for_each_field(field.bytes, [&](const WireField& file) {
        if (file.is_bytes && file.id == kFileDescriptorProto) descriptors.emplace_back(file.bytes);
      });
    } else if (field.id == kErrorResponse) {
      refused = true;
      whole &= for_each_field(field.bytes, [&](const WireField& part) {
        if (part.is_bytes && part.id == kErrorMessage) refusal = part.bytes.substr(0, 200);
      });
    }
  });
  if (!whole) return fail("the answer of the reflection service is malformed");
  if (refused) return fail("the server's reflection says: {}", refusal);
  return descriptors;
}

Result<std::vector<std::string>> reflect(const GrpcPeer& peer, const std::string& service) {
  const char* path = kV1;
  auto found = ask(peer, path, kFileContainingSymbol, service);
  if (!found && found.error().code == kUnimplemented) {
    path = kV1Alpha;
    found = ask(peer, path, kFileContainingSymbol, service);
  }
  if (!found) {
    Error error = found.error();
    error.remedy = "give the messages with --proto FILE, or encoded with --data-hex or --data-file";
    error.what = fmt::format("cannot learn what {} takes: {}", service, error.what);
    if (error.code == kUnimplemented) error.what = "the server has no reflection service";
    return std::unexpected(error);
  }
  std::set<std::string> asked;
  for (int round = 0; round < kMostRounds; ++round) {
    bool more = false;
    for (const std::string& name : missing_imports(*found)) {
      if (!asked.insert(name).second) continue;
      auto file = ask(peer, path, kFileByFilename, name);
      if (!file) return std::unexpected(file.error());
      found->insert(found->end(), file->begin(), file->end());
      more = true;
    }
    if (!more) break;
  }
  return found;
}

}  // namespace assay::load
