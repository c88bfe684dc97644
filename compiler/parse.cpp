#include "compiler/parse.h"

#include <algorithm>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "SchedLexer.h"
#include "SchedParser.h"
#include "antlr4-runtime.h"
#include "compiler/guards.h"
#include "compiler/syntax_error.h"
#include "compiler/table_body.h"
#include "core/check.h"

namespace stave {

namespace {

using antlr4::ParserRuleContext;
using antlr4::Token;
using antlr4::tree::ParseTree;
using antlr4::tree::TerminalNode;

/// Rules inside each other at most: as many as kMaxNesting brackets need, with their calls and lists.
constexpr std::size_t kMaxRules = 8 * kMaxNesting;
/// Syntax errors of one file at most; then reading stops.
constexpr std::size_t kMaxSyntaxErrors = Diagnostics::kMost + 1;

/// Ends a parse from inside: rules too deep, or errors enough.
struct Stop {};

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

class DepthGuard final : public antlr4::tree::ParseTreeListener {
 public:
  void enterEveryRule(ParserRuleContext* context) override {
    if (++depth_ <= kMaxRules) return;
    too_deep_ = context->start;
    throw Stop();
  }
  void exitEveryRule(ParserRuleContext*) override { --depth_; }
  void visitTerminal(TerminalNode*) override {}
  void visitErrorNode(antlr4::tree::ErrorNode*) override {}
  const Token* too_deep() const { return too_deep_; }

 private:
  std::size_t depth_ = 0;
  const Token* too_deep_ = nullptr;
};

/// Reports the first error of a declaration, leaves it, and goes on at the next one.
class Recovery final : public antlr4::DefaultErrorStrategy {
 public:
  Recovery(const std::vector<Lexeme>& lexemes, Diagnostics& sink) : lexemes_(lexemes), sink_(sink) {}

  void reportError(antlr4::Parser* parser, const antlr4::RecognitionException& e) override {
    if (inErrorRecoveryMode(parser)) return;
    beginErrorCondition(parser);
    const Token* offending = e.getOffendingToken();
    std::vector<std::string> expected;
    if (dynamic_cast<const antlr4::InputMismatchException*>(&e) != nullptr) expected = names(parser, e);
    report(parser, offending->getTokenIndex(), std::move(expected));
  }

  /// Outside a declaration's own rule: hands the error up to it.
  void recover(antlr4::Parser* parser, std::exception_ptr error) override {
    const std::size_t rule = parser->getContext()->getRuleIndex();
    if (rule != SchedParser::RuleDeclaration && rule != SchedParser::RuleHeader && rule != SchedParser::RuleFile &&
        rule != SchedParser::RuleCosts && rule != SchedParser::RuleValue)
      std::rethrow_exception(error);
    if (rule == SchedParser::RuleDeclaration || rule == SchedParser::RuleHeader) skip(parser);
  }

  Token* recoverInline(antlr4::Parser* parser) override { throw antlr4::InputMismatchException(parser); }

  /// Between declarations: what begins none is reported and skipped, so that the rest is read too.
  void sync(antlr4::Parser* parser) override {
    if (parser->getContext()->getRuleIndex() != SchedParser::RuleFile) return;
    endErrorCondition(parser);
    for (;;) {
      const Token* next = parser->getCurrentToken();
      const std::size_t at = next->getTokenIndex();
      if (next->getType() == Token::EOF || begins_declaration(lexemes_[at])) break;
      if (next->getType() == SchedParser::Schedule && at == 0) break;
      begin_ = at;
      report(parser, at, {});
      parser->consume();
      skip(parser);
    }
    begin_ = parser->getCurrentToken()->getTokenIndex();
  }

 private:
  void skip(antlr4::Parser* parser) {
    // At least one, or the same error would come again.
    if (parser->getCurrentToken()->getTokenIndex() == begin_ && parser->getCurrentToken()->getType() != Token::EOF)
      parser->consume();
    for (;;) {
      const Token* next = parser->getCurrentToken();
      if (next->getType() == Token::EOF) return;
      const Lexeme& lexeme = lexemes_[next->getTokenIndex()];
      if (lexeme.depth == 0 && lexeme.first_of_line && lexeme.kind != LexemeKind::Symbol &&
          (begins_declaration(lexeme) || lexeme.kind == LexemeKind::Keyword))
        return;
      parser->consume();
    }
  }

