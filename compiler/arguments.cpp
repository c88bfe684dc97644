#include "compiler/arguments.h"

#include <fmt/format.h>

#include "compiler/evaluate.h"
#include "compiler/parse.h"
#include "compiler/resolve.h"

namespace stave {

namespace {

/// What the first error in a sink says.
std::string first_error(const Diagnostics& sink) {
  return sink.all().empty() ? "it cannot be read" : sink.all().front().message;
}

}  // namespace

Result<Argument> read_argument(std::string_view text) {
  const auto failure = [&](const std::string& why) {
    return Failure{fmt::format("parameter `{}`: {}", text.substr(0, 80), why)};
  };
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) return failure("write it as NAME=VALUE");
  Argument argument;
  argument.name = text.substr(0, equals);
  Sources sources;
  Diagnostics sink;
  Ast ast;
  const SourceId source = sources.add("argument", std::string(text.substr(equals + 1)));
  const std::optional<ExprId> value = parse_value(sources, source, ast, sink);
  if (!value) return failure(first_error(sink));
  Code code;
  Resolver resolver(code, sink);
  resolver.enter(ast, false);
  const TermId term = resolver.value(*value);
  if (!term.valid()) return failure(first_error(sink));
  for (const Term& each : code.terms)
    if (each.kind == TermKind::Setting) return failure("its value is an expression without names");
  Evaluator evaluator(code, sink);
  try {
    const Datum datum = evaluator.value(term);
    if (datum.is_number()) {
      argument.number = datum.rational();
      return argument;
    }
    constexpr const char* kNeeded = "its value must be a number, a list of numbers, or a list of such lists";
    if (!datum.is_list()) return failure(kNeeded);
    argument.is_list = true;
    std::int64_t elements = datum.length();
    const auto too_long = [&] {
      return failure(fmt::format("its list has {} elements; at most {} can be", elements, kMaxListLength));
    };
    if (elements > kMaxListLength) return too_long();
    for (std::int64_t i = 0; i < datum.length(); ++i) {
      const Datum each = datum[i];
      if (each.is_list()) {
        elements += each.length();
        if (elements > kMaxListLength) return too_long();
        std::vector<Datum> row;
        for (std::int64_t k = 0; k < each.length(); ++k) {
          if (!each[k].is_number()) return failure(kNeeded);
          row.push_back(each[k]);
        }
        argument.rows.push_back(std::make_shared<const std::vector<Datum>>(std::move(row)));
        const std::vector<Datum>& kept = *argument.rows.back();
        argument.items.push_back(Datum::written(kept.data(), static_cast<std::int64_t>(kept.size())));
        continue;
      }
      if (!each.is_number()) return failure(kNeeded);
      argument.items.push_back(each);
    }
  } catch (const Stop&) {
    return failure(first_error(sink));
  }
  return argument;
}

}  // namespace stave
