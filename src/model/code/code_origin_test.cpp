#include "model/code/code_origin.h"

#include <gtest/gtest.h>

namespace assay::model {
namespace {

TEST(CodeOrigin, IsToldByTheModulesName) {
  for (const char* own :
       {"server", "/usr/sbin/nginx", "[unknown]", "", "my.sorter", "perf", "/usr/bin/perf-archive",
        "perf-.map", "perf-x1.map", "/opt/a.so/server", "anon", "/tmp/perf-4711"})
    EXPECT_EQ(code_origin(own), CodeOrigin::program) << own;
  for (const char* library :
       {"libc.so.6", "libc-2.31.so", "/usr/lib/x/libfoo.so.1.2.3", "[vdso]", "ld-linux-x86-64.so.2",
        "_ssl.cpython-311-x86_64-linux-gnu.so", "/opt/my.sorter/libx.so"})
    EXPECT_EQ(code_origin(library), CodeOrigin::library) << library;
  for (const char* generated : {"[anon 4711]", "[anon]", "[anon:jit]", "//anon", "perf-4711.map",
                                "/tmp/perf-4711.map", "jitted-4711-12.so"})
    EXPECT_EQ(code_origin(generated), CodeOrigin::generated) << generated;
}

TEST(CodeOrigin, ALibrarysVersionBeginsBehindItsSuffix) {
  EXPECT_EQ(library_suffix_at("libc.so.6"), 4u);
  EXPECT_EQ(library_suffix_at("/lib/libc-2.31.so"), 14u);
  EXPECT_EQ(library_suffix_at("a.sock.so"), 6u);
  EXPECT_EQ(library_suffix_at("a.sock"), std::string_view::npos);
  EXPECT_EQ(library_suffix_at("/a.so/b"), std::string_view::npos) << "a folder of that name";
  EXPECT_EQ(library_suffix_at(""), std::string_view::npos);
}

}  // namespace
}  // namespace assay::model