  void report(antlr4::Parser* parser, std::size_t at, std::vector<std::string> expected) {
    SyntaxError error;
    error.begin = begin_;
    error.at = at;
    error.expected = std::move(expected);
    const std::vector<std::string>& rule_names = parser->getRuleNames();
    for (antlr4::RuleContext* rule = parser->getContext(); rule != nullptr;
         rule = dynamic_cast<antlr4::RuleContext*>(rule->parent))
      error.rules.push_back(rule_names[rule->getRuleIndex()]);
    sink_.add(explain(lexemes_, error));
    if (++errors_ == kMaxSyntaxErrors) throw Stop();
  }

  /// The tokens that would have done, in the words of a message.
  static std::vector<std::string> names(antlr4::Parser* parser, const antlr4::RecognitionException& e) {
    std::vector<std::string> result;
    for (const ssize_t type : e.getExpectedTokens().toList()) {
      if (type <= 0) {
        result.push_back("the end of the file");
        continue;
      }
      if (type == SchedParser::Name) {
        result.push_back("a name");
      } else if (type == SchedParser::Number) {
        result.push_back("a number");
      } else if (type == SchedParser::String) {
        result.push_back("a text in quotes");
      } else {
        const std::string literal = parser->getVocabulary().getLiteralName(static_cast<std::size_t>(type));
        if (literal.size() > 2) result.push_back("`" + literal.substr(1, literal.size() - 2) + "`");
      }
    }
    return result;
  }

  const std::vector<Lexeme>& lexemes_;
  Diagnostics& sink_;
  /// First token of the declaration that is read.
  std::size_t begin_ = 0;
  std::size_t errors_ = 0;
};

LexemeKind lexeme_kind(std::size_t type) {
  if (type == Token::EOF) return LexemeKind::End;
  if (type == SchedParser::Name) return LexemeKind::Name;
  if (type == SchedParser::Number) return LexemeKind::Number;
  if (type == SchedParser::String) return LexemeKind::String;
  if (type == SchedParser::Unknown) return LexemeKind::Unknown;
  return LexemeKind::Symbol;
}

std::vector<Lexeme> lexemes_of(const std::vector<Token*>& tokens, const Sources& sources, SourceId source,
                               const Places& places) {
  std::vector<Lexeme> result;
  result.reserve(tokens.size());
  std::uint32_t depth = 0;
  std::size_t line = 0;
  for (const Token* token : tokens) {
    Lexeme lexeme;
    lexeme.span = places.of(token);
    lexeme.text = sources.text(lexeme.span);
    lexeme.kind = lexeme_kind(token->getType());
    if (lexeme.kind == LexemeKind::Symbol && is_keyword(lexeme.text)) lexeme.kind = LexemeKind::Keyword;
    if (lexeme.text == ")" || lexeme.text == "]" || lexeme.text == "}") --depth;
    lexeme.depth = depth;
    if (lexeme.text == "(" || lexeme.text == "[" || lexeme.text == "{") ++depth;
    lexeme.first_of_line = std::exchange(line, token->getLine()) != token->getLine();
    lexeme.span.source = source;
    result.push_back(lexeme);
  }
  return result;
}

/// Makes the Ast from ANTLR's tree, of which only complete declarations are looked at.
class Builder {
 public:
  Builder(const Sources& sources, const GuardedText& text, const Places& places, Ast& ast, Diagnostics& sink)
      : sources_(sources), text_(text), places_(places), ast_(ast), sink_(sink) {}

  void file(SchedParser::FileContext* context) {
    if (SchedParser::HeaderContext* header = context->header(); header && !header->exception) {
      ast_.name = identifier(header->Name());
      for (SchedParser::ParameterContext* each : header->parameter())
        ast_.parameters.push_back({identifier(each->Name()), expression(each->expression()), places_.of(each)});
    }
    for (SchedParser::DeclarationContext* each : context->declaration())
      if (!each->exception) declaration(each);
  }

