#include "lab/common/options.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace lab {

Options::Options(std::string program, std::string purpose)
    : program_(std::move(program)), purpose_(std::move(purpose)) {
  number("port", 0, 0, 65535, "TCP port on 127.0.0.1; 0 takes a free one");
}

void Options::number(std::string name, long value, long least, long most, std::string help) {
  entries_.push_back({Kind::number, std::move(name), std::move(help), {}, value, least, most});
}

void Options::text(std::string name, std::string value, std::string help) {
  entries_.push_back({Kind::text, std::move(name), std::move(help), std::move(value)});
}

void Options::fault(std::string name, long most, std::string help) {
  entries_.push_back({Kind::fault, std::move(name), std::move(help), {}, 0, 0, most});
}

void Options::parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string name = argv[i];
    if (name == "--help" || name == "-h") {
      print_help();
      std::exit(0);
    }
    std::string value;
    bool has_value = false;
    if (size_t equals = name.find('='); name.starts_with("--") && equals != std::string::npos) {
      value = name.substr(equals + 1);
      name.resize(equals);
      has_value = true;
    } else if (i + 1 < argc) {
      value = argv[i + 1];
      has_value = true;
      ++i;
    }
    Entry* entry = name.starts_with("--") ? find(false, name.substr(2)) : nullptr;
    if (!entry && name != "--fault") wrong_usage("unknown option " + name);
    if (!has_value) wrong_usage(name + " needs a value");
    if (!entry) {
      set_fault(value);
    } else if (entry->kind == Kind::text) {
      entry->text = value;
    } else {
      set_number(*entry, value, name);
    }
  }
}

void Options::set_fault(const std::string& text) {
  size_t equals = text.find('=');
  std::string name = text.substr(0, equals);
  Entry* entry = find(true, name);
  if (!entry) {
    std::string known;
    for (const Entry& other : entries_) {
      if (other.kind == Kind::fault) known += (known.empty() ? "" : ", ") + other.name;
    }
    wrong_usage("unknown fault '" + name + "'; there are: " + known);
  }
  if (equals == std::string::npos)
    wrong_usage("--fault " + name + " needs an intensity: " + name + "=N");
  set_number(*entry, text.substr(equals + 1), "--fault " + name);
}

void Options::set_number(Entry& entry, const std::string& text, const std::string& shown_as) const {
  long value = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    wrong_usage(shown_as + " is a number, not '" + text + "'");
  }
  if (value < entry.least || value > entry.most) {
    wrong_usage(shown_as + " is " + std::to_string(entry.least) + " to " +
                std::to_string(entry.most) + ", not " + text);
  }
  entry.number = value;
}

Options::Entry* Options::find(bool is_fault, std::string_view name) {
  for (Entry& entry : entries_) {
    if ((entry.kind == Kind::fault) == is_fault && entry.name == name) return &entry;
  }
  return nullptr;
}

const Options::Entry& Options::entry(Kind kind, std::string_view name) const {
  for (const Entry& entry : entries_) {
    if (entry.kind == kind && entry.name == name) return entry;
  }
  std::fprintf(stderr, "%s: option %.*s was never declared\n", program_.c_str(),
               static_cast<int>(name.size()), name.data());
  std::abort();
}

long Options::number(std::string_view name) const {
  return entry(Kind::number, name).number;
}
const std::string& Options::text(std::string_view name) const {
  return entry(Kind::text, name).text;
}
long Options::fault(std::string_view name) const {
  return entry(Kind::fault, name).number;
}

std::vector<std::string> Options::arguments() const {
  std::vector<std::string> out;
  for (const Entry& entry : entries_) {
    if (entry.kind == Kind::fault) {
      out.insert(out.end(), {"--fault", entry.name + "=" + std::to_string(entry.number)});
    } else {
      bool is_text = entry.kind == Kind::text;
      out.insert(out.end(),
                 {"--" + entry.name, is_text ? entry.text : std::to_string(entry.number)});
    }
  }
  return out;
}

void Options::wrong_usage(const std::string& sentence) const {
  std::fprintf(stderr, "%s: %s\ntry: %s --help\n", program_.c_str(), sentence.c_str(),
               program_.c_str());
  std::exit(2);
}

void Options::print_help() const {
  std::printf("%s: %s\n\nusage: %s [OPTIONS] [--fault NAME=INTENSITY]...\n", program_.c_str(),
              purpose_.c_str(), program_.c_str());
  for (bool faults : {false, true}) {
    std::printf(faults ? "\nfaults (0 switches one off)\n" : "\noptions\n");
    for (const Entry& entry : entries_) {
      if ((entry.kind == Kind::fault) != faults) continue;
      std::string left = faults ? entry.name + "=0.." + std::to_string(entry.most)
                                : "--" + entry.name + " " +
                                      (entry.kind == Kind::text ? "'" + entry.text + "'"
                                                                : std::to_string(entry.number));
      std::printf("  %-26s %s\n", left.c_str(), entry.help.c_str());
    }
  }
}

}  // namespace lab
