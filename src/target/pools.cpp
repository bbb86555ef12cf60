#include "target/pools.h"

#include <map>

namespace assay::target {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The runs of digits in a name, in order.
std::vector<std::string> numbers_in(std::string_view name) {
  std::vector<std::string> numbers;
  bool in_run = false;
  for (char c : name) {
    if (is_digit(c) && !in_run) numbers.emplace_back();
    in_run = is_digit(c);
    if (in_run) numbers.back().push_back(c);
  }
  return numbers;
}

struct Pool {
  std::vector<std::string> numbers;  // of the first member
  std::vector<bool> varies;          // per run of digits
};

}  // namespace

std::string pool_name(std::string_view thread_name) {
  std::string pool;
  bool in_run = false;
  for (char c : thread_name) {
    if (!is_digit(c)) {
      pool.push_back(c);
    } else if (!in_run) {
      pool.push_back('*');
    }
    in_run = is_digit(c);
  }
  return pool;
}

std::vector<std::string> pool_names(const std::vector<std::string>& thread_names) {
  // The key has one digit in place of each run of digits. No other name can have a digit there, so
  // a "*" in a thread's own name is not confused with a replaced number.
  auto key_of = [](std::string_view name) {
    std::string key;
    bool in_run = false;
    for (char c : name) {
      if (!is_digit(c)) key.push_back(c);
      if (is_digit(c) && !in_run) key.push_back('0');
      in_run = is_digit(c);
    }
    return key;
  };
  std::map<std::string, Pool> pools;
  for (const std::string& name : thread_names) {
    std::vector<std::string> numbers = numbers_in(name);
    auto [found, is_new] = pools.try_emplace(key_of(name));
    Pool& pool = found->second;
    if (is_new) {
      pool.numbers = numbers;
      pool.varies.resize(numbers.size());
    }
    for (size_t run = 0; run < numbers.size(); ++run) {
      if (numbers[run] != pool.numbers[run]) pool.varies[run] = true;
    }
  }
  std::vector<std::string> names;
  for (const std::string& name : thread_names) {
    std::string key = key_of(name);
    const Pool& pool = pools.at(key);
    std::string text;
    size_t run = 0;
    for (char c : key) {
      if (!is_digit(c)) {
        text.push_back(c);
      } else {
        text += pool.varies[run] ? "*" : pool.numbers[run];
        ++run;
      }
    }
    names.push_back(std::move(text));
  }
  return names;
}

}  // namespace assay::target