  std::vector<ValueLine> costs(SchedParser::CostsContext* context) {
    std::vector<ValueLine> result;
    for (SchedParser::ValueLineContext* each : context->valueLine()) result.push_back(value_line(each));
    return result;
  }

  ExprId expression(SchedParser::ExpressionContext* context) {
    const std::vector<SchedParser::TermContext*> terms = context->term();
    if (terms.size() == 1) return term(terms[0]);
    Expr result = make(ExprKind::Conditional, context);
    result.operands = {term(terms[0]), term(terms[1]), expression(context->expression())};
    return add(std::move(result), context);
  }

 private:
  void declaration(SchedParser::DeclarationContext* context) {
    const Span span = places_.of(context);
    if (auto* use = dynamic_cast<SchedParser::UseContext*>(context)) {
      Use result;
      result.is_file = use->String() != nullptr;
      result.name = result.is_file ? string(use->String()) : identifier(use->Name()).name;
      result.span = places_.of((result.is_file ? use->String() : use->Name())->getSymbol());
      ast_.uses.push_back(std::move(result));
    } else if (auto* setting = dynamic_cast<SchedParser::SettingContext*>(context)) {
      ast_.settings.push_back({identifier(setting->setting), expression(setting->expression()), span});
    } else if (auto* let = dynamic_cast<SchedParser::LetContext*>(context)) {
      ast_.lets.push_back(let_declaration(let->letDeclaration()));
    } else if (auto* place = dynamic_cast<SchedParser::PlaceContext*>(context)) {
      Place result;
      result.stage = identifier(place->Name(0));
      if (place->Microbatch()) result.microbatch = identifier(place->Name(1));
      result.device = expression(place->expression());
      result.span = span;
      ast_.places.push_back(std::move(result));
    } else if (auto* route = dynamic_cast<SchedParser::RouteContext*>(context)) {
      ast_.routes.push_back({identifier(route->Name()), expression(route->expression()), span});
    } else if (auto* op = dynamic_cast<SchedParser::OpContext*>(context)) {
      op_declaration(op, span);
    } else if (auto* added = dynamic_cast<SchedParser::AddedNeedContext*>(context)) {
      AddedNeed result;
      result.op = op_name(added->opName());
      for (SchedParser::NeedContext* each : added->need()) need(each, result.needs);
      result.span = span;
      ast_.added_needs.push_back(std::move(result));
    } else if (auto* device = dynamic_cast<SchedParser::OnDeviceContext*>(context)) {
      on_device(device, span);
    } else if (auto* values = dynamic_cast<SchedParser::ValuesContext*>(context)) {
      const std::size_t type = values->what->getType();
      std::vector<ValueLine>& into =
          type == SchedParser::Cost ? ast_.costs : type == SchedParser::Memory ? ast_.memory : ast_.freezes;
      for (SchedParser::ValueLineContext* each : values->valueLine()) {
        into.push_back(value_line(each));
        if (into.back().at_most && type != SchedParser::Freeze)
          error("syntax", into.back().span, "`<=` stands in a `freeze` line only; a value is given with `=`");
      }
    } else if (auto* require = dynamic_cast<SchedParser::RequireContext*>(context)) {
      Require result;
      result.condition = expression(require->expression());
      if (require->String()) result.text = string(require->String());
      result.span = span;
      ast_.requires_.push_back(std::move(result));
    } else if (auto* expect = dynamic_cast<SchedParser::ExpectContext*>(context)) {
      expectation(expect, span);
    } else if (dynamic_cast<SchedParser::TableContext*>(context)) {
      TableDecl result;
      result.source = span.source;
      result.span = span;
      const auto body = std::find_if(text_.tables.begin(), text_.tables.end(),
                                     [&](Span each) { return each.begin >= span.begin && each.end <= span.end; });
      STAVE_CHECK(body != text_.tables.end(), "a table without its body");
      read_table_body(sources_, *body, ast_, result, sink_);
      ast_.tables.push_back(std::move(result));
    } else {
      STAVE_CHECK(false, "a declaration that the Ast does not know");
    }
  }

