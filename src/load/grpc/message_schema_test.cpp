// gRPC messages from JSON: by .proto files, by a server's reflection, and what goes wrong.
#include "load/grpc/message_schema.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <google/protobuf/descriptor.pb.h>
#include <gtest/gtest.h>

#include "base/testing/temporary_directory.h"
#include "load/generator.h"
#include "load/grpc/reflection.h"
#include "load/grpc/wire_reader.h"
#include "load/http2/fake_http2_server.h"

namespace assay::load {
namespace {

class ProtoFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(dir_ + "/common");
    put("common/types.proto", "syntax = \"proto3\"; package c; message Key { string id = 1; }");
    put("kv.proto",
        "syntax = \"proto3\"; package kv; import \"common/types.proto\";"
        "message Get { c.Key key = 1; int32 n = 2; } message Value { bytes v = 1; }"
        "service Store { rpc Read(Get) returns (Value); rpc Feed(stream Get) returns (Value); }");
  }
  void put(const std::string& name, const std::string& text) {
    std::ofstream(dir_ + "/" + name) << text;
  }
  TemporaryDirectory scratch_;
  std::string dir_ = scratch_.path();
};

TEST_F(ProtoFiles, JsonBecomesAMessage) {
  auto schema = MessageSchema::from_files({dir_ + "/kv.proto"}, {}, {"kv.Store", "Read"});
  ASSERT_TRUE(schema) << schema.error().what;
  auto bytes = (*schema)->encode(R"({"key": {"id": "abc"}, "n": 5})");
  ASSERT_TRUE(bytes) << bytes.error().what;
  EXPECT_EQ(*bytes, std::string("\x0a\x05\x0a\x03"
                                "abc"
                                "\x10\x05"));
  EXPECT_FALSE((*schema)->encode(R"({"nonsense": 1})"));
  EXPECT_FALSE((*schema)->encode("{"));
}

TEST_F(ProtoFiles, ImportPaths) {
  std::filesystem::create_directories(dir_ + "/deep");
  std::filesystem::rename(dir_ + "/kv.proto", dir_ + "/deep/kv.proto");
  EXPECT_FALSE(MessageSchema::from_files({dir_ + "/deep/kv.proto"}, {}, {"kv.Store", "Read"}));
  EXPECT_TRUE(MessageSchema::from_files({dir_ + "/deep/kv.proto"}, {dir_}, {"kv.Store", "Read"}));
}

TEST_F(ProtoFiles, WhatIsWrongIsNamed) {
  auto why = [&](const char* file, const char* service, const char* method) {
    auto schema = MessageSchema::from_files({dir_ + "/" + file}, {}, {service, method});
    return schema ? std::string("fine") : schema.error().what;
  };
  EXPECT_NE(why("none.proto", "kv.Store", "Read").find("there is no file"), std::string::npos);
  EXPECT_NE(why("kv.proto", "kv.None", "Read").find("kv.Store"), std::string::npos);
  EXPECT_NE(why("kv.proto", "kv.Store", "None").find("Read"), std::string::npos);
  EXPECT_NE(why("kv.proto", "kv.Store", "Feed").find("stream"), std::string::npos);
  put("broken.proto", "syntax = \"proto3\"; message {");
  EXPECT_NE(why("broken.proto", "kv.Store", "Read").find("broken.proto:1"), std::string::npos);
}

// File descriptors as a server would send them.
std::string descriptor(const std::string& name, const std::string& package,
                       const std::vector<std::string>& imports, bool with_service) {
  google::protobuf::FileDescriptorProto file;
  file.set_name(name);
  file.set_package(package);
  file.set_syntax("proto3");
  for (const std::string& import : imports) file.add_dependency(import);
  auto* message = file.add_message_type();
  message->set_name("M");
  auto* field = message->add_field();
  field->set_name("text");
  field->set_number(1);
  field->set_type(google::protobuf::FieldDescriptorProto::TYPE_STRING);
  field->set_label(google::protobuf::FieldDescriptorProto::LABEL_OPTIONAL);
  if (with_service) {
    auto* service = file.add_service();
    service->set_name("S");
    auto* method = service->add_method();
    method->set_name("Call");
    method->set_input_type(".base.M");
    method->set_output_type(".base.M");
  }
  return file.SerializeAsString();
}

