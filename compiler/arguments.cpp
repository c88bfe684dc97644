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
    if (!datum.is_list()) return failure("its value must be a number or a list of numbers");
    argument.is_list = true;
    if (datum.length() > kMaxListLength)
      return failure(fmt::format("its list has {} elements; at most {} can be", datum.length(), kMaxListLength));
    for (std::int64_t i = 0; i < datum.length(); ++i) {
      if (!datum[i].is_number()) return failure("its value must be a number or a list of numbers");
      argument.items.push_back(datum[i]);
    }
  } catch (const Stop&) {
    return failure(first_error(sink));
  }
  return argument;
}

}  // namespace stave