  void op_declaration(SchedParser::OpContext* context, Span span) {
    OpDecl result;
    result.name = identifier(context->Name());
    for (SchedParser::OpIndexContext* each : context->opIndex())
      result.parameters.push_back({identifier(each->Name()), expression(each->expression())});
    for (SchedParser::OpNameContext* each : context->opName()) result.parts.push_back(op_name(each));
    for (SchedParser::OpClauseContext* each : context->opClause()) {
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
      if (twice) error("syntax", places_.of(each), "this is said twice of `" + result.name.name + "`");
    }
    result.span = span;
    ast_.ops.push_back(std::move(result));
  }

  void need(SchedParser::NeedContext* context, std::vector<Need>& into) {
    for (SchedParser::OpNameContext* each : context->opName()) {
      Need result;
      if (context->Receives()) result.message = identifier(context->Name());
      result.op = op_name(each);
      result.span = context->Receives() ? places_.of(context) : places_.of(each);
      into.push_back(std::move(result));
    }
  }

  void on_device(SchedParser::OnDeviceContext* context, Span span) {
    OnDevice result;
    // The heading alone: a body of many lines is no place to point at.
    result.span = span;
    if (context->Name()) result.variable = identifier(context->Name());
    if (context->expression()) result.devices = expression(context->expression());
    for (SchedParser::ItemContext* each : context->item()) {
      if (each->statement()) {
        result.list.push_back(statement(each->statement()));
      } else if (each->body()) {
        BlockDecl block;
        block.kind = each->kind->getType() == SchedParser::Any ? BlockKind::Any : BlockKind::Fill;
        block.body = body(each->body());
        block.span = places_.of(each);
        result.blocks.push_back(std::move(block));
      } else {
        LimitDecl limit;
        limit.what = identifier(each->Name() ? each->Name() : each->Memory());
        limit.value = expression(each->expression());
        limit.span = places_.of(each);
        result.limits.push_back(std::move(limit));
      }
    }
    ast_.devices.push_back(std::move(result));
  }

  void expectation(SchedParser::ExpectContext* context, Span span) {
    Expect result;
    result.claim = expression(context->expression());
    for (SchedParser::ExpectClauseContext* each : context->expectClause()) {
      const bool twice = each->If() ? result.condition.valid() : result.list.valid();
      if (twice) error("syntax", places_.of(each), "an `expect` has one `if` and one `for` at most");
      if (each->If()) {
        result.condition = expression(each->expression());
      } else {
        result.variable = identifier(each->Name());
        result.list = expression(each->expression());
      }
    }
    result.span = span;
    ast_.expects.push_back(std::move(result));
  }

  LetDecl let_declaration(SchedParser::LetDeclarationContext* context) {
    LetDecl result;
    const std::vector<TerminalNode*> names = context->Name();
    result.name = identifier(names[0]);
    result.is_function = context->open != nullptr;
    for (std::size_t i = 1; i < names.size(); ++i) result.parameters.push_back(identifier(names[i]));
    result.value = expression(context->expression());
    result.span = places_.of(context);
    return result;
  }

  ValueLine value_line(SchedParser::ValueLineContext* context) {
    ValueLine result;
    SchedParser::TargetContext* target = context->target();
    const std::vector<SchedParser::OpOrNameContext*> ops = target->opOrName();
    result.target = op_or_name(ops[0]);
    if (target->With()) {
      Expr pair = make(ExprKind::With, target);
      pair.operands = {result.target, op_or_name(ops[1])};
      result.target = add(std::move(pair), target);
    } else if (target->After()) {
      result.after = op_or_name(ops[1]);
    }
    result.value = expression(context->expression());
    result.at_most = context->AtMost() != nullptr;
    result.span = places_.of(context);
    return result;
  }

  Body body(SchedParser::BodyContext* context) {
    Body result;
    for (SchedParser::StatementContext* each : context->statement()) result.push_back(statement(each));
    return result;
  }

