#include "run/selection/selection.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include <fmt/ranges.h>

#include "base/units.h"

namespace assay::run {
namespace {

using Texts = std::vector<std::string>;

template <class T>
Result<T> parse_number(std::string_view text, std::string_view name) {
  T value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) {
    return fail("parameter {} is not a number", name);
  }
  if (std::cmp_less(value, 0)) return fail("parameter {} must not be negative", name);
  return value;
}

Texts split(std::string_view text) {
  Texts parts(1);
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == ',') {
      parts.emplace_back();
    } else {
      if (text[i] == '\\' && i + 1 < text.size()) ++i;
      parts.back() += text[i];
    }
  }
  return parts;
}

std::string join(const Texts& parts) {
  std::string text;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) text += ',';
    for (char c : parts[i]) {
      if (c == ',' || c == '\\') text += '\\';
      text += c;
    }
  }
  return text;
}

// How one kind of member is read from, and written as, the value of its name. print() gives nothing
// where the member leaves the run whole.
Result<void> read(std::string_view, std::string_view value, std::string& member) {
  member = value;
  return {};
}
std::optional<std::string> print(const std::string& member) {
  if (member.empty()) return std::nullopt;
  return member;
}

Result<void> read(std::string_view, std::string_view value, Texts& member) {
  member = split(value);
  return {};
}
std::optional<std::string> print(const Texts& member) {
  if (member.empty()) return std::nullopt;
  return join(member);
}

Result<void> read(std::string_view name, std::string_view value, std::optional<int64_t>& member) {
  auto number = parse_number<int64_t>(value, name);
  if (!number) return std::unexpected(number.error());
  member = *number;
  return {};
}
std::optional<std::string> print(const std::optional<int64_t>& member) {
  if (!member) return std::nullopt;
  return fmt::format("{}", *member);
}

Result<void> read(std::string_view name, std::string_view value, bool& without_idle) {
  if (value != "0" && value != "1") return fail("parameter {} is neither 0 nor 1", name);
  without_idle = value == "0";
  return {};
}
std::optional<std::string> print(bool without_idle) {
  if (!without_idle) return std::nullopt;
  return "0";
}

pid_t number_of(pid_t value) {
  return value;
}
uint32_t number_of(uint32_t value) {
  return value;
}
template <class Tag>
uint32_t number_of(Id<Tag> id) {
  return id.value;
}

template <class T>
Result<void> read_numbers(std::string_view name, std::string_view value, std::vector<T>& member) {
  if (value.empty()) return {};
  for (const std::string& part : split(value)) {
    auto number = parse_number<decltype(number_of(T()))>(part, name);
    if (!number) return std::unexpected(number.error());
    member.push_back(T{*number});
  }
  return {};
}
template <class T>
std::string print_numbers(const std::vector<T>& member) {
  std::string text;
  for (const T& value : member)
    text += fmt::format("{}{}", text.empty() ? "" : ",", number_of(value));
  return text;
}

template <class T>
Result<void> read(std::string_view name, std::string_view value, std::vector<T>& member) {
  if (value.empty()) return fail("parameter {} names nothing", name);
  return read_numbers(name, value, member);
}
template <class T>
std::optional<std::string> print(const std::vector<T>& member) {
  if (member.empty()) return std::nullopt;
  return print_numbers(member);
}

// Of these an empty list is a selection too: nothing at all.
template <class T>
Result<void> read(std::string_view name, std::string_view value,
                  std::optional<std::vector<T>>& member) {
  return read_numbers(name, value, member.emplace());
}
template <class T>
std::optional<std::string> print(const std::optional<std::vector<T>>& member) {
  if (!member) return std::nullopt;
  return print_numbers(*member);
}

// The one list of names: visit(name, member).
template <class S, class Visit>
void for_each_member(S& selection, const Visit& visit) {
  visit("pid", selection.pids);
  visit("tid", selection.tids);
  visit("pool", selection.pools);
  visit("process", selection.processes);
  visit("processes", selection.process_ids);
  visit("thread", selection.thread);
  visit("threads", selection.threads);
  visit("from", selection.from_ns);
  visit("to", selection.to_ns);
  visit("focus", selection.focus);
  visit("ignore", selection.ignore);
  visit("functions", selection.functions);
  visit("idle", selection.without_idle);
}

}  // namespace

std::string selection_text(const Selection& selection) {
  std::string text;
  for_each_member(selection, [&](std::string_view name, const auto& member) {
    std::optional<std::string> value = print(member);
    if (!value) return;
    text += fmt::format("{}{}={}", text.empty() ? "" : "&", name, escape_query(*value));
  });
  return text;
}

Result<Selection> selection_among(const Parameters& parameters) {
  Selection selection;
  Result<void> done;
  for_each_member(selection, [&](std::string_view name, auto& member) {
    auto found = parameters.find(std::string(name));
    if (done && found != parameters.end()) done = read(name, found->second, member);
  });
  if (!done) return std::unexpected(done.error());
  if (selection.from_ns && selection.to_ns && *selection.to_ns < *selection.from_ns) {
    return fail("the range ends before it begins");
  }
  return selection;
}

Result<Selection> parse_selection(std::string_view text) {
  auto parameters = parse_query(text);
  if (!parameters) return std::unexpected(parameters.error());
  for (const auto& [name, value] : *parameters) {
    bool known = false;
    Selection any;
    for_each_member(any, [&](std::string_view member, const auto&) { known |= member == name; });
    if (!known) return fail("'{}' is no part of a selection", name);
  }
  return selection_among(*parameters);
}

std::string describe(const Selection& selection) {
  Texts parts;
  auto add = [&](std::string_view what, const auto& list) {
    if (!list.empty()) parts.push_back(fmt::format("{} {}", what, fmt::join(list, ", ")));
  };
  add("pid", selection.pids);
  add("tid", selection.tids);
  add("pool", selection.pools);
  add("process", selection.processes);
  if (!selection.thread.empty()) parts.push_back("thread " + selection.thread);
  if (selection.narrows_time()) {
    std::string from = selection.from_ns ? format_duration(*selection.from_ns) : "";
    std::string to = selection.to_ns ? format_duration(*selection.to_ns) : "";
    parts.push_back(fmt::format("time {}..{}", from, to));
  }
  if (!selection.focus.empty()) parts.push_back("focus " + selection.focus);
  if (!selection.ignore.empty()) parts.push_back("without " + selection.ignore);
  if (selection.without_idle) parts.push_back("without idle");
  return fmt::format("{}", fmt::join(parts, "; "));
}

Result<void> parse_time_range(std::string_view text, Selection& selection) {
  size_t dots = text.find("..");
  if (dots == text.npos || text == "..") {
    return fail_with_remedy(fmt::format("'{}' is no range of time", text),
                            "FROM..TO since the beginning, as in 2s..5s, 2s.. or ..500ms");
  }
  std::array<std::pair<std::string_view, std::optional<int64_t>*>, 2> ends{
      {{text.substr(0, dots), &selection.from_ns}, {text.substr(dots + 2), &selection.to_ns}}};
  for (auto& [part, member] : ends) {
    if (part.empty()) continue;
    auto ns = parse_duration_ns(part);
    if (!ns) return std::unexpected(ns.error());
    *member = *ns;
  }
  return {};
}

}  // namespace assay::run
