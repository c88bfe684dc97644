#include "compiler/compile.h"

#include <algorithm>

#include "compiler/check.h"
#include "compiler/code.h"
#include "compiler/parse.h"
#include "compiler/uses.h"

namespace stave {

std::string Compiled::name() const { return code->name; }

std::vector<std::string> Compiled::parameters() const {
  std::vector<std::string> result;
  for (const ParameterCode& parameter : code->parameters) result.push_back(parameter.name);
  return result;
}

std::vector<SourceId> Compiled::used_files() const {
  std::vector<SourceId> result;
  for (const UseCode& each : code->uses)
    if (!each.is_library) result.push_back(each.source);
  return result;
}

std::optional<Compiled> compile(Sources& sources, SourceId source, Diagnostics& sink) {
  std::optional<Ast> file = parse(sources, source, sink);
  if (!file) return std::nullopt;
  const std::optional<std::vector<BroughtIn>> brought_in = bring_in(sources, *file, sink);
  if (!brought_in) return std::nullopt;
  std::optional<Code> code = check(*brought_in, std::move(*file), sink);
  if (!code) return std::nullopt;
  return Compiled{std::make_shared<const Code>(std::move(*code))};
}

std::optional<Compiled> override_costs(const Compiled& compiled, const Sources& sources, SourceId argument,
                                       Diagnostics& sink) {
  Ast ast;
  ast.source = argument;
  const std::optional<std::vector<ValueLine>> lines = parse_costs(sources, argument, ast, sink);
  if (!lines) return std::nullopt;
  auto code = std::make_shared<Code>(*compiled.code);
  code->own_costs = std::min(code->own_costs, code->costs.size());
  if (!check_costs(ast, *lines, *code, sink)) return std::nullopt;
  return Compiled{std::move(code)};
}

}  // namespace stave
