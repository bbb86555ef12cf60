// reflect(): asks a gRPC server for its message types (grpc.reflection.v1, or v1alpha).
//
// In: a peer and a service's name. Out: the service's file descriptors and all they import.
// Blocking. Failures: a server without reflection, or without that service; both say what to do.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "load/grpc/grpc_call.h"

namespace assay::load {

Result<std::vector<std::string>> reflect(const GrpcPeer& peer, const std::string& service);

// The file descriptors in one ServerReflectionResponse; an Error when it holds one or is malformed.
Result<std::vector<std::string>> descriptors_in(std::string_view response);

}  // namespace assay::load