  Statement statement(SchedParser::StatementContext* context) {
    Statement result;
    result.span = places_.of(context);
    if (auto* op = dynamic_cast<SchedParser::OpStatementContext*>(context)) {
      result.kind = StatementKind::Op;
      const std::vector<SchedParser::OpNameContext*> ops = op->opName();
      result.expr = op_name(ops[0]);
      if (op->With()) {
        Expr pair;
        pair.kind = ExprKind::With;
        pair.span = places_.of(ops[0]->start, ops[1]->stop);
        pair.operands = {result.expr, op_name(ops[1])};
        result.expr = add(std::move(pair), context);
      }
      if (op->At()) result.at = expression(op->expression());
    } else if (auto* repeat = dynamic_cast<SchedParser::RepeatStatementContext*>(context)) {
      result.kind = StatementKind::Repeat;
      result.expr = expression(repeat->expression());
      result.body = body(repeat->body());
    } else if (auto* loop = dynamic_cast<SchedParser::ForStatementContext*>(context)) {
      result.kind = StatementKind::For;
      result.variable = identifier(loop->Name());
      result.expr = expression(loop->expression());
      result.body = body(loop->body());
    } else if (auto* choice = dynamic_cast<SchedParser::IfStatementContext*>(context)) {
      result.kind = StatementKind::If;
      const std::vector<SchedParser::ExpressionContext*> conditions = choice->expression();
      const std::vector<SchedParser::BodyContext*> bodies = choice->body();
      for (std::size_t i = 0; i < bodies.size(); ++i) {
        Branch branch;
        if (i < conditions.size()) branch.condition = expression(conditions[i]);
        branch.body = body(bodies[i]);
        result.branches.push_back(std::move(branch));
      }
    } else if (auto* let = dynamic_cast<SchedParser::LetStatementContext*>(context)) {
      result.kind = StatementKind::Let;
      result.let = let_declaration(let->letDeclaration());
    } else {
      STAVE_CHECK(false, "a statement that the Ast does not know");
    }
    return result;
  }

  ExprId op_or_name(SchedParser::OpOrNameContext* context) {
    if (context->opName()) return op_name(context->opName());
    Expr result = make(ExprKind::Name, context);
    result.name = identifier(context->Name());
    return add(std::move(result), context);
  }

  ExprId op_name(SchedParser::OpNameContext* context) {
    Expr result = make(ExprKind::Call, context);
    result.name = identifier(context->Name());
    if (context->arguments()) result.operands = arguments(context->arguments());
    return add(std::move(result), context);
  }

  std::vector<ExprId> arguments(SchedParser::ArgumentsContext* context) {
    std::vector<ExprId> result;
    const std::vector<SchedParser::ArgumentContext*> all = context->argument();
    for (SchedParser::ArgumentContext* each : all) {
      if (each->each()) {
        result.push_back(each_of(each->each()));
        if (all.size() > 1 && each->each()->For())
          error("syntax", places_.of(each), "`for` makes a list of this argument, which must then be the only one");
        continue;
      }
      Expr argument = make(each->star ? ExprKind::Star : each->Next() ? ExprKind::Next : ExprKind::Name, each);
      // `idle(d, memory)`: a cause, and a word of the language.
      if (each->Memory()) argument.name = identifier(each->Memory());
      result.push_back(add(std::move(argument), each));
    }
    return result;
  }

  ExprId each_of(SchedParser::EachContext* context) {
    const std::vector<SchedParser::ExpressionContext*> parts = context->expression();
    if (parts.size() == 1) return expression(parts[0]);
    Expr result = make(ExprKind::Each, context);
    result.name = identifier(context->Name());
    result.operands = {expression(parts[0]), expression(parts[1])};
    return add(std::move(result), context);
  }

