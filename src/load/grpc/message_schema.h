// MessageSchema: the request message of one gRPC method, made from JSON.
//
// In: .proto files, or the file descriptors from a server's reflection; the method as in the URL's
// path ("/package.Service/Method"). Out: encoded messages. Threads: encode() from any number at
// once. Failures: files that do not parse, a service or method that is not there, JSON that does
// not fit the message; each says which.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace assay::load {

struct MethodName {
  std::string service;  // "package.Service"
  std::string method;
};
// From "/package.Service/Method", as parse_url() accepts it.
MethodName split_method(std::string_view path);

class MessageSchema {
 public:
  static Result<std::shared_ptr<MessageSchema>> from_files(const std::vector<std::string>& files,
                                                           const std::vector<std::string>& paths,
                                                           const MethodName& method);
  // Serialized FileDescriptorProtos, in any order.
  static Result<std::shared_ptr<MessageSchema>> from_descriptors(
      const std::vector<std::string>& descriptors, const MethodName& method);
  virtual ~MessageSchema() = default;

  virtual Result<std::string> encode(const std::string& json) const = 0;
};

// Names of the files that these descriptors import and that are not among them.
std::vector<std::string> missing_imports(const std::vector<std::string>& descriptors);

}  // namespace assay::load
