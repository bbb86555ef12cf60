#include "view/selection.h"

#include <algorithm>
#include <charconv>

namespace assay::view {
namespace {

Result<int64_t> parse(std::string_view text, const std::string& name) {
  int64_t value = 0;
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) {
    return fail("parameter {} is not a number", name);
  }
  return value;
}

Result<std::vector<bool>> chosen(const Parameters& parameters, const std::string& name,
                                 size_t count) {
  auto found = parameters.find(name);
  if (found == parameters.end()) return std::vector<bool>();
  std::vector<bool> marks(std::max<size_t>(count, 1));
  std::string_view rest = found->second;
  while (!rest.empty()) {
    size_t comma = std::min(rest.find(','), rest.size());
    auto value = parse(rest.substr(0, comma), name);
    if (!value) return std::unexpected(value.error());
    if (*value < 0 || static_cast<uint64_t>(*value) >= count) {
      return fail("parameter {}: the run has no number {}", name, *value);
    }
    marks[static_cast<size_t>(*value)] = true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return marks;
}

std::vector<bool> nodes_below(const RunIndex& run, const std::vector<bool>& functions) {
  std::vector<bool> marks(run.node_count());
  uint32_t inside = UINT32_MAX;  // depth of the topmost chosen node whose subtree we are in
  for (NodeIndex node = 1; node < run.node_count(); ++node) {
    uint32_t depth = run.depths()[node];
    if (depth <= inside) inside = functions[run.functions()[node]] ? depth : UINT32_MAX;
    marks[node] = inside != UINT32_MAX;
  }
  return marks;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

Result<std::string> unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      plain += ' ';
    } else if (text[i] != '%') {
      plain += text[i];
    } else {
      int high = i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
      int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
      if (high < 0 || low < 0) return fail("a percent sign is not followed by two hex digits");
      plain += static_cast<char>(high * 16 + low);
      i += 2;
    }
  }
  return plain;
}

}  // namespace

Result<int64_t> number(const Parameters& parameters, const std::string& name, int64_t otherwise,
                       int64_t least, int64_t most) {
  auto found = parameters.find(name);
  if (found == parameters.end()) return otherwise;
  auto value = parse(found->second, name);
  if (!value) return value;
  if (*value < least || *value > most) {
    return fail("parameter {} must lie between {} and {}", name, least, most);
  }
  return value;
}

Result<Selection> select(const RunIndex& run, const Parameters& parameters) {
  auto from = number(parameters, "from", 0, 0, INT64_MAX);
  if (!from) return std::unexpected(from.error());
  auto to = number(parameters, "to", run.window_ns(), 0, INT64_MAX);
  if (!to) return std::unexpected(to.error());
  if (*to < *from) return fail("the range ends before it begins");
  auto threads = chosen(parameters, "threads", run.contents().threads.size());
  if (!threads) return std::unexpected(threads.error());
  auto functions = chosen(parameters, "functions", run.tree().functions().size());
  if (!functions) return std::unexpected(functions.error());
  Selection selection;
  selection.begin_ns = run.begin_ns() + std::min(*from, run.window_ns());
  selection.end_ns = run.begin_ns() + std::min(*to, run.window_ns());
  selection.threads = std::move(*threads);
  if (!functions->empty()) selection.nodes = nodes_below(run, *functions);
  return selection;
}

Result<Parameters> parse_query(std::string_view query) {
  Parameters parameters;
  while (!query.empty()) {
    size_t end = std::min(query.find('&'), query.size());
    std::string_view pair = query.substr(0, end);
    size_t equals = std::min(pair.find('='), pair.size());
    auto name = unescape(pair.substr(0, equals));
    if (!name) return std::unexpected(name.error());
    auto value = unescape(pair.substr(std::min(equals + 1, pair.size())));
    if (!value) return std::unexpected(value.error());
    if (!name->empty()) parameters[*name] = *value;
    query.remove_prefix(std::min(end + 1, query.size()));
  }
  return parameters;
}

}  // namespace assay::view