  ExprId term(SchedParser::TermContext* context) {
    if (auto* number = dynamic_cast<SchedParser::NumberContext*>(context)) {
      Expr result = make(ExprKind::Number, context);
      result.value = number_value(number->Number()->getText(), result.span);
      return add(std::move(result), context);
    }
    if (auto* name = dynamic_cast<SchedParser::NameTermContext*>(context)) {
      Expr result = make(ExprKind::Name, context);
      result.name = identifier(name->name()->start);
      return add(std::move(result), context);
    }
    if (auto* call = dynamic_cast<SchedParser::CallContext*>(context)) {
      Expr result = make(ExprKind::Call, context);
      result.name = identifier(call->name()->start);
      if (call->arguments()) result.operands = arguments(call->arguments());
      return add(std::move(result), context);
    }
    if (auto* parentheses = dynamic_cast<SchedParser::ParenthesesContext*>(context))
      return expression(parentheses->expression());
    if (auto* binary = dynamic_cast<SchedParser::BinaryContext*>(context)) {
      Expr result = make(ExprKind::Binary, context);
      result.op = binary_operator(binary->op->getText());
      const std::vector<SchedParser::TermContext*> terms = binary->term();
      result.operands = {term(terms[0]), term(terms[1])};
      return add(std::move(result), context);
    }
    if (auto* sign = dynamic_cast<SchedParser::SignContext*>(context)) {
      const ExprId inner = term(sign->term());
      if (sign->start->getText() == "+") return inner;
      Expr result = make(ExprKind::Negate, context);
      result.operands = {inner};
      return add(std::move(result), context);
    }
    if (auto* inverse = dynamic_cast<SchedParser::NotContext*>(context)) {
      Expr result = make(ExprKind::Not, context);
      result.operands = {term(inverse->term())};
      return add(std::move(result), context);
    }
    if (auto* range = dynamic_cast<SchedParser::RangeContext*>(context)) {
      Expr result = make(ExprKind::Range, context);
      const std::vector<SchedParser::TermContext*> terms = range->term();
      result.operands = {term(terms[0]), term(terms[1])};
      return add(std::move(result), context);
    }
    if (auto* element = dynamic_cast<SchedParser::ElementContext*>(context)) {
      Expr result = make(ExprKind::Element, context);
      result.operands = {term(element->term()), expression(element->expression())};
      return add(std::move(result), context);
    }
    if (auto* list = dynamic_cast<SchedParser::ListContext*>(context)) return list_of(list);
    if (auto* with = dynamic_cast<SchedParser::WithContext*>(context)) {
      Expr result = make(ExprKind::With, context);
      const std::vector<SchedParser::OpOrNameContext*> ops = with->opOrName();
      result.operands = {op_or_name(ops[0]), op_or_name(ops[1])};
      return add(std::move(result), context);
    }
    STAVE_CHECK(false, "an expression that the Ast does not know");
  }

  ExprId list_of(SchedParser::ListContext* context) {
    const std::vector<SchedParser::EachContext*> all = context->each();
    if (all.size() == 1 && all[0]->For()) return each_of(all[0]);
    Expr result = make(ExprKind::List, context);
    for (SchedParser::EachContext* each : all) {
      if (each->For()) error("syntax", places_.of(each), "a list is either written out or made by one `for`");
      result.operands.push_back(each_of(each));
    }
    return add(std::move(result), context);
  }

  static Operator binary_operator(std::string_view text) {
    constexpr std::pair<std::string_view, Operator> kOperators[] = {
        {"+", Operator::Add},      {"-", Operator::Subtract}, {"*", Operator::Multiply},  {"/", Operator::Divide},
        {"div", Operator::Div},    {"mod", Operator::Mod},    {"==", Operator::Equal},    {"!=", Operator::Unequal},
        {"<", Operator::Less},     {"<=", Operator::LessEqual}, {">", Operator::Greater}, {">=", Operator::GreaterEqual},
        {"and", Operator::And},    {"or", Operator::Or}};
    for (const auto& [name, op] : kOperators)
      if (name == text) return op;
    STAVE_CHECK(false, "an operator that the Ast does not know");
  }

  /// The exact value of `12` or `0.25`.
  Rational number_value(std::string_view text, Span span) {
    Int128 numerator = 0;
    Int128 denominator = 1;
    // Zeros behind the last digit after the point say nothing.
    if (text.find('.') != std::string_view::npos)
      while (text.back() == '0') text.remove_suffix(1);
    bool fraction = false;
    constexpr Int128 kLimit = Int128(1) << 100;
    for (const char c : text) {
      if (c == '.') {
        fraction = true;
        continue;
      }
      numerator = numerator * 10 + (c - '0');
      if (fraction) denominator *= 10;
      if (numerator > kLimit || denominator > kLimit) break;
    }
    const std::optional<Rational> result =
        numerator > kLimit || denominator > kLimit ? std::nullopt : Rational::make(numerator, denominator);
    if (result) return *result;
    error("number-too-large", span, "this number does not fit into 64 bits",
          "the largest is 9223372036854775807, also above and below the line of a fraction");
    return Rational(0);
  }

