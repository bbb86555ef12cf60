// A second or so of C++ with many inlined calls: parsing, sorting, maps, regular expressions.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <regex>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

static std::vector<std::string> words(unsigned seed) {
  std::vector<std::string> out;
  for (int i = 0; i < 2000; ++i) {
    seed = seed * 1664525 + 1013904223;
    out.push_back("user" + std::to_string(seed % 997) + "@host" + std::to_string(seed % 31) +
                  ".com");
  }
  return out;
}

static size_t count_words(const std::vector<std::string>& list) {
  std::map<std::string, int> ordered;
  std::unordered_map<std::string, int> hashed;
  for (const auto& word : list) {
    ++ordered[word];
    ++hashed[word.substr(0, 6)];
  }
  return ordered.size() + hashed.size();
}

static size_t match_words(const std::vector<std::string>& list) {
  static const std::regex pattern("([a-z]+)([0-9]+)@([a-z]+)[0-9]+\\.com");
  return static_cast<size_t>(std::count_if(list.begin(), list.begin() + 200, [](const auto& word) {
    return std::regex_match(word, pattern);
  }));
}

static size_t print_words(std::vector<std::string> list) {
  std::sort(list.begin(), list.end(), [](const auto& a, const auto& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  std::ostringstream out;
  for (const auto& word : list) out << word << ' ' << word.size() << '\n';
  return out.str().size();
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? std::atoi(argv[1]) : 100;
  size_t sum = 0;
  for (int i = 0; i < rounds; ++i) {
    auto list = words(static_cast<unsigned>(i));
    sum += count_words(list) + match_words(list) + print_words(list);
  }
  std::printf("%zu\n", sum);
}
