#include "lab/demo/catalogue.h"

#include <array>
#include <cstdio>
#include <random>

namespace lab {

namespace {

constexpr std::array<const char*, 12> kWords{"gold",     "silver",  "crucible", "flux",
                                             "\"fine\"", "cupel",   "touch",    "stone",
                                             "weight",   "furnace", "tongs",    "slag"};
constexpr int kWordsPerDescription = 40;
constexpr int kPricesPerItem = 16;

std::string make_description(std::mt19937_64& random) {
  std::string text;
  for (int i = 0; i < kWordsPerDescription; ++i) {
    if (i > 0) text += ' ';
    text += kWords[random() % kWords.size()];
  }
  return text;
}

void append_escaped(std::string& out, const std::string& text) {
  out += '"';
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  out += '"';
}

void append_price(std::string& out, double price) {
  char digits[32];
  int length = std::snprintf(digits, sizeof digits, "%.4f", price);
  out.append(digits, static_cast<size_t>(length));
}

}  // namespace

Catalogue::Catalogue(long item_count) : item_count_(item_count) {
  std::mt19937_64 random(1);  // the same table in every run
  for (long id = 0; id < item_count; ++id) {
    Item item{id, "item-" + std::to_string(id), make_description(random), {}, 0};
    for (int i = 0; i < kPricesPerItem; ++i)
      item.prices.push_back(static_cast<double>(random() % 100000) / 100);
    items_.emplace(id, std::move(item));
  }
}

std::optional<Item> Catalogue::find(long id) {
  std::lock_guard lock(mutex_);
  auto found = items_.find(id);
  if (found == items_.end()) return std::nullopt;
  ++found->second.views;
  return found->second;
}

bool Catalogue::update(long id, double price) {
  std::lock_guard lock(mutex_);
  auto found = items_.find(id);
  if (found == items_.end()) return false;
  found->second.prices[found->second.views++ % kPricesPerItem] = price;
  return true;
}

std::vector<long> Catalogue::search(const std::string& word) {
  std::vector<long> ids;
  std::lock_guard lock(mutex_);
  for (const auto& [id, item] : items_) {
    if (item.description.find(word) != std::string::npos) ids.push_back(id);
  }
  return ids;
}

std::string to_json(const Item& item) {
  std::string out = "{\"id\":" + std::to_string(item.id) + ",\"name\":";
  append_escaped(out, item.name);
  out += ",\"description\":";
  append_escaped(out, item.description);
  out += ",\"prices\":[";
  for (size_t i = 0; i < item.prices.size(); ++i) {
    if (i > 0) out += ',';
    append_price(out, item.prices[i]);
  }
  out += "],\"views\":" + std::to_string(item.views) + "}";
  return out;
}

}  // namespace lab
