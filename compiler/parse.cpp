#include "compiler/parse.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include <antlr4-runtime.h>

#include "compiler/ast_builder.h"
#include "compiler/guards.h"
#include "compiler/parse_errors.h"
#include "compiler/table_body.h"
#include "core/check.h"
#include "generated/SchedLexer.h"
#include "generated/SchedParser.h"

namespace stave {

namespace {

using namespace parsing;

/// Places of a guarded text in its source.
class Places {
 public:
  Places(const GuardedText& text, SourceId source) : text_(text), source_(source) {}

  Span of(const Token* first, const Token* last) const {
    const std::size_t begin = first->getStartIndex();
    // The end of the file has a start behind its stop.
    if (first->getType() == Token::EOF) return empty_at(text_.text.size());
    const std::size_t end = std::max(begin, last->getStopIndex());
    return {source_, text_.source_offset(begin), text_.source_offset(end) + 1};
  }
  Span of(const Token* token) const { return of(token, token); }
  Span of(const ParserRuleContext* context) const { return of(context->start, context->stop); }

 private:
  Span empty_at(std::size_t offset) const {
    const std::uint32_t at = text_.source_offset(offset);
    return {source_, at, at};
  }

  const GuardedText& text_;
  SourceId source_;
};

LexemeKind lexeme_kind(std::size_t type) {
  if (type == Token::EOF) return LexemeKind::End;
  if (type == Grammar::Name) return LexemeKind::Name;
  if (type == Grammar::Number) return LexemeKind::Number;
  if (type == Grammar::String) return LexemeKind::String;
  return type == Grammar::Unknown ? LexemeKind::Unknown : LexemeKind::Symbol;
}

/// Makes the Ast from ANTLR's tree, of which only complete declarations are looked at.
class Builder {
 public:
  Builder(const Sources& sources, const GuardedText& text, const Places& places, Ast& ast, Diagnostics& sink)
      : sources_(sources), text_(text), places_(places), ast_(ast), sink_(sink), builder_(sources, ast, sink) {}

  void file(Grammar::FileContext* context) {
    if (Grammar::HeaderContext* header = context->header(); header && !header->exception) {
      ast_.name = identifier(header->Name());
      for (Grammar::ParameterContext* each : header->parameter())
        ast_.parameters.push_back({identifier(each->Name()), expression(each->expression()), span(each)});
    }
    for (Grammar::DeclarationContext* each : context->declaration())
      if (!each->exception) declaration(each);
  }

  std::vector<ValueLine> costs(Grammar::CostsContext* context) {
    std::vector<ValueLine> result;
    for (Grammar::ValueLineContext* each : context->valueLine()) result.push_back(value_line(each));
    return result;
  }

  ExprId expression(Grammar::ExpressionContext* context) {
    const std::vector<Grammar::TermContext*> parts = context->term();
    if (parts.size() == 1) return term(parts[0]);
    std::vector<ExprId> operands = terms(parts);
    operands.push_back(expression(context->expression()));
    return builder_.add(ExprKind::Conditional, span(context), std::move(operands));
  }

