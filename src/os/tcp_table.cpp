#include "os/tcp_table.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "os/procfs.h"

namespace assay::os {
namespace {

constexpr std::string_view kListenState = "0A";
enum Column { kLocal = 1, kState = 3, kUid = 7, kInode = 9, kColumns = 10 };

template <class Number>
bool parse(std::string_view text, Number& value, int base = 10) {
  auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  return status == std::errc() && end == text.data() + text.size();
}

// False when the line has fewer columns.
bool split(std::string_view line, std::array<std::string_view, kColumns>& columns) {
  for (std::string_view& column : columns) {
    size_t begin = line.find_first_not_of(' ');
    if (begin == line.npos) return false;
    line.remove_prefix(begin);
    column = line.substr(0, line.find(' '));
    line.remove_prefix(column.size());
  }
  return true;
}

}  // namespace

std::vector<ListeningSocket> parse_tcp_table(std::string_view text) {
  std::vector<ListeningSocket> sockets;
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    std::array<std::string_view, kColumns> columns;
    if (!split(line, columns) || columns[kState] != kListenState) continue;
    size_t colon = columns[kLocal].find(':');
    if (colon == std::string_view::npos) continue;
    ListeningSocket socket;
    if (parse(columns[kLocal].substr(colon + 1), socket.port, 16) &&
        parse(columns[kUid], socket.uid) && parse(columns[kInode], socket.inode)) {
      sockets.push_back(socket);
    }
  }
  return sockets;
}

std::vector<ListeningSocket> listening_sockets(const ProcFs& proc, const std::string& directory) {
  std::vector<ListeningSocket> sockets;
  for (const char* table : {"/tcp", "/tcp6"}) {
    auto text = proc.read(directory + table);
    if (!text) continue;
    auto found = parse_tcp_table(*text);
    sockets.insert(sockets.end(), found.begin(), found.end());
  }
  return sockets;
}

}  // namespace assay::os
