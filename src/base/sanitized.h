// kSanitized: whether this is a build with AddressSanitizer or ThreadSanitizer. They find memory
// errors and data races within a few rounds and make the program many times slower, so tests that
// repeat for statistics do fewer rounds in such a build.
#pragma once

namespace assay {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif
#else
inline constexpr bool kSanitized = false;
#endif

}  // namespace assay