 private:
  void declaration(Grammar::DeclarationContext* context) {
    const Span place = span(context);
    if (auto* use = dynamic_cast<Grammar::UseContext*>(context)) {
      Use result;
      result.is_file = use->String() != nullptr;
      result.name = result.is_file ? unquoted(use->String()) : identifier(use->Name()).name;
      result.span = places_.of((result.is_file ? use->String() : use->Name())->getSymbol());
      ast_.uses.push_back(std::move(result));
    } else if (auto* setting = dynamic_cast<Grammar::SettingContext*>(context)) {
      ast_.settings.push_back({identifier(setting->setting), expression(setting->expression()), place});
    } else if (auto* let = dynamic_cast<Grammar::LetContext*>(context)) {
      ast_.lets.push_back(let_declaration(let->letDeclaration()));
    } else if (auto* placing = dynamic_cast<Grammar::PlaceContext*>(context)) {
      Place result;
      result.stage = identifier(placing->Name(0));
      if (placing->Microbatch()) result.microbatch = identifier(placing->Name(1));
      result.device = expression(placing->expression());
      result.span = place;
      ast_.places.push_back(std::move(result));
    } else if (auto* route = dynamic_cast<Grammar::RouteContext*>(context)) {
      ast_.routes.push_back({identifier(route->Name()), expression(route->expression()), place});
    } else if (auto* op = dynamic_cast<Grammar::OpContext*>(context)) {
      op_declaration(op, place);
    } else if (auto* added = dynamic_cast<Grammar::AddedNeedContext*>(context)) {
      AddedNeed result;
      result.op = op_name(added->opName());
      for (Grammar::NeedContext* each : added->need()) need(each, result.needs);
      result.span = place;
      ast_.added_needs.push_back(std::move(result));
    } else if (auto* device = dynamic_cast<Grammar::OnDeviceContext*>(context)) {
      on_device(device, place);
    } else if (auto* values = dynamic_cast<Grammar::ValuesContext*>(context)) {
      const std::size_t type = values->what->getType();
      std::vector<ValueLine>& into = type == Grammar::Cost     ? ast_.costs
                                     : type == Grammar::Memory ? ast_.memory
                                                               : ast_.freezes;
      for (Grammar::ValueLineContext* each : values->valueLine()) {
        into.push_back(value_line(each));
        if (into.back().at_most && type != Grammar::Freeze)
          builder_.error("syntax", into.back().span, "`<=` stands in a `freeze` line only; a value is given with `=`");
      }
    } else if (auto* require = dynamic_cast<Grammar::RequireContext*>(context)) {
      Require result;
      result.condition = expression(require->expression());
      if (require->String()) result.text = unquoted(require->String());
      result.span = place;
      ast_.requires_.push_back(std::move(result));
    } else if (auto* expect = dynamic_cast<Grammar::ExpectContext*>(context)) {
      expectation(expect, place);
    } else if (dynamic_cast<Grammar::TableContext*>(context)) {
      TableDecl result;
      result.source = place.source;
      result.span = place;
      const auto body = std::find_if(text_.tables.begin(), text_.tables.end(),
                                     [&](Span each) { return each.begin >= place.begin && each.end <= place.end; });
      STAVE_CHECK(body != text_.tables.end(), "a table without its body");
      read_table_body(sources_, *body, ast_, result, sink_);
      ast_.tables.push_back(std::move(result));
    } else {
      STAVE_CHECK(false, "a declaration that the Ast does not know");
    }
  }

  void op_declaration(Grammar::OpContext* context, Span place) {
    OpDecl result;
    result.name = identifier(context->Name());
    for (Grammar::OpIndexContext* each : context->opIndex())
      result.parameters.push_back({identifier(each->Name()), expression(each->expression())});
    for (Grammar::OpNameContext* each : context->opName()) result.parts.push_back(op_name(each));
    for (Grammar::OpClauseContext* each : context->opClause()) {
      bool twice = false;
      if (each->Optional()) {
        twice = std::exchange(result.optional, true);
      } else if (each->Stream()) {
        twice = !result.stream.name.empty();
        result.stream = identifier(each->Name());
      } else if (each->Device()) {
        twice = result.device.valid();
        result.device = expression(each->expression());
      } else if (each->If()) {
        twice = result.condition.valid();
        result.condition = expression(each->expression());
      } else {
        need(each->need(), result.needs);
      }
      if (twice) builder_.error("syntax", span(each), "this is said twice of `" + result.name.name + "`");
    }
    result.span = place;
    ast_.ops.push_back(std::move(result));
  }

  void need(Grammar::NeedContext* context, std::vector<Need>& into) {
    for (Grammar::OpNameContext* each : context->opName()) {
      Need result;
      if (context->Receives()) result.message = identifier(context->Name());
      result.op = op_name(each);
      result.span = context->Receives() ? span(context) : span(each);
      into.push_back(std::move(result));
    }
  }

