#include "load/grpc/message_schema.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include <google/protobuf/compiler/importer.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/util/json_util.h>

namespace assay::load {
namespace {

namespace pb = google::protobuf;

// Keeps the first error of protobuf's parsers, with its position.
class FirstComplaint final : public pb::compiler::MultiFileErrorCollector,
                             public pb::DescriptorPool::ErrorCollector {
 public:
  void AddError(const std::string& file, int line, int, const std::string& message) override {
    if (text_.empty()) {
      text_ = line >= 0 ? fmt::format("{}:{}: {}", file, line + 1, message)
                        : fmt::format("{}: {}", file, message);
    }
  }
  void AddError(const std::string& file, const std::string& element, const pb::Message*,
                ErrorLocation, const std::string& message) override {
    if (text_.empty()) text_ = fmt::format("{}: {}: {}", file, element, message);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

std::string known_services(const std::vector<const pb::FileDescriptor*>& files) {
  std::string names;
  for (const pb::FileDescriptor* file : files) {
    for (int i = 0; i < file->service_count(); ++i) {
      names += (names.empty() ? "" : ", ") + file->service(i)->full_name();
    }
  }
  return names;
}

class Schema final : public MessageSchema {
 public:
  // Only for the importer's trees; a pool of descriptors owns itself.
  pb::compiler::DiskSourceTree tree;
  FirstComplaint complaint;
  std::unique_ptr<pb::compiler::Importer> importer;
  std::unique_ptr<pb::DescriptorPool> pool;
  std::vector<const pb::FileDescriptor*> files;

  Result<void> choose(const pb::DescriptorPool& from, const MethodName& name) {
    const pb::ServiceDescriptor* service = from.FindServiceByName(name.service);
    if (service == nullptr) {
      std::string known = known_services(files);
      return fail("there is no service {}{}", name.service,
                  known.empty() ? "" : "; there are " + known);
    }
    const pb::MethodDescriptor* method = service->FindMethodByName(name.method);
    if (method == nullptr) {
      std::string known;
      for (int i = 0; i < service->method_count(); ++i) {
        known += (i == 0 ? "" : ", ") + service->method(i)->name();
      }
      return fail("{} has no method {}; it has {}", name.service, name.method, known);
    }
    if (method->client_streaming()) {
      return fail("{}/{} takes a stream of messages; load sends one", name.service, name.method);
    }
    prototype_ = factory_.GetPrototype(method->input_type());
    return {};
  }

  Result<std::string> encode(const std::string& json) const override {
    std::unique_ptr<pb::Message> message(prototype_->New());
    auto status = pb::util::JsonStringToMessage(json, message.get());
    if (!status.ok()) {
      return fail("the JSON does not fit the message {}: {}",
                  prototype_->GetDescriptor()->full_name(), status.message().ToString());
    }
    std::string bytes;
    if (!message->SerializeToString(&bytes)) return fail("the message is too long");
    return bytes;
  }

 private:
  pb::DynamicMessageFactory factory_;
  const pb::Message* prototype_ = nullptr;
};

// The file's name below the path that holds it, as an import would write it; the deepest path wins.
std::string name_below(const std::string& file, const std::vector<std::string>& paths) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  std::string best = fs::path(file).filename();
  size_t shortest = SIZE_MAX;
  for (const std::string& path : paths) {
    std::string relative = fs::relative(file, path, ignored);
    bool below = !relative.empty() && !relative.starts_with("..");
    if (below && relative.size() < shortest) {
      shortest = relative.size();
      best = relative;
    }
  }
  return best;
}

}  // namespace

MethodName split_method(std::string_view path) {
  size_t slash = path.find('/', 1);
  if (slash == path.npos) return {};
  return {std::string(path.substr(1, slash - 1)), std::string(path.substr(slash + 1))};
}

Result<std::shared_ptr<MessageSchema>> MessageSchema::from_files(
    const std::vector<std::string>& files, const std::vector<std::string>& paths,
    const MethodName& method) {
  auto schema = std::make_shared<Schema>();
  std::vector<std::string> roots = paths;
  for (const std::string& file : files) {
    if (!std::filesystem::exists(file)) return fail("there is no file {}", file);
    std::string parent = std::filesystem::path(file).parent_path();
    roots.push_back(parent.empty() ? "." : parent);
  }
  for (const std::string& root : roots) schema->tree.MapPath("", root);
  schema->importer = std::make_unique<pb::compiler::Importer>(&schema->tree, &schema->complaint);
  for (const std::string& file : files) {
    const pb::FileDescriptor* read = schema->importer->Import(name_below(file, roots));
    if (read == nullptr) return fail("cannot read {}: {}", file, schema->complaint.text());
    schema->files.push_back(read);
  }
  if (auto chosen = schema->choose(*schema->importer->pool(), method); !chosen) {
    return std::unexpected(chosen.error());
  }
  return schema;
}

Result<std::shared_ptr<MessageSchema>> MessageSchema::from_descriptors(
    const std::vector<std::string>& descriptors, const MethodName& method) {
  std::map<std::string, pb::FileDescriptorProto> waiting;
  for (const std::string& bytes : descriptors) {
    pb::FileDescriptorProto proto;
    if (!proto.ParseFromString(bytes)) return fail("the server sent a malformed file descriptor");
    std::string name = proto.name();
    waiting.emplace(std::move(name), std::move(proto));
  }
  auto schema = std::make_shared<Schema>();
  schema->pool = std::make_unique<pb::DescriptorPool>();
  // A file can be built when all its imports are built; a round that builds none means that an
  // import is missing.
  for (bool built = true; built && !waiting.empty();) {
    built = false;
    for (auto it = waiting.begin(); it != waiting.end();) {
      const auto& imports = it->second.dependency();
      bool ready = std::all_of(imports.begin(), imports.end(), [&](const std::string& name) {
        return schema->pool->FindFileByName(name) != nullptr;
      });
      if (!ready) {
        ++it;
        continue;
      }
      const pb::FileDescriptor* file =
          schema->pool->BuildFileCollectingErrors(it->second, &schema->complaint);
      if (file == nullptr) return fail("the server's description: {}", schema->complaint.text());
      schema->files.push_back(file);
      it = waiting.erase(it);
      built = true;
    }
  }
  if (!waiting.empty()) {
    return fail("the server's description of {} lacks what it imports", waiting.begin()->first);
  }
  if (auto chosen = schema->choose(*schema->pool, method); !chosen) {
    return std::unexpected(chosen.error());
  }
  return schema;
}

std::vector<std::string> missing_imports(const std::vector<std::string>& descriptors) {
  std::set<std::string> known, wanted;
  for (const std::string& bytes : descriptors) {
    pb::FileDescriptorProto proto;
    if (!proto.ParseFromString(bytes)) continue;
    known.insert(proto.name());
    wanted.insert(proto.dependency().begin(), proto.dependency().end());
  }
  std::vector<std::string> missing;
  for (const std::string& name : wanted) {
    if (!known.contains(name)) missing.push_back(name);
  }
  return missing;
}

}  // namespace assay::load
