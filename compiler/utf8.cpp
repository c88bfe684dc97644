#include "compiler/utf8.h"

#include <algorithm>
#include <array>
#include <iterator>

namespace stave {

namespace {

struct Range {
  char32_t first;
  char32_t last;
};

constexpr std::array<Range, 12> kCombining = {{{0x0300, 0x036F},
                                               {0x0483, 0x0489},
                                               {0x0591, 0x05BD},
                                               {0x0610, 0x061A},
                                               {0x064B, 0x065F},
                                               {0x200B, 0x200D},
                                               {0x20D0, 0x20F0},
                                               {0x302A, 0x302D},
                                               {0x3099, 0x309A},
                                               {0xFE00, 0xFE0F},
                                               {0xFE20, 0xFE2F},
                                               {0xE0100, 0xE01EF}}};

constexpr std::array<Range, 14> kWide = {{{0x1100, 0x115F},
                                          {0x231A, 0x231B},
                                          {0x23E9, 0x23EC},
                                          {0x2E80, 0x303E},
                                          {0x3041, 0x33FF},
                                          {0x3400, 0x4DBF},
                                          {0x4E00, 0x9FFF},
                                          {0xA000, 0xA4CF},
                                          {0xAC00, 0xD7A3},
                                          {0xF900, 0xFAFF},
                                          {0xFE30, 0xFE6F},
                                          {0xFF00, 0xFF60},
                                          {0x1F300, 0x1FAFF},
                                          {0x20000, 0x3FFFD}}};

template <std::size_t N>
bool in(const std::array<Range, N>& ranges, char32_t character) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](Range range) { return character >= range.first && character <= range.last; });
}

}  // namespace

std::size_t utf8_length(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) -> unsigned {
    return at + i < text.size() ? static_cast<unsigned char>(text[at + i]) : 0u;
  };
  const auto follows = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    if ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F)) return 0;
    return follows(1) && follows(2) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    if ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F)) return 0;
    return follows(1) && follows(2) && follows(3) ? 4 : 0;
  }
  return 0;
}

char32_t utf8_character(std::string_view text, std::size_t at, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<char32_t>(static_cast<unsigned char>(text[at + i])); };
  if (length <= 1) return byte(0);
  char32_t result = byte(0) & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) result = (result << 6) | (byte(i) & 0x3F);
  return result;
}

unsigned display_width(char32_t character) {
  if (character < 0x300) return 1;
  return in(kCombining, character) ? 0 : in(kWide, character) ? 2 : 1;
}

bool is_printable(char32_t character) {
  if (character < 0x20 || (character >= 0x7F && character < 0xA0)) return false;
  return !(character >= 0x202A && character <= 0x202E) && !(character >= 0x2066 && character <= 0x2069) &&
         character != 0x200E && character != 0x200F && character != 0x2028 && character != 0x2029;
}

std::string valid_utf8(std::string_view text) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0)
      result += "\xEF\xBF\xBD";
    else
      result += text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return result;
}

}  // namespace stave
