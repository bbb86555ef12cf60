#include "formats/svg/palette.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace assay::formats {
namespace {

struct Hue {
  double hue, saturation, lightness;
  double hue_spread = 5, lightness_spread = 0.035;
};
// By FrameKind. Warm where time is used, cool where it is waited away.
constexpr std::array<Hue, kFrameKindCount> kOnCpu{{{220, .14, .88, 0, 0},
                                                   {33, .88, .66},
                                                   {50, .82, .68},
                                                   {10, .74, .71},
                                                   {92, .45, .68},
                                                   {0, .00, .82, 0, .02},
                                                   {210, .55, .78}}};
constexpr std::array<Hue, kFrameKindCount> kOffCpu{{{220, .14, .88, 0, 0},
                                                    {211, .68, .71},
                                                    {184, .42, .67},
                                                    {257, .48, .79},
                                                    {145, .34, .70},
                                                    {0, .00, .82, 0, .02},
                                                    {210, .55, .78}}};

// Green: memory.
constexpr std::array<Hue, kFrameKindCount> kHeap{{{220, .14, .88, 0, 0},
                                                  {115, .44, .66},
                                                  {80, .48, .67},
                                                  {160, .38, .68},
                                                  {55, .50, .68},
                                                  {0, .00, .82, 0, .02},
                                                  {210, .55, .78}}};

std::string hex(double hue, double saturation, double lightness) {
  double chroma = (1 - std::abs(2 * lightness - 1)) * saturation;
  auto channel = [&](double shift) {
    double k = std::fmod(shift + hue / 30 + 12, 12);
    double value = lightness - chroma / 2 * std::max(-1.0, std::min({k - 3, 9 - k, 1.0}));
    return static_cast<int>(std::lround(std::clamp(value, 0.0, 1.0) * 255));
  };
  return fmt::format("#{:02x}{:02x}{:02x}", channel(0), channel(8), channel(4));
}

const Hue& hue_of(FrameKind kind, Metric metric) {
  if (is_heap(metric)) return kHeap[static_cast<size_t>(kind)];
  bool waiting = metric == Metric::off || metric == Metric::lock || metric == Metric::waits ||
                 metric == Metric::runqueue;
  return (waiting ? kOffCpu : kOnCpu)[static_cast<size_t>(kind)];
}

}  // namespace

std::string frame_colour(FrameKind kind, std::string_view name, Metric metric) {
  const Hue& hue = hue_of(kind, metric);
  uint64_t hash = 1469598103934665603ull;
  for (char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 1099511628211ull;
  double a = static_cast<double>(hash >> 16 & 0xff) / 127.5 - 1;
  double b = static_cast<double>(hash >> 32 & 0xff) / 127.5 - 1;
  return hex(hue.hue + a * hue.hue_spread, hue.saturation,
             hue.lightness + b * hue.lightness_spread);
}

std::string kind_colour(FrameKind kind, Metric metric) {
  const Hue& hue = hue_of(kind, metric);
  return hex(hue.hue, hue.saturation, hue.lightness);
}

std::string change_colour(double change) {
  double strength = std::sqrt(std::min(1.0, std::abs(change)));
  double lightness = 0.93 - 0.25 * strength;
  return hex(change > 0 ? 28 : 214, change == 0 ? 0.0 : 0.25 + 0.6 * strength, lightness);
}

}  // namespace assay::formats
