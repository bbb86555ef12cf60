#include "inject/inproc/write/profile_files.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "inject/inproc/lifecycle/last_error.h"
#include "inject/inproc/write/write_gperftools.h"
#include "inject/inproc/write/write_pprof.h"

namespace assay::inproc {
namespace {

bool write_all(int fd, const ByteBuffer& bytes) {
  for (size_t done = 0; done < bytes.size();) {
    ssize_t wrote = write(fd, bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

int write_file(const ByteBuffer& bytes, const char* path) {
  char partial[4096];
  int length = snprintf(partial, sizeof partial, "%s.partial.%d", path, getpid());
  if (length < 0 || static_cast<size_t>(length) >= sizeof partial)
    return fail("the file's name is too long");
  int fd = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd < 0) return fail("cannot write %s: %s", partial, strerrordesc_np(errno));
  bool done = write_all(fd, bytes);
  int problem = errno;
  close(fd);
  if (done && rename(partial, path) == 0) return 0;
  if (done) problem = errno;
  unlink(partial);
  return fail("cannot write %s: %s", path, strerrordesc_np(problem));
}

}  // namespace

bool write_cpu_profile(const CpuResult& result, assay_format format, ByteBuffer& out) {
  if (format == ASSAY_GPERFTOOLS) return write_gperftools_cpu(result, out);
  Arena arena;
  Profile profile;
  return make_cpu_profile(result, arena, profile) && write_pprof(profile, arena, out);
}

int deliver(const ByteBuffer& bytes, const assay_output& output) {
  if (bytes.failed()) return fail("no memory for the profile");
  if (output.file != nullptr) return write_file(bytes, output.file);
  if (output.sink == nullptr) return fail("the output has neither a file nor a sink");
  if (output.sink(output.sink_argument, bytes.data(), bytes.size()) != 0)
    return fail("the sink did not take the profile");
  return 0;
}

}  // namespace assay::inproc
