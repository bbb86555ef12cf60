#include "lab/common/grpc_host.h"

#include <chrono>
#include <string>

#include <grpcpp/ext/proto_server_reflection_plugin.h>

#include "lab/common/process.h"

namespace lab {

std::unique_ptr<grpc::Server> build(grpc::ServerBuilder& builder, int port) {
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  // Without this, gRPC shares a port that is in use instead of reporting an error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  int chosen = 0;
  builder.AddListeningPort("127.0.0.1:" + std::to_string(port), grpc::InsecureServerCredentials(),
                           &chosen);
  std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
  if (!server || chosen == 0) {
    die_saying("cannot listen on 127.0.0.1:" + std::to_string(port) + ": is it in use?");
  }
  announce(chosen);
  return server;
}

void wait_for_end(const sigset_t& signals) {
  for (int number = SIGCHLD; number == SIGCHLD;) sigwait(&signals, &number);
}

void shut_down(grpc::Server& server) {
  server.Shutdown(std::chrono::system_clock::now() + std::chrono::seconds(2));
}

}  // namespace lab