TEST(Descriptors, AnyOrderAndWhatIsMissing) {
  std::string top = descriptor("top.proto", "top", {"base.proto"}, true);
  std::string base = descriptor("base.proto", "base", {}, false);
  EXPECT_EQ(missing_imports({top}), std::vector<std::string>{"base.proto"});
  EXPECT_TRUE(missing_imports({top, base}).empty());
  for (const auto& order : {std::vector{top, base}, std::vector{base, top}}) {
    auto schema = MessageSchema::from_descriptors(order, {"top.S", "Call"});
    ASSERT_TRUE(schema) << schema.error().what;
    EXPECT_EQ((*schema)->encode(R"({"text":"hi"})").value(), "\x0a\x02hi");
  }
  EXPECT_FALSE(MessageSchema::from_descriptors({top}, {"top.S", "Call"}));
  EXPECT_FALSE(MessageSchema::from_descriptors({"\xff\xff"}, {"top.S", "Call"}));
}

// A reflection service of v1alpha that gives each file by itself.
FakeAnswer reflect_alone(const std::string& body) {
  std::string wanted;
  for_each_field(std::string_view(body).substr(5), [&](const WireField& field) {
    if (field.is_bytes) wanted = field.bytes;
  });
  std::string file = wanted == "top.S"        ? descriptor("top.proto", "top", {"base.proto"}, true)
                     : wanted == "base.proto" ? descriptor("base.proto", "base", {}, false)
                                              : "";
  std::string files, response;
  append_bytes_field(1, file, files);
  append_bytes_field(4, files, response);
  if (file.empty()) {
    response.clear();
    std::string error;
    append_bytes_field(2, "never heard of it", error);
    append_bytes_field(7, error, response);
  }
  FakeAnswer answer;
  answer.body = grpc_frame(response);
  answer.grpc_status = "0";
  return answer;
}

FakeAnswer grpc_server(const std::string& path, const std::string& body) {
  if (path.starts_with("/grpc.reflection.v1alpha.")) return reflect_alone(body);
  FakeAnswer answer;
  answer.grpc_status = path == "/top.S/Call" ? "0" : "12";
  if (path == "/top.S/Call") answer.body = grpc_frame("");
  return answer;
}

TEST(Reflection, LoadAsksTheServerForItsMessages) {
  std::mutex mutex;
  std::vector<std::string> bodies;
  FakeHttp2Server server([&](int, const std::string& path, const std::string& body) {
    std::lock_guard lock(mutex);
    if (path == "/top.S/Call") bodies.push_back(body);
    return grpc_server(path, body);
  });
  LoadOptions options;
  options.url = server.grpc_url("/top.S/Call");
  options.connections = 1;
  options.requests_per_client = 2;
  options.duration_ns = 0;
  options.data = R"({"text": "n{{seq}}"})";
  std::atomic<bool> stop{false};
  auto result = generate(options, stop, [](const Tick&) {});
  ASSERT_TRUE(result) << result.error().what;
  EXPECT_EQ(result->total.ok, 2U);
  EXPECT_EQ(bodies, (std::vector<std::string>{grpc_frame("\x0a\x02n0"), grpc_frame("\x0a\x02n1")}));

  options.url = server.grpc_url("/top.Other/Call");
  auto unknown = generate(options, stop, [](const Tick&) {});
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().what.find("never heard of it"), std::string::npos);
}

TEST(Reflection, AServerWithoutIt) {
  FakeHttp2Server server([](int, const std::string&, const std::string&) {
    FakeAnswer answer;
    answer.grpc_status = "12";
    return answer;
  });
  LoadOptions options;
  options.url = server.grpc_url("/top.S/Call");
  options.data = "{}";
  auto workload = prepare_workload(options);
  ASSERT_FALSE(workload);
  EXPECT_NE(workload.error().what.find("no reflection"), std::string::npos);
  EXPECT_NE(workload.error().remedy.find("--proto"), std::string::npos);
}

TEST(WireReader, MalformedBytesEndTheWalk) {
  auto whole = [](std::string_view bytes) {
    return for_each_field(bytes, [](const WireField&) {});
  };
  EXPECT_TRUE(whole(""));
  EXPECT_TRUE(whole("\x08\x01\x12\x02hi"));
  for (std::string_view bad : {"\x08", "\x12\x05hi", "\x0f\x01", "\x09\x01", "\x0d\x01",
                               "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"}) {
    EXPECT_FALSE(whole(bad));
  }
  EXPECT_FALSE(whole(std::string_view("\x00\x01", 2)));
  EXPECT_FALSE(descriptors_in("\x22\x05\x0a"));
}

}  // namespace
}  // namespace assay::load
