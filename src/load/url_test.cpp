#include "load/url.h"

#include <gtest/gtest.h>

namespace assay::load {
namespace {

TEST(Url, Parts) {
  auto url = parse_url("http://localhost:8080/a/b?c=d#e");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "localhost");
  EXPECT_EQ(url->port, 8080);
  EXPECT_EQ(url->path, "/a/b?c=d");
  EXPECT_EQ(url->authority, "localhost:8080");
  EXPECT_FALSE(url->tls);
  EXPECT_FALSE(url->grpc);
  EXPECT_EQ(url->text(), "http://localhost:8080/a/b?c=d");
}

TEST(Url, Defaults) {
  EXPECT_EQ(parse_url("http://h")->port, 80);
  EXPECT_EQ(parse_url("http://h")->path, "/");
  EXPECT_EQ(parse_url("https://h?x")->path, "/?x");
  EXPECT_EQ(parse_url("https://h")->port, 443);
  EXPECT_TRUE(parse_url("https://h")->tls);
}

TEST(Url, Ipv6) {
  auto url = parse_url("http://[::1]:81/");
  ASSERT_TRUE(url);
  EXPECT_EQ(url->host, "::1");
  EXPECT_EQ(url->port, 81);
  EXPECT_EQ(url->authority, "[::1]:81");
}

TEST(Url, Grpc) {
  auto url = parse_url("grpc://127.0.0.1:50051/helloworld.Greeter/SayHello");
  ASSERT_TRUE(url);
  EXPECT_TRUE(url->grpc);
  EXPECT_EQ(url->path, "/helloworld.Greeter/SayHello");
  for (const char* bad : {"grpc://h:1", "grpc://h:1/", "grpc://h:1/Service", "grpc://h:1/S/",
                          "grpc://h:1//M", "grpc://h:1/a/b/c", "grpc://h/a.S/M"}) {
    EXPECT_FALSE(parse_url(bad)) << bad;
  }
}

TEST(Url, WhatIsWrong) {
  for (const char* bad :
       {"", "localhost:8000", "ftp://h/", "http://", "http:///x", "http://:80/", "http://h:0/",
        "http://h:65536/", "http://h:8o/", "http://h:/", "http://[::1/", "http://[::1]x/",
        "http://::1/", "http://user:pw@h/", "http://h/a b", "http://h/a\r\nX: y"}) {
    auto url = parse_url(bad);
    EXPECT_FALSE(url) << bad;
  }
}

}  // namespace
}  // namespace assay::load