  void on_device(Grammar::OnDeviceContext* context, Span place) {
    OnDevice result;
    result.span = place;
    if (context->Name()) result.variable = identifier(context->Name());
    if (context->expression()) result.devices = expression(context->expression());
    for (Grammar::ItemContext* each : context->item()) {
      if (each->statement()) {
        result.list.push_back(statement(each->statement()));
      } else if (each->body()) {
        BlockDecl block;
        block.kind = each->kind->getType() == Grammar::Any ? BlockKind::Any : BlockKind::Fill;
        block.body = body(each->body());
        block.span = span(each);
        result.blocks.push_back(std::move(block));
      } else {
        LimitDecl limit;
        limit.what = identifier(each->Name() ? each->Name() : each->Memory());
        limit.value = expression(each->expression());
        limit.span = span(each);
        result.limits.push_back(std::move(limit));
      }
    }
    ast_.devices.push_back(std::move(result));
  }

  void expectation(Grammar::ExpectContext* context, Span place) {
    Expect result;
    result.claim = expression(context->expression());
    for (Grammar::ExpectClauseContext* each : context->expectClause()) {
      const bool twice = each->If() ? result.condition.valid() : result.list.valid();
      if (twice) builder_.error("syntax", span(each), "an `expect` has one `if` and one `for` at most");
      if (each->If()) {
        result.condition = expression(each->expression());
      } else {
        result.variable = identifier(each->Name());
        result.list = expression(each->expression());
      }
    }
    result.span = place;
    ast_.expects.push_back(std::move(result));
  }

  LetDecl let_declaration(Grammar::LetDeclarationContext* context) {
    LetDecl result;
    const std::vector<TerminalNode*> names = context->Name();
    result.name = identifier(names[0]);
    result.is_function = context->open != nullptr;
    for (std::size_t i = 1; i < names.size(); ++i) result.parameters.push_back(identifier(names[i]));
    result.value = expression(context->expression());
    result.span = span(context);
    return result;
  }

  ValueLine value_line(Grammar::ValueLineContext* context) {
    ValueLine result;
    Grammar::TargetContext* target = context->target();
    const std::vector<Grammar::OpOrNameContext*> ops = target->opOrName();
    result.target = target->With() ? pair(span(target), ops) : op_or_name(ops[0]);
    if (target->After()) result.after = op_or_name(ops[1]);
    result.value = expression(context->expression());
    result.at_most = context->AtMost() != nullptr;
    result.span = span(context);
    return result;
  }

  Body body(Grammar::BodyContext* context) {
    Body result;
    for (Grammar::StatementContext* each : context->statement()) result.push_back(statement(each));
    return result;
  }

  Statement statement(Grammar::StatementContext* context) {
    Statement result;
    result.span = span(context);
    if (auto* op = dynamic_cast<Grammar::OpStatementContext*>(context)) {
      result.kind = StatementKind::Op;
      const std::vector<Grammar::OpNameContext*> ops = op->opName();
      result.expr = op_name(ops[0]);
      if (op->With())
        result.expr =
            builder_.add(ExprKind::With, places_.of(ops[0]->start, ops[1]->stop), {result.expr, op_name(ops[1])});
      if (op->At()) result.at = expression(op->expression());
    } else if (auto* repeat = dynamic_cast<Grammar::RepeatStatementContext*>(context)) {
      result.kind = StatementKind::Repeat;
      result.expr = expression(repeat->expression());
      result.body = body(repeat->body());
    } else if (auto* loop = dynamic_cast<Grammar::ForStatementContext*>(context)) {
      result.kind = StatementKind::For;
      result.variable = identifier(loop->Name());
      result.expr = expression(loop->expression());
      result.body = body(loop->body());
    } else if (auto* choice = dynamic_cast<Grammar::IfStatementContext*>(context)) {
      result.kind = StatementKind::If;
      const std::vector<Grammar::ExpressionContext*> conditions = choice->expression();
      const std::vector<Grammar::BodyContext*> bodies = choice->body();
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        Branch branch;
        if (i < conditions.size()) branch.condition = expression(conditions[i]);
        branch.body = body(bodies[i]);
        result.branches.push_back(std::move(branch));
      }
    } else if (auto* let = dynamic_cast<Grammar::LetStatementContext*>(context)) {
      result.kind = StatementKind::Let;
      result.let = let_declaration(let->letDeclaration());
    } else {
      STAVE_CHECK(false, "a statement that the Ast does not know");
    }
    return result;
  }

  ExprId op_or_name(Grammar::OpOrNameContext* context) {
    if (context->opName()) return op_name(context->opName());
    return builder_.add(ExprKind::Name, span(context), {}, identifier(context->Name()));
  }