  Expr make(ExprKind kind, ParserRuleContext* context) const {
    Expr result;
    result.kind = kind;
    result.span = places_.of(context);
    return result;
  }

  /// Adds an expression whose operands have been added. Those after this step walk an expression by recursion, so one
  /// that is too deep (a long sum leans to the left, a long `else` to the right) is refused here.
  ExprId add(Expr expr, ParserRuleContext* context) {
    std::uint32_t depth = 1;
    for (const ExprId each : expr.operands) depth = std::max(depth, expr_depth(each) + 1);
    if (depth == kMaxNesting + 1)
      error("nested-too-deep", places_.of(context), "an expression has more than 200 others inside each other",
            "name a part of it with `let`, or use `sum` over a list");
    const ExprId result = ast_.exprs.push_back(std::move(expr));
    depth_.resize(result.value + 1, 1);
    depth_[result.value] = depth;
    return result;
  }

  std::uint32_t expr_depth(ExprId id) const { return id.value < depth_.size() ? depth_[id.value] : 1; }

  Identifier identifier(const Token* token) const {
    const Span span = places_.of(token);
    return {std::string(sources_.text(span)), span};
  }
  Identifier identifier(TerminalNode* node) const { return identifier(node->getSymbol()); }

  /// The text between the quotes.
  std::string string(TerminalNode* node) const {
    const std::string_view quoted = sources_.text(places_.of(node->getSymbol()));
    return std::string(quoted.substr(1, quoted.size() - 2));
  }

  void error(std::string_view kind, Span span, std::string message, std::string fix = "") {
    Diagnostic diagnostic;
    diagnostic.kind = kind;
    diagnostic.message = std::move(message);
    diagnostic.primary.span = span;
    diagnostic.fix = std::move(fix);
    sink_.add(std::move(diagnostic));
  }

  const Sources& sources_;
  const GuardedText& text_;
  const Places& places_;
  Ast& ast_;
  Diagnostics& sink_;
  /// Depth of each expression of ast_ that was made here.
  std::vector<std::uint32_t> depth_;
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
  const std::vector<Lexeme> lexemes = lexemes_of(tokens.getTokens(), sources, source, places);

  SchedParser parser(&tokens);
  parser.removeErrorListeners();
  parser.setErrorHandler(std::make_shared<Recovery>(lexemes, sink));
  DepthGuard depth;
  parser.addParseListener(&depth);
  try {
    auto* tree = (parser.*rule)();
    Builder builder(sources, *text, places, into, sink);
    // A tree with a hole in it is not looked at; of a file, complete declarations are.
    if (sink.errors() == errors_before || tree->getRuleIndex() == SchedParser::RuleFile) build(builder, tree);
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
  result.source = source;
  const bool good = parse_with(sources, source, result, sink, &SchedParser::file,
                               [](Builder& builder, SchedParser::FileContext* tree) { builder.file(tree); });
  if (!good) return std::nullopt;
  return result;
}

std::optional<std::vector<ValueLine>> parse_costs(const Sources& sources, SourceId source, Ast& into,
                                                  Diagnostics& sink) {
  std::vector<ValueLine> result;
  const bool good =
      parse_with(sources, source, into, sink, &SchedParser::costs,
                 [&](Builder& builder, SchedParser::CostsContext* tree) { result = builder.costs(tree); });
  if (!good) return std::nullopt;
  return result;
}

std::optional<ExprId> parse_value(const Sources& sources, SourceId source, Ast& into, Diagnostics& sink) {
  ExprId result;
  const bool good = parse_with(
      sources, source, into, sink, &SchedParser::value,
      [&](Builder& builder, SchedParser::ValueContext* tree) { result = builder.expression(tree->expression()); });
  if (!good) return std::nullopt;
  return result;
}

}  // namespace stave
