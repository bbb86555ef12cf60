// A busy program with deep and varied stacks: makes nested documents, prints them and reads them
// back, on as many threads as asked for (usage: documents THREADS), until it is ended.
//
// What servers do with JSON, up to a hundred frames deep. run.py builds it with frame pointers; it
// calls no library while it works, as those may have none, so its frame-pointer chains are
// complete, as on systems that are built with frame pointers throughout.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <thread>
#include <vector>

namespace {

using Random = std::minstd_rand;

struct Node {
  uint64_t key = 0, value = 0;
  Node* first = nullptr;  // member
  Node* next = nullptr;   // member of the same object
};

// Nodes of one document; all freed at once.
class Arena {
 public:
  Node* make() {
    Node* node = &nodes_[used_++ % nodes_.size()];
    *node = {};
    return node;
  }
  void clear() { used_ = 0; }

 private:
  std::vector<Node> nodes_ = std::vector<Node>(1 << 16);
  size_t used_ = 0;
};

class Maker {
 public:
  Maker(Random& random, Arena& arena) : random_(random), arena_(arena) {}
  Node* value(int depth) {
    Node* node = arena_.make();
    node->value = random_();
    if (depth > 0) members(*node, depth);
    return node;
  }

 private:
  void members(Node& node, int depth) {
    auto count = 1 + random_() % 3;
    for (unsigned i = 0; i < count; ++i) {
      // One long path, and short ones beside it.
      int below = i == 0 ? depth - 1 : std::min(depth - 1, static_cast<int>(random_() % 4));
      Node* child = value(below);
      child->key = random_();
      child->next = node.first;
      node.first = child;
    }
  }
  Random& random_;
  Arena& arena_;
};

class Printer {
 public:
  void value(const Node& node) {
    if (node.first == nullptr) return number(node.value);
    object(node);
  }
  const char* text() const { return text_.data(); }
  void clear() { size_ = 0; }

 private:
  void object(const Node& node) {
    put('{');
    for (const Node* child = node.first; child != nullptr; child = child->next) member(*child);
    put('}');
  }
  void member(const Node& child) {
    number(child.key);
    put(':');
    value(child);
    put(',');
  }
  void number(uint64_t number) {
    for (; number > 0; number /= 10) put(static_cast<char>('0' + number % 10));
    put(' ');
  }
  void put(char c) { text_[size_++ % text_.size()] = c; }
  std::vector<char> text_ = std::vector<char>(1 << 22);
  size_t size_ = 0;
};

class Parser {
 public:
  Parser(const char* text, Arena& arena) : at_(text), arena_(arena) {}
  Node* value() {
    Node* node = arena_.make();
    if (*at_ == '{') {
      object(*node);
    } else {
      node->value = number();
    }
    return node;
  }

 private:
  void object(Node& node) {
    Node** last = &node.first;
    for (++at_; *at_ != '}';) {
      *last = member();
      last = &(*last)->next;
    }
    ++at_;
  }
  Node* member() {
    uint64_t key = number();
    ++at_;
    Node* node = value();
    node->key = key;
    ++at_;
    return node;
  }
  uint64_t number() {
    uint64_t number = 0;
    for (uint64_t scale = 1; *at_ != ' '; scale *= 10) {
      number += static_cast<uint64_t>(*at_++ - '0') * scale;
    }
    ++at_;
    return number;
  }
  const char* at_;
  Arena& arena_;
};

uint64_t hash_of(const Node& node) {
  uint64_t hash = node.first == nullptr ? node.value : 0;
  for (const Node* child = node.first; child != nullptr; child = child->next) {
    hash = hash * 31 + child->key + hash_of(*child);
  }
  return hash;
}

void work(unsigned seed) {
  Random random(seed);
  Arena made, parsed;
  Printer printer;
  while (true) {
    made.clear();
    parsed.clear();
    printer.clear();
    const Node* document = Maker(random, made).value(8 + static_cast<int>(random() % 40));
    printer.value(*document);
    const Node* back = Parser(printer.text(), parsed).value();
    if (hash_of(*back) != hash_of(*document)) std::abort();
  }
}

}  // namespace

int main(int argc, char** argv) {
  int count = argc > 1 ? std::atoi(argv[1]) : 1;
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(work, static_cast<unsigned>(i + 1));
  for (std::thread& thread : threads) thread.join();
}
