#include <cctype>
#include <map>
#include <regex>
#include <set>

#include "cli/commands.h"
#include "cli/output/terminal.h"

namespace assay::cli {
namespace {

constexpr const char* kExamples =
    "Examples:\n"
    "  source <(assay completions bash)\n"
    "  assay completions zsh > \"${fpath[1]}/_assay\"\n"
    "  assay completions fish > ~/.config/fish/completions/assay.fish";

// What can stand after an option or as an argument.
enum class Values { none, file, directory, run, pid, name, port, words };

struct CompletedOption {
  std::vector<std::string> names;  // "-o", "--output"; empty for an argument
  Values values = Values::none;
  std::vector<std::string> words;
  std::string description;  // one line, without quotes
};

struct CompletedCommand {
  std::string name, description;
  std::vector<CompletedOption> options;
  Values argument = Values::none;
  bool launches = false;  // takes "-- CMD"
};

std::string plain(std::string text) {
  for (char& c : text) {
    if (c == '\'' || c == '"' || c == '[' || c == ']' || c == ':' || c == '\n' || c == '`') c = ' ';
  }
  return text;
}

// "text, md or json (default text)" names the values itself.
std::vector<std::string> words_in(const std::string& description) {
  static const std::regex list(R"(^([\w.-]+(?:,\s[\w.-]+)*\sor\s[\w.-]+)(?:$|\s\())");
  std::smatch found;
  if (!std::regex_search(description, found, list)) return {};
  std::string text = std::regex_replace(found[1].str(), std::regex("\\sor\\s|,\\s"), " ");
  std::vector<std::string> words;
  for (size_t at = 0, end = 0; at < text.size(); at = end + 1) {
    end = std::min(text.find(' ', at), text.size());
    words.push_back(text.substr(at, end - at));
  }
  return words;
}

// The parser writes the limits behind the type ("PORT:1-65535"), and options that take several have
// dots ("RUN…").
std::string plain_type(std::string type) {
  type = type.substr(0, type.find(':'));
  constexpr std::string_view kDots = "…";
  if (type.ends_with(kDots)) type.resize(type.size() - kDots.size());
  return type;
}

void choose_values(const CLI::Option& option, CompletedOption& out) {
  static const std::map<std::string, Values> kTypes{
      {"FILE", Values::file}, {"DIR", Values::directory}, {"RUN", Values::run},
      {"PID", Values::pid},   {"NAME", Values::name},     {"PORT", Values::port},
      {"PATH", Values::file}};
  static const std::map<std::string, std::vector<std::string>> kWords{
      {"TIME", {"1s", "10s", "30s", "1m", "5m"}}, {"HZ", {"49", "99", "199", "499", "999"}}};
  std::string type = plain_type(option.get_type_name());
  out.words = words_in(option.get_description());
  if (auto known = kWords.find(type); known != kWords.end()) out.words = known->second;
  out.values = out.words.empty() ? Values::none : Values::words;
  if (auto known = kTypes.find(type); known != kTypes.end()) out.values = known->second;
}

CompletedCommand read_command(const CLI::App& app) {
  CompletedCommand command;
  command.name = app.get_name();
  command.description = plain(app.get_description());
  for (const CLI::Option* option : app.get_options()) {
    if (option->get_group().empty()) continue;  // hidden from --help as well
    CompletedOption out;
    for (const std::string& name : option->get_snames()) out.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) out.names.push_back("--" + name);
    out.description = plain(option->get_description());
    if (option->get_items_expected_max() > 0) choose_values(*option, out);
    if (out.names.empty()) {
      if (out.values == Values::run || out.values == Values::file) command.argument = out.values;
      continue;
    }
    for (const std::string& name : out.names) command.launches |= name == "--no-children";
    command.options.push_back(std::move(out));
  }
  return command;
}

std::vector<CompletedCommand> read_commands(const CLI::App& root) {
  std::vector<CompletedCommand> commands;
  for (const CLI::App* app : root.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(read_command(*app));
  return commands;
}

std::string joined(const std::vector<std::string>& words, const char* between = " ") {
  std::string out;
  for (const std::string& word : words) out += (out.empty() ? "" : between) + word;
  return out;
}

std::string command_names(const std::vector<CompletedCommand>& commands) {
  std::vector<std::string> names;
  for (const CompletedCommand& command : commands) names.push_back(command.name);
  return joined(names);
}

// The shell functions that the tables below call, by what they offer.
constexpr const char* kBashFunctions = R"sh(
_assay_words() { COMPREPLY=($(compgen -W "$1" -- "$word")); }
_assay_files() { COMPREPLY=($(compgen "$@" -- "$word")); compopt -o filenames 2>/dev/null; }
_assay_runs() { _assay_files -f -X '!*.assay'; COMPREPLY+=($(compgen -d -- "$word")); }
_assay_pids() { _assay_words "$(cd /proc && echo [0-9]*)"; }
_assay_names() { _assay_words "$(cat /proc/[0-9]*/comm 2>/dev/null | sort -u | tr '\n' ' ')"; }
_assay_ports() {
  local _ address state list=
  while read -r _ address _ state _; do
    [[ $state == 0A ]] && list+=" $((16#${address##*:}))"
  done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
  _assay_words "$list"
}
)sh";

std::string bash_values(Values values, const std::vector<std::string>& words) {
  switch (values) {
    case Values::none:
      return "COMPREPLY=()";
    case Values::file:
      return "_assay_files -f";
    case Values::directory:
      return "_assay_files -d";
    case Values::run:
      return "_assay_runs";
    case Values::pid:
      return "_assay_pids";
    case Values::name:
      return "_assay_names";
    case Values::port:
      return "_assay_ports";
    case Values::words:
      return "_assay_words '" + joined(words) + "'";
  }
  return "";
}

bool takes_value(const CLI::App& root, const std::string& command, const std::string& name) {
  const CLI::Option* option = root.get_subcommand(command)->get_option_no_throw(name);
  return option != nullptr && option->get_items_expected_max() > 0;
}

std::string bash_script(const CLI::App& root, const std::vector<CompletedCommand>& commands) {
  std::string out = "# bash completion for assay, printed by `assay completions bash`.\n";
  out += kBashFunctions;
  std::string options = "_assay_options() {\n  case $1 in\n", values, arguments;
  for (const CompletedCommand& command : commands) {
    std::vector<std::string> names;
    for (const CompletedOption& option : command.options) {
      names.insert(names.end(), option.names.begin(), option.names.end());
      for (const std::string& name : option.names) {
        if (takes_value(root, command.name, name))
          values += fmt::format("    '{} {}') {}; return ;;\n", command.name, name,
                                bash_values(option.values, option.words));
      }
    }
    options += fmt::format("    {}) echo '{}' ;;\n", command.name, joined(names));
    if (command.argument != Values::none)
      arguments += fmt::format("    {}) {} ;;\n", command.name, bash_values(command.argument, {}));
  }
  options += "    *) echo '-h --help --version' ;;\n  esac\n}\n";
  out += options;
  out += fmt::format(R"sh(
_assay() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD - 1]}} command= i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${{COMP_WORDS[i]}} == -- ]]; then  # what follows is another program's command line
      if ((i == COMP_CWORD - 1)); then COMPREPLY=($(compgen -c -- "$word")); else _assay_files -f; fi
      return
    fi
    [[ -z $command && " {} " == *" ${{COMP_WORDS[i]}} "* ]] && command=${{COMP_WORDS[i]}}
  done
  case "$command $previous" in
{}  esac
  if [[ -z $command && $word != -* ]]; then _assay_words '{}'; return; fi
  if [[ $word == -* ]]; then _assay_words "$(_assay_options "$command")"; return; fi
  case $command in
{}    *) _assay_words "$(_assay_options "$command")" ;;
  esac
}}
complete -F _assay assay
)sh",
                     command_names(commands), values, command_names(commands), arguments);
  return out;
}

