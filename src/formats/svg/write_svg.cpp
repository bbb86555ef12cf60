#include "formats/svg/write_svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/compile.h>

#include "base/units.h"
#include "formats/svg/layout.h"
#include "formats/svg/page.h"
#include "formats/svg/palette.h"
#include "formats/export/text.h"
#include "model/display_name.h"

namespace assay::formats {
namespace {

constexpr double kWidth = 1200, kMargin = 12, kInner = kWidth - 2 * kMargin;
constexpr double kTop = 66, kRow = 18, kFoot = 44;
constexpr double kCharacter = 6.63;      // of the 11 px monospace text; kFlameScript has it too
constexpr double kGroupCharacter = 6.9;  // of the 11 px bold text of groups
constexpr double kNarrowest = 0.1 / kInner;
constexpr size_t kMostBoxes = 30'000;
constexpr const char* kNoiseColour = "#e4e6ea";

// "(anonymous namespace)::" says little and would often be all that fits.
std::string without_anonymous(std::string name) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)::";
  for (size_t at; (at = name.find(kAnonymous)) != name.npos;) name.erase(at, kAnonymous.size());
  return name;
}

double share(int64_t part, int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

std::string percent(double value) {
  return fmt::format("{:.{}f} %", value * 100, value < 0.0995 ? 2 : 1);
}

class Picture {
 public:
  Picture(const FlameTree& tree, const SvgOptions& options, Output& output)
      : tree_(tree),
        nodes_(tree.nodes()),
        metric_(tree.shape().metric),
        options_(options),
        output_(output),
        layout_(lay_out(tree, options.differential, kNarrowest, kMostBoxes, options.tested)) {}

  void draw() {
    find_largest_change();
    begin();
    for (const FlameBox& box : layout_.boxes) frame(box);
    output_.write("</g>\n");
    legend();
    output_.write(
        "<g id=\"tip\" class=\"ui screen\" style=\"display:none\"></g>\n<script><![CDATA[");
    output_.write(kFlameScript);
    output_.write("]]></script>\n</svg>\n");
  }

 private:
  double height() const { return kTop + layout_.depth * kRow + kFoot; }

  double change(const FlameNode& node) const {
    return share(node.total, nodes_[0].total) - share(node.base_total, nodes_[0].base_total);
  }
  void find_largest_change() {
    // At least a point: in two runs of the same program nothing shall look dramatic.
    largest_change_ = 0.01;
    for (const FlameNode& node : nodes_) {
      largest_change_ = std::max(largest_change_, std::abs(change(node)));
    }
  }

  void begin() {
    output_.write(fmt::format(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
        "version=\"1.1\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" data-left=\"{2}\" "
        "data-width=\"{3}\" data-top=\"{4}\" data-row=\"{5}\" data-rows=\"{6}\" "
        "data-icicle=\"{7}\">\n<title>{8}</title>\n<style>",
        kWidth, height(), kMargin, kInner, kTop, kRow, layout_.depth, options_.icicle ? 1 : 0,
        xml_text(options_.title)));
    output_.write(kFlameStyle);
    output_.write(fmt::format(
        "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
        "<g class=\"ui\"><text class=\"h1\" x=\"{0}\" y=\"28\">{1}</text>\n"
        "<text class=\"h2\" x=\"{0}\" y=\"48\">{2}</text>\n"
        "<g class=\"screen\"><text id=\"reset\" x=\"{3}\" y=\"51\" text-anchor=\"end\" "
        "style=\"display:none\">Reset zoom</text>\n<text id=\"found\" x=\"{4}\" y=\"28\" "
        "text-anchor=\"end\"></text>\n<foreignObject x=\"{5}\" y=\"10\" width=\"220\" "
        "height=\"28\"><input xmlns=\"http://www.w3.org/1999/xhtml\" id=\"query\" "
        "placeholder=\"Search: expression, / to focus\" spellcheck=\"false\"/></foreignObject></g>"
        "</g>\n<g id=\"frames\">\n",
        kMargin, xml_text(options_.title, 90), xml_text(options_.subtitle, 160), kWidth - kMargin,
        kWidth - kMargin - 230, kWidth - kMargin - 220));
  }

  // A gap beside its neighbour, where there is room for one.
  static double drawn_width(double width) { return width > 2 ? width - 0.6 : std::max(0.2, width); }

  // What all boxes of a label show, clean; what is named xml is escaped as well.
  struct Names {
    std::string full, brief;
    std::string full_xml, place_xml;
    std::string brief_xml;  // an attribute; empty where it is the full one
    std::string colour;     // empty: of the change
    bool known = false;
  };

  const Names& names_of(const FlameNode& node) {
    if (node.label >= names_.size()) names_.resize(node.label + size_t{1});
    Names& names = names_[node.label];
    if (!names.known) names = make_names(tree_.label_of(node));
    return names;
  }

  Names make_names(const FlameLabel& label) const {
    Names names;
    names.known = true;
    bool group = label.kind == FrameKind::group;
    names.full = clean_text(group ? label.name : model::fold_name(label.name), 300);
    names.brief =
        group ? names.full : clean_text(without_anonymous(model::short_name(label.name)), 300);
    if (names.full.empty()) names.full = names.brief = "[unnamed]";
    if (names.brief.empty()) names.brief = names.full;
    names.full_xml = xml_text(names.full);
    names.place_xml = xml_text(place(label));
    if (!names.place_xml.empty()) names.place_xml += '\n';
    if (names.brief != names.full) {
      names.brief_xml = fmt::format(" data-n=\"{}\"", xml_text(names.brief));
    }
    bool of_change = options_.tested || (options_.differential && !group);
    if (!of_change) names.colour = frame_colour(label.kind, label.name, metric_);
    return names;
  }

  // Module, file and line, as far as they are known.
  static std::string place(const FlameLabel& label) {
    std::string text;
    if (!label.file.empty()) {
      text = clean_text(label.file, 120);
      if (label.line > 0) text += fmt::format(":{}", label.line);
    }
    if (label.module.empty()) return text;
    return clean_text(label.module, 80) + (text.empty() ? "" : " · ") + text;
  }

  // As much of the name as fits; less of it in steps that a person would choose.
  static std::string fitted_xml(const Names& names, double width, bool group) {
    auto room = static_cast<long>((width - 7) / (group ? kGroupCharacter : kCharacter));
    if (room < 3) return "";
    auto characters = static_cast<size_t>(room);
    if (character_count(names.full) <= characters) return names.full_xml;
    bool whole = character_count(names.brief) <= characters;
    return xml_text(whole ? names.brief : clean_text(names.brief, characters - 1));
  }

  std::string amount(int64_t value) const {
    return options_.amount ? options_.amount(value) : metric_value(metric_, value);
  }

  std::string details(const FlameNode& node) const {
    std::string text;
    double now = share(node.total, nodes_[0].total);
    if (!options_.differential) {
      text += fmt::format("{} · {} of all", amount(node.total), percent(now));
      if (node.self > 0 && node.self != node.total) {
        text += fmt::format("\nself {} · {}", amount(node.self),
                            percent(share(node.self, nodes_[0].total)));
      }
      return text;
    }
    double before = share(node.base_total, nodes_[0].base_total);
    if (options_.tested) return text + tested_details(node);
    text += fmt::format("now {} · {}\nbefore {} · {}\n", amount(node.total), percent(now),
                        amount(node.base_total), percent(before));
    if (node.total == 0) return text + "gone";
    if (node.base_total == 0) return text + "new";
    return text + fmt::format("{:+.2f} points", (now - before) * 100);
  }

  std::string tested_details(const FlameNode& node) const {
    std::string text =
        fmt::format("now {}\nbefore {}\n", amount(node.total), amount(node.base_total));
    if (node.total == 0) {
      text += "gone";
    } else if (node.base_total == 0) {
      text += "new";
    } else {
      text += fmt::format("{:+.1f} %", (share(node.total, node.base_total) - 1) * 100);
    }
    return text + (node.shown ? "" : ": within noise");
  }

  // By the ratio of the sides: half or double is the full colour. Within noise: none.
  std::string tested_colour(const FlameNode& node) const {
    if (!node.shown) return kNoiseColour;
    if (node.total == 0 || node.base_total == 0) return change_colour(node.total == 0 ? -1 : 1);
    return change_colour(std::clamp(std::log2(share(node.total, node.base_total)), -1.0, 1.0));
  }

  void frame(const FlameBox& box) {
    const FlameNode& node = nodes_[box.node];
    bool group = tree_.label_of(node).kind == FrameKind::group;
    const Names& names = names_of(node);
    double x = kMargin + box.start * kInner, width = box.width * kInner;
    double y = kTop + (options_.icicle ? box.depth : layout_.depth - 1 - box.depth) * kRow;
    bool gone = options_.differential && node.total == 0 && width > 5;
    std::string colour = !names.colour.empty() ? names.colour
                         : options_.tested     ? tested_colour(node)
                                               : change_colour(change(node) / largest_change_);
    box_text_.clear();
    fmt::format_to(
        std::back_inserter(box_text_),
        FMT_COMPILE(
            "<g class=\"f{}{}\" data-s=\"{:.9g}\" data-w=\"{:.9g}\" data-d=\"{}\"{}><title>{}\n{}{}"
            "</title><rect x=\"{:.2f}\" y=\"{:.0f}\" width=\"{:.2f}\" height=\"{}\" rx=\"2\" "
            "fill=\"{}\"/><text x=\"{:.2f}\" y=\"{:.0f}\">{}</text></g>\n"),
        group ? " g" : "", gone ? " gone" : "", box.start, box.width, box.depth, names.brief_xml,
        names.full_xml, names.place_xml, xml_text_lines(details(node)), x, y, drawn_width(width),
        kRow - 1, colour, x + 4, y + kRow - 6, fitted_xml(names, width, group));
    output_.write({box_text_.data(), box_text_.size()});
  }

  // details() is clean already; its line ends are ours.
  static std::string xml_text_lines(const std::string& text) {
    std::string escaped;
    size_t begin = 0;
    while (true) {
      size_t end = text.find('\n', begin);
      escaped += xml_text(std::string_view(text).substr(begin, end - begin));
      if (end == text.npos) return escaped;
      escaped += '\n';
      begin = end + 1;
    }
  }

  size_t kind_index(const FlameNode& node) const {
    return static_cast<size_t>(tree_.label_of(node).kind);
  }
  // What the node has as a leaf function: an inverted tree has those first.
  int64_t leaf_value(const FlameNode& node) const {
    if (!tree_.shape().inverted) return node.self;
    constexpr auto kGroup = static_cast<size_t>(FrameKind::group);
    return kind_index(nodes_[node.parent]) == kGroup && kind_index(node) != kGroup ? node.total : 0;
  }

  void legend() {
    double x = kMargin, y = kTop + layout_.depth * kRow + 22;
    output_.write("<g class=\"ui leg\">\n");
    auto chip = [&](const std::string& colour, const std::string& text) {
      output_.write(
          fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"13\" height=\"13\" rx=\"3\" "
                      "fill=\"{}\"/><text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n",
                      x, y - 10.5, colour, x + 18, y, xml_text(text)));
      x += 36 + static_cast<double>(character_count(text)) * 6.1;
    };
    if (options_.tested) {
      chip(change_colour(0.1), "dearer by a tenth");
      chip(change_colour(1), "by half and more, or new");
      chip(change_colour(-0.1), "cheaper by a tenth");
      chip(change_colour(-1), "by half and more; dashed: gone");
      chip(kNoiseColour, "within noise");
    } else if (options_.differential) {
      chip(change_colour(1), fmt::format("more, up to {:+.1f} points", largest_change_ * 100));
      chip(change_colour(0), "unchanged");
      chip(change_colour(-1), "less; dashed: gone");
    } else {
      std::array<int64_t, kFrameKindCount> self{};
      for (const FlameNode& node : nodes_) self[kind_index(node)] += leaf_value(node);
      for (int i = 1; i < kFrameKindCount; ++i) {
        auto kind = static_cast<FrameKind>(i);
        if (self[static_cast<size_t>(i)] == 0) continue;
        chip(kind_colour(kind, metric_),
             fmt::format("{} {}", frame_kind_name(kind),
                         percent(share(self[static_cast<size_t>(i)], nodes_[0].total))));
      }
    }
    std::string note = "click: zoom · esc: back · arrows: walk · i: turn over · /: search";
    output_.write(
        fmt::format("<text class=\"screen\" x=\"{}\" y=\"{}\" text-anchor=\"end\" "
                    "fill=\"#8a93a1\">{}</text>\n</g>\n",
                    kWidth - kMargin, y, note));
  }

  const FlameTree& tree_;
  const std::vector<FlameNode>& nodes_;
  Metric metric_;
  const SvgOptions& options_;
  Output& output_;
  FlameLayout layout_;
  double largest_change_ = 0;
  std::vector<Names> names_;  // by label, made when first asked for
  fmt::memory_buffer box_text_;
};

}  // namespace

void write_svg(const FlameTree& tree, const SvgOptions& options, Output& output) {
  Picture(tree, options, output).draw();
}

}  // namespace assay::formats
