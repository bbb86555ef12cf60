// GrpcHost: what the lab's gRPC servers share: a loopback port, reflection, an end on SIGTERM.
//
// build() exits 1 with a message when the port is not available. wait_for_end() returns on SIGINT
// or SIGTERM, which block_signals() must have blocked before any thread was started.
#pragma once

#include <csignal>
#include <memory>

#include <grpcpp/grpcpp.h>

namespace lab {

std::unique_ptr<grpc::Server> build(grpc::ServerBuilder& builder, int port);
void wait_for_end(const sigset_t& signals);
void shut_down(grpc::Server& server);  // lets calls finish for two seconds

}  // namespace lab
