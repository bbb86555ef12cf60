// grpc_call(): one gRPC call, from a message to its answers, blocking. For the few calls before
// load starts (reflection); load itself does not use it.
//
// In: where, which method, one encoded message. Out: the messages of the answer, or an Error with
// the gRPC status as its code. Bounded in time and in bytes.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "load/address.h"
#include "load/tls_context.h"
#include "load/url.h"
#include "load/workload.h"

namespace assay::load {

struct GrpcPeer {
  const Url& url;
  const Address& address;
  const TlsContext* tls = nullptr;
  std::vector<Header> headers;  // small letters
  int64_t timeout_ns = 0;
};

Result<std::vector<std::string>> grpc_call(const GrpcPeer& peer, const std::string& path,
                                           std::string_view message);

}  // namespace assay::load
