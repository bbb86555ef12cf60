/* libassay: profiles of this process, taken by itself.
 *
 * Link with -lassay (pkg-config assay, or find_package(assay) in CMake), or preload libassay.so and
 * change nothing. Every function may be called from any thread, none from a signal handler. Nothing
 * here ever ends the process or throws. Functions that can fail return a negative number and leave
 * a sentence for assay_last_error(). docs/libassay.md is the manual.
 */
#ifndef ASSAY_ASSAY_H
#define ASSAY_ASSAY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ASSAY_API __attribute__((visibility("default")))

/* "0.1.0" */
ASSAY_API const char* assay_version(void);

/* Why the last call of this process failed, copied to `text`; "" when none did. Returns `text`. */
ASSAY_API char* assay_last_error(char* text, size_t room);

/* Takes the bytes of a profile, in one or more calls; anything but 0 stops. */
typedef int (*assay_sink)(void* argument, const void* bytes, size_t size);

enum assay_format {
  ASSAY_PPROF = 0,      /* profile.proto, gzipped, with functions */
  ASSAY_GPERFTOOLS = 1, /* the formats of gperftools */
};

struct assay_output {
  const char* file; /* written at the end; or */
  assay_sink sink;  /* called at the end */
  void* sink_argument;
  enum assay_format format;
};

/* CPU profile of all threads. One at a time in a process. hz 0 is 100. */
ASSAY_API int assay_cpu_start(unsigned hz);
ASSAY_API int assay_cpu_stop(const struct assay_output* output);

/* For programs with libassay.a (libassay.so sees threads begin by itself): the calling thread is
 * new, and may end before CPU profiles find it, within a tenth of a second. The first label of a
 * thread says the same. */
ASSAY_API void assay_thread_begin(void);

/* The heap as it is now: live and allocated objects and bytes, by call site. */
ASSAY_API int assay_heap_snapshot(const struct assay_output* output);

/* Labels: what this thread works for. Samples of CPU time, allocations and lock waits carry them.
 */
ASSAY_API uint32_t assay_label_push(const char* key, size_t key_size, const char* value,
                                    size_t value_size);
ASSAY_API void assay_label_pop(uint32_t what_push_returned);

/* Serves /debug/pprof/ at "127.0.0.1:8070", "8070" (loopback), "unix:/path"; at any other address
 * only with a token, which requests then carry. A token of NULL is taken from the environment
 * (ASSAY_TOKEN). Returns the port (0 for a unix socket). */
ASSAY_API int assay_serve(const char* address, const char* token);
ASSAY_API void assay_serve_stop(void);

/* Lock waits: one sample per so many nanoseconds of waiting on average; 0 switches them off. On (1
 * ms) while something is served. */
ASSAY_API void assay_lock_waits(uint64_t mean_ns);

#ifdef __cplusplus
}
#endif
#endif
