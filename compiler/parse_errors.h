// What ANTLR's parser does about errors: how deep rules may be, what is said of a syntax error, and where it goes on.
// For parse.cpp alone, which is the one place that sees ANTLR.
#pragma once

#include <cstddef>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include <antlr4-runtime.h>

#include "compiler/diagnostics.h"
#include "compiler/guards.h"
#include "compiler/syntax_error.h"
#include "generated/SchedParser.h"

namespace stave::parsing {

using Grammar = SchedParser;

using antlr4::ParserRuleContext;
using antlr4::Token;
using antlr4::tree::ParseTree;
using antlr4::tree::TerminalNode;

/// Rules inside each other at most: as many as kMaxNesting brackets need, with their calls and lists.
inline constexpr std::size_t kMaxRules = 8 * kMaxNesting;
/// Syntax errors of one file at most; then reading stops.
inline constexpr std::size_t kMaxSyntaxErrors = Diagnostics::kMost + 1;

/// Ends a parse from inside: rules too deep, or errors enough.
struct Stop {};

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
    if (rule != Grammar::RuleDeclaration && rule != Grammar::RuleHeader && rule != Grammar::RuleFile &&
        rule != Grammar::RuleCosts && rule != Grammar::RuleValue)
      std::rethrow_exception(error);
    if (rule == Grammar::RuleDeclaration || rule == Grammar::RuleHeader) skip(parser);
  }

  Token* recoverInline(antlr4::Parser* parser) override { throw antlr4::InputMismatchException(parser); }

  /// Between declarations: what begins none is reported and skipped, so that the rest is read too.
  void sync(antlr4::Parser* parser) override {
    if (parser->getContext()->getRuleIndex() != Grammar::RuleFile) return;
    endErrorCondition(parser);
    for (;;) {
      const Token* next = parser->getCurrentToken();
      const std::size_t at = next->getTokenIndex();
      if (next->getType() == Token::EOF || begins_declaration(lexemes_[at])) break;
      if (next->getType() == Grammar::Schedule && at == 0) break;
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
    if (errors_ > 0 && is_first_schedule(lexemes_, at)) return;
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

  /// The tokens that would have done, as the grammar names them.
  static std::vector<std::string> names(antlr4::Parser* parser, const antlr4::RecognitionException& e) {
    std::vector<std::string> result;
    for (const ssize_t type : e.getExpectedTokens().toList())
      result.push_back(type <= 0 ? "" : parser->getVocabulary().getDisplayName(static_cast<std::size_t>(type)));
    return result;
  }

  const std::vector<Lexeme>& lexemes_;
  Diagnostics& sink_;
  /// First token of the declaration that is read.
  std::size_t begin_ = 0;
  std::size_t errors_ = 0;
};

}  // namespace stave::parsing