  ExprId op_name(Grammar::OpNameContext* context) {
    return builder_.add(ExprKind::Call, span(context), arguments(context->arguments()), identifier(context->Name()));
  }

  std::vector<ExprId> arguments(Grammar::ArgumentsContext* context) {
    std::vector<ExprId> result;
    if (context == nullptr) return result;
    const std::vector<Grammar::ArgumentContext*> all = context->argument();
    for (Grammar::ArgumentContext* each : all) {
      if (each->each()) {
        result.push_back(each_of(each->each()));
        if (all.size() > 1 && each->each()->For())
          builder_.error("syntax", span(each), "`for` makes a list of this argument, which must then be the only one");
      } else if (each->Memory()) {
        // `idle(d, memory)`: a cause, and a word of the language.
        result.push_back(builder_.add(ExprKind::Name, span(each), {}, identifier(each->Memory())));
      } else {
        result.push_back(builder_.add(each->star ? ExprKind::Star : ExprKind::Next, span(each), {}));
      }
    }
    return result;
  }

  ExprId each_of(Grammar::EachContext* context) {
    const std::vector<Grammar::ExpressionContext*> parts = context->expression();
    const ExprId first = expression(parts[0]);
    if (parts.size() == 1) return first;
    return builder_.add(ExprKind::Each, span(context), {first, expression(parts[1])}, identifier(context->Name()));
  }

  ExprId term(Grammar::TermContext* context) {
    // Signs and brackets are few, but a long sum leans to the left without end.
    if (term_depth_ == 2 * kMaxNesting) {
      builder_.too_deep(span(context));
      return builder_.add(ExprKind::Number, span(context), {});
    }
    ++term_depth_;
    const ExprId result = term_of(context);
    --term_depth_;
    return result;
  }

  ExprId term_of(Grammar::TermContext* context) {
    if (auto* number = dynamic_cast<Grammar::NumberContext*>(context))
      return builder_.add_number(number->getText(), span(number));
    if (auto* name = dynamic_cast<Grammar::NameTermContext*>(context))
      return builder_.add(ExprKind::Name, span(name), {}, identifier(name->start));
    if (auto* call = dynamic_cast<Grammar::CallContext*>(context))
      return builder_.add(ExprKind::Call, span(call), arguments(call->arguments()), identifier(call->start));
    if (auto* parentheses = dynamic_cast<Grammar::ParenthesesContext*>(context))
      return expression(parentheses->expression());
    if (auto* binary = dynamic_cast<Grammar::BinaryContext*>(context))
      return builder_.add_binary(binary->op->getText(), span(binary), terms(binary->term()));
    if (auto* sign = dynamic_cast<Grammar::SignContext*>(context)) {
      const ExprId inner = term(sign->term());
      return sign->start->getText() == "+" ? inner : builder_.add(ExprKind::Negate, span(sign), {inner});
    }
    if (auto* inverse = dynamic_cast<Grammar::NotContext*>(context))
      return builder_.add(ExprKind::Not, span(inverse), {term(inverse->term())});
    if (auto* range = dynamic_cast<Grammar::RangeContext*>(context))
      return builder_.add(ExprKind::Range, span(range), terms(range->term()));
    if (auto* element = dynamic_cast<Grammar::ElementContext*>(context)) {
      const ExprId list = term(element->term());
      return builder_.add(ExprKind::Element, span(element), {list, expression(element->expression())});
    }
    if (auto* list = dynamic_cast<Grammar::ListContext*>(context)) return list_of(list);
    if (auto* with = dynamic_cast<Grammar::WithContext*>(context)) return pair(span(with), with->opOrName());
    STAVE_CHECK(false, "an expression that the Ast does not know");
  }

  std::vector<ExprId> terms(const std::vector<Grammar::TermContext*>& contexts) {
    std::vector<ExprId> result;
    for (Grammar::TermContext* each : contexts) result.push_back(term(each));
    return result;
  }

  ExprId pair(Span place, const std::vector<Grammar::OpOrNameContext*>& ops) {
    const ExprId first = op_or_name(ops[0]);
    return builder_.add(ExprKind::With, place, {first, op_or_name(ops[1])});
  }

