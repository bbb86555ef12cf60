#include "load/secrets.h"

#include <gtest/gtest.h>

namespace assay::load {
namespace {

TEST(Secrets, HeadersThatHoldThemAreHidden) {
  EXPECT_EQ(hide_secrets("http://h/ -H 'Authorization: Bearer abc.def'"),
            "http://h/ -H 'Authorization: ***'");
  EXPECT_EQ(hide_secrets("http://h/ -H \"Cookie: a=1; b=2\" -c 50"),
            "http://h/ -H \"Cookie: ***\" -c 50");
  EXPECT_EQ(hide_secrets("-H X-Auth-Token:abc -c 8"), "-H X-Auth-Token:*** -c 8");
  EXPECT_EQ(
      hide_secrets("wrk -H 'x-api-key: k' --header='Proxy-Authorization: Basic eA==' http://h/"),
      "wrk -H 'x-api-key: ***' --header='Proxy-Authorization: ***' http://h/");
  EXPECT_EQ(hide_secrets("Authorization: Bearer abc\nnext line"), "Authorization: ***\nnext line");
}

TEST(Secrets, OfACommandLineInACommandLine) {
  EXPECT_EQ(
      hide_secrets("assay record --load 'http://u:p@h:80/ -H \"Authorization: Bearer abc\"' -o x"),
      "assay record --load 'http://***@h:80/ -H \"Authorization: ***\"' -o x");
  EXPECT_EQ(hide_secrets("assay record --load 'http://h/ -H '\\''Cookie: id=5; x'\\'''"),
            "assay record --load 'http://h/ -H '\\''Cookie: ***'\\'''");
}

TEST(Secrets, UsersAndParametersOfUrlsAreHidden) {
  EXPECT_EQ(hide_secrets("http://user:pass@host:8000/p"), "http://***@host:8000/p");
  EXPECT_EQ(hide_secrets("https://token@h"), "https://***@h");
  EXPECT_EQ(hide_secrets("http://h/a@b"), "http://h/a@b");
  EXPECT_EQ(hide_secrets("http://h/?q=1&access_token=abc&x=2"),
            "http://h/?q=1&access_token=***&x=2");
  EXPECT_EQ(hide_secrets("http://h/?api_key=abc#top"), "http://h/?api_key=***#top");
}

TEST(Secrets, WhatHoldsNoneStaysAsItIs) {
  for (const char* text :
       {"assay record --port 8000 --for 30s -o run.assay", "http://127.0.0.1:8000/ -c 50",
        "-H 'Content-Type: application/json' -H 'Accept: */*'", "", "'", "://", "a=b:c",
        "token:", "--data '{\"n\": 1}'"}) {
    EXPECT_EQ(hide_secrets(text), text);
  }
}

}  // namespace
}  // namespace assay::load
