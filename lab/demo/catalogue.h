// Catalogue: the demo server's shared table, behind one mutex, with one fault on purpose.
//
// find() and update() hold the lock for a lookup. search() holds it while it scans every
// description: the slow path that makes every other thread wait. A profile must show exactly that.
// Threads: every call may come from any thread.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace lab {

struct Item {
  long id = 0;
  std::string name;
  std::string description;
  std::vector<double> prices;
  uint64_t views = 0;
};

class Catalogue {
 public:
  explicit Catalogue(long item_count);

  std::optional<Item> find(long id);
  bool update(long id, double price);
  std::vector<long> search(const std::string& word);  // the slow path
  long size() const { return item_count_; }

 private:
  const long item_count_;
  std::mutex mutex_;
  std::unordered_map<long, Item> items_;
};

// An item as JSON, strings escaped: the work that a request should be made of.
std::string to_json(const Item& item);

}  // namespace lab