constexpr const char* kZshFunctions = R"sh(
_assay_pids() { local -a pids=(/proc/<1->(N:t)); compadd -a pids }
_assay_names() { local -a names=(${(fu)"$(cat /proc/[0-9]*/comm 2>/dev/null)"}); compadd -a names }
_assay_ports() {
  local -a ports fields
  local line
  for line in ${(f)"$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)"}; do
    fields=(${=line})
    [[ $fields[4] == 0A ]] && ports+=($((16#${fields[2]##*:})))
  done
  compadd -a ports
}
)sh";

std::string zsh_values(Values values, const std::vector<std::string>& words) {
  switch (values) {
    case Values::none:
      return " ";
    case Values::file:
      return "_files";
    case Values::directory:
      return "_files -/";
    case Values::run:
      return "_files -g \"*.assay\"";
    case Values::pid:
      return "_assay_pids";
    case Values::name:
      return "_assay_names";
    case Values::port:
      return "_assay_ports";
    case Values::words:
      return "(" + joined(words) + ")";
  }
  return "";
}

std::string zsh_script(const CLI::App& root, const std::vector<CompletedCommand>& commands) {
  std::string out =
      "#compdef assay\n# zsh completion for assay, printed by `assay completions zsh`.\n";
  out += kZshFunctions;
  out += "\n_assay() {\n  local -a commands\n  commands=(\n";
  for (const CompletedCommand& command : commands)
    out += fmt::format("    '{}:{}'\n", command.name, command.description);
  out +=
      "  )\n  local context state state_descr line\n  typeset -A opt_args\n"
      "  _arguments -C '(-h --help)'{-h,--help}'[show help]' '--version[show the version]' "
      "'1:command:->command' '*::argument:->argument'\n"
      "  case $state in\n    command) _describe command commands ;;\n    argument)\n"
      "      case $line[1] in\n";
  for (const CompletedCommand& command : commands) {
    out += fmt::format("        {})\n          _arguments", command.name);
    for (const CompletedOption& option : command.options) {
      for (const std::string& name : option.names) {
        out += fmt::format(" \\\n            '*{}[{}]", name, option.description);
        if (takes_value(root, command.name, name))
          out += fmt::format(":value:{}", zsh_values(option.values, option.words));
        out += "'";
      }
    }
    if (command.argument != Values::none)
      out += fmt::format(" \\\n            '*:file:{}'", zsh_values(command.argument, {}));
    if (command.launches) out += " \\\n            '*::command to launch:_normal'";
    out += "\n          ;;\n";
  }
  return out + "      esac\n      ;;\n  esac\n}\n\n_assay \"$@\"\n";
}

std::string fish_values(Values values, const std::vector<std::string>& words) {
  switch (values) {
    case Values::none:
      return " -x";
    case Values::file:
    case Values::directory:
      return " -r -F";
    case Values::run:
      return " -r -k -a '(__fish_complete_suffix .assay)'";
    case Values::pid:
      return " -x -a '(__fish_complete_pids)'";
    case Values::name:
      return " -x -a '(cat /proc/*/comm 2>/dev/null | sort -u)'";
    case Values::port:
      return " -x -a '(__assay_ports)'";
    case Values::words:
      return " -x -a '" + joined(words) + "'";
  }
  return "";
}

std::string fish_script(const CLI::App& root, const std::vector<CompletedCommand>& commands) {
  std::string out = R"sh(# fish completion for assay, printed by `assay completions fish`.
function __assay_ports
    cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | while read -l _number address _remote state _rest
        test "$state" = 0A; and math 0x(string split -r -m 1 : -- $address)[2]
    end | sort -un
end

complete -c assay -f
complete -c assay -s h -l help -d 'show help'
)sh";
  std::string none = fmt::format("not __fish_seen_subcommand_from {}", command_names(commands));
  out += fmt::format("complete -c assay -n '{}' -l version -d 'show the version'\n", none);
  for (const CompletedCommand& command : commands) {
    out += fmt::format("complete -c assay -n '{}' -a {} -d '{}'\n", none, command.name,
                       command.description);
    std::string seen = fmt::format("__fish_seen_subcommand_from {}", command.name);
    for (const CompletedOption& option : command.options) {
      std::string names, value;
      for (const std::string& name : option.names) {
        names += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
        if (takes_value(root, command.name, name)) value = fish_values(option.values, option.words);
      }
      if (names.find(" -l help") != std::string::npos) continue;  // offered everywhere
      out += fmt::format("complete -c assay -n '{}'{}{} -d '{}'\n", seen, names, value,
                         option.description);
    }
    if (command.argument != Values::none)
      out +=
          fmt::format("complete -c assay -n '{}' -k -a '(__fish_complete_suffix .assay)'\n", seen);
  }
  return out;
}

class CompletionsCommand final : public Command {
 public:
  CompletionsCommand(CLI::App* parser, const CLI::App& root) : Command(parser), root_(root) {
    parser->footer(kExamples);
    parser->add_option("shell", shell_, "bash, zsh or fish")
        ->required()
        ->check(CLI::IsMember({"bash", "zsh", "fish"}))
        ->type_name("SHELL");
  }

  int run(const Invocation&) override {
    std::vector<CompletedCommand> commands = read_commands(root_);
    std::string script = shell_ == "bash"  ? bash_script(root_, commands)
                         : shell_ == "zsh" ? zsh_script(root_, commands)
                                           : fish_script(root_, commands);
    return write_out(stdout, script) ? kDone : kFailed;
  }

 private:
  const CLI::App& root_;
  std::string shell_;
};

}  // namespace

std::unique_ptr<Command> make_completions_command(CLI::App& app) {
  return std::make_unique<CompletionsCommand>(
      app.add_subcommand("completions", "Print the completion script of a shell"), app);
}

}  // namespace assay::cli
