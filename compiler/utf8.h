// UTF-8: where characters begin and end, and how much room they take in a terminal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace stave {

/// Bytes of the character that begins at `at`; 0 if none does (RFC 3629: no overlong form, no surrogate).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// The character of `length` bytes at `at`, as utf8_length gave it.
char32_t utf8_character(std::string_view text, std::size_t at, std::size_t length);

/// Columns of a character in a terminal: 0 for combining marks, 2 for wide ones (Unicode's East Asian Width).
unsigned display_width(char32_t character);

/// Whether a terminal may be sent the character: no control, nothing that turns the direction of the text.
bool is_printable(char32_t character);

/// The text with every byte that is no UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace stave
