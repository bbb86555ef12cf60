#include "os/sandbox/channel.h"

#include <cstring>

#include <poll.h>
#include <sys/socket.h>

namespace assay::os {
namespace {

constexpr int kLookEveryMs = 50;

}  // namespace

Result<std::pair<Channel, Channel>> Channel::pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return fail_errno("no socket pair");
  return std::pair(Channel(UniqueFd(ends[0])), Channel(UniqueFd(ends[1])));
}

Result<void> Channel::send(const std::string& bytes, const std::vector<int>& descriptors) {
  if (bytes.size() > kMostBytes || descriptors.size() > kMostDescriptors)
    return fail("the message is too large");
  std::string whole(sizeof(uint64_t), '\0');
  uint64_t length = bytes.size();
  std::memcpy(whole.data(), &length, sizeof length);
  whole += bytes;
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))]{};
  for (size_t at = 0; at < whole.size();) {
    iovec part{whole.data() + at, whole.size() - at};
    msghdr header{};
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    if (at == 0 && !descriptors.empty()) {
      header.msg_control = control;
      header.msg_controllen = CMSG_SPACE(descriptors.size() * sizeof(int));
      cmsghdr* rights = CMSG_FIRSTHDR(&header);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(descriptors.size() * sizeof(int));
      std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size() * sizeof(int));
    }
    ssize_t sent = ::sendmsg(socket_.get(), &header, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return fail_errno("the other process is gone");
    at += static_cast<size_t>(sent);
  }
  return {};
}

Result<void> Channel::wait_readable(const std::function<bool()>& give_up) {
  for (;;) {
    pollfd one{socket_.get(), POLLIN, 0};
    int ready = ::poll(&one, 1, give_up ? kLookEveryMs : -1);
    if (ready > 0) return {};
    if (ready < 0 && errno != EINTR) return fail_errno("cannot wait for an answer");
    if (ready == 0 && give_up && give_up()) return fail("no answer in time");
  }
}

Result<size_t> Channel::receive_some(char* into, size_t bytes, std::vector<UniqueFd>& descriptors) {
  alignas(cmsghdr) char control[CMSG_SPACE(kMostDescriptors * sizeof(int))]{};
  iovec part{into, bytes};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control;
  header.msg_controllen = sizeof control;
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket_.get(), &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail_errno("the other process is gone");
  for (cmsghdr* item = CMSG_FIRSTHDR(&header); item != nullptr; item = CMSG_NXTHDR(&header, item)) {
    if (item->cmsg_level != SOL_SOCKET || item->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (item->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(item) + i * sizeof(int), sizeof fd);
      UniqueFd owned(fd);
      if (descriptors.size() < kMostDescriptors) descriptors.push_back(std::move(owned));
    }
  }
  if (got == 0) return fail("the other process has ended");
  return static_cast<size_t>(got);
}

Result<Message> Channel::receive(const std::function<bool()>& give_up) {
  Message message;
  char prefix[sizeof(uint64_t)];
  uint64_t length = 0;
  size_t at = 0;
  while (at < sizeof prefix) {
    if (auto ready = wait_readable(give_up); !ready) return std::unexpected(ready.error());
    auto got = receive_some(prefix + at, sizeof prefix - at, message.descriptors);
    if (!got) return std::unexpected(got.error());
    at += *got;
  }
  std::memcpy(&length, prefix, sizeof length);
  if (length > kMostBytes) return fail("a message claims {} bytes", length);
  // Grows as bytes come: a length alone must not cost memory.
  constexpr size_t kStep = 1u << 20;
  while (message.bytes.size() < length) {
    size_t begin = message.bytes.size();
    message.bytes.resize(begin + std::min<uint64_t>(kStep, length - begin));
    if (auto ready = wait_readable(give_up); !ready) return std::unexpected(ready.error());
    auto got = receive_some(message.bytes.data() + begin, message.bytes.size() - begin,
                            message.descriptors);
    if (!got) return std::unexpected(got.error());
    message.bytes.resize(begin + *got);
  }
  return message;
}

}  // namespace assay::os
