// Front: the HTTP side of media's main process.
//
// IO threads, each with its own epoll and connections; adopt() gives them new ones, deliver()
// passes a worker's piece to the thread whose connection asked for it. Requests that no worker
// answers within --timeout-ms become a 504. Both calls may come from any thread.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "lab/common/options.h"
#include "lab/media/channel.h"
#include "lab/media/request_log.h"
#include "lab/media/scheduler.h"

namespace lab::media {

class IoLoop;

class Front {
 public:
  Front(const Options& options, DecodeScheduler& scheduler, RequestLog& log);
  ~Front();
  Front(const Front&) = delete;
  Front& operator=(const Front&) = delete;

  void adopt(int fd);
  void deliver(const Response& piece);
  uint64_t served() const;

 private:
  std::vector<std::unique_ptr<IoLoop>> loops_;
  size_t next_ = 0;
};

}  // namespace lab::media
