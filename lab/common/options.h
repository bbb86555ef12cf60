// Options: the command line of a lab server, in one syntax for all of them.
//
// `--name VALUE` sets an option that was declared, `--fault NAME=INTENSITY` switches a declared
// fault on; an intensity of 0 is the fault switched off. `--help` prints every option and fault.
// Failures: anything else is a sentence on stderr and exit status 2.
// Threads: parse() belongs to main; afterwards everything is read only.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lab {

class Options {
 public:
  Options(std::string program, std::string purpose);

  // Declarations come before parse(). Numbers are checked against [least, most].
  void number(std::string name, long value, long least, long most, std::string help);
  void text(std::string name, std::string value, std::string help);
  void fault(std::string name, long most, std::string help);

  void parse(int argc, char** argv);

  long number(std::string_view name) const;
  const std::string& text(std::string_view name) const;
  long fault(std::string_view name) const;  // 0: not switched on

  // Every option and fault as given, to pass them to a process of the same program.
  std::vector<std::string> arguments() const;

 private:
  enum class Kind { number, text, fault };
  struct Entry {
    Kind kind;
    std::string name;
    std::string help;
    std::string text;
    long number = 0, least = 0, most = 0;
  };
  const Entry& entry(Kind kind, std::string_view name) const;
  Entry* find(bool is_fault, std::string_view name);
  void set_number(Entry& entry, const std::string& text, const std::string& shown_as) const;
  void set_fault(const std::string& text);
  [[noreturn]] void wrong_usage(const std::string& sentence) const;
  void print_help() const;

  std::string program_, purpose_;
  std::vector<Entry> entries_;
};

}  // namespace lab