  ExprId list_of(Grammar::ListContext* context) {
    const std::vector<Grammar::EachContext*> all = context->each();
    if (all.size() == 1 && all[0]->For()) return each_of(all[0]);
    std::vector<ExprId> items;
    for (Grammar::EachContext* each : all) {
      if (each->For()) builder_.error("syntax", span(each), "a list is either written out or made by one `for`");
      items.push_back(each_of(each));
    }
    return builder_.add(ExprKind::List, span(context), std::move(items));
  }

  Span span(ParserRuleContext* context) const { return places_.of(context); }
  Identifier identifier(const Token* token) const { return builder_.identifier(places_.of(token)); }
  Identifier identifier(TerminalNode* node) const { return identifier(node->getSymbol()); }
  std::string unquoted(TerminalNode* node) const { return builder_.unquoted(places_.of(node->getSymbol())); }

  const Sources& sources_;
  const GuardedText& text_;
  const Places& places_;
  Ast& ast_;
  Diagnostics& sink_;
  AstBuilder builder_;
  std::size_t term_depth_ = 0;
};

/// Guards, lexes and parses a source; then `build` turns the tree of `rule` into what is wanted.
/// False after an error.
template <class Rule, class Build>
bool parse_with(const Sources& sources, SourceId source, Ast& into, Diagnostics& sink, Rule rule, Build build) {
  const std::size_t errors_before = sink.errors();
  const std::optional<GuardedText> text = guard(sources, source, sink);
  if (!text) return false;
  const Places places(*text, source);

  antlr4::ANTLRInputStream input(text->text);
  SchedLexer lexer(&input);
  lexer.removeErrorListeners();
  antlr4::CommonTokenStream tokens(&lexer);
  tokens.fill();
  std::vector<Lexeme> lexemes;
  for (const Token* token : tokens.getTokens())
    append_lexeme(lexemes, lexeme_kind(token->getType()), sources, places.of(token), token->getLine());

  SchedParser parser(&tokens);
  parser.removeErrorListeners();
  parser.setErrorHandler(std::make_shared<Recovery>(lexemes, sink));
  DepthGuard depth;
  parser.addParseListener(&depth);
  try {
    auto* tree = (parser.*rule)();
    Builder builder(sources, *text, places, into, sink);
    // A tree with a hole in it is not looked at; of a file, complete declarations are.
    if (sink.errors() == errors_before || tree->getRuleIndex() == Grammar::RuleFile) build(builder, tree);
  } catch (const Stop&) {
    if (depth.too_deep() != nullptr) {
      Diagnostic diagnostic;
      diagnostic.kind = "nested-too-deep";
      diagnostic.message = "expressions or statements inside each other more than 200 deep";
      diagnostic.primary.span = places.of(depth.too_deep());
      diagnostic.fix = "name a part of it with `let`";
      sink.add(std::move(diagnostic));
    }
  }
  return sink.errors() == errors_before;
}

}  // namespace

std::optional<Ast> parse(const Sources& sources, SourceId source, Diagnostics& sink) {
  Ast result;
  if (!parse_more(sources, source, result, sink)) return std::nullopt;
  return result;
}

bool parse_more(const Sources& sources, SourceId source, Ast& into, Diagnostics& sink) {
  into.source = source;
  return parse_with(sources, source, into, sink, &Grammar::file,
                    [](Builder& builder, Grammar::FileContext* tree) { builder.file(tree); });
}

std::optional<std::vector<ValueLine>> parse_costs(const Sources& sources, SourceId source, Ast& into,
                                                  Diagnostics& sink) {
  std::vector<ValueLine> result;
  const bool good = parse_with(sources, source, into, sink, &Grammar::costs,
                               [&](Builder& builder, Grammar::CostsContext* tree) { result = builder.costs(tree); });
  if (!good) return std::nullopt;
  return result;
}

std::optional<ExprId> parse_value(const Sources& sources, SourceId source, Ast& into, Diagnostics& sink) {
  ExprId result;
  const bool good = parse_with(
      sources, source, into, sink, &Grammar::value,
      [&](Builder& builder, Grammar::ValueContext* tree) { result = builder.expression(tree->expression()); });
  if (!good) return std::nullopt;
  return result;
}

}  // namespace stave
