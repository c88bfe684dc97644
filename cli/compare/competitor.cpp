#include "cli/compare/competitor.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "cli/best_map.h"
#include "cli/library.h"
#include "compiler/builtins.h"
#include "compiler/code.h"
#include "compiler/metrics.h"
#include "compiler/nearest.h"
#include "compiler/reprice.h"

namespace stave {
namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

bool is_word_of(const std::string& text, const std::string& name) {
  const auto part_of_name = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  };
  for (std::size_t at = text.find(name); at != std::string::npos; at = text.find(name, at + 1)) {
    const std::size_t end = at + name.size();
    if ((at == 0 || !part_of_name(text[at - 1])) && (end == text.size() || !part_of_name(text[end]))) return true;
  }
  return false;
}

/// Whether a new name would hide a value, a function or a metric of the file.
bool is_taken(const Code& code, const std::string& name) {
  const auto same = [&](const auto& each) { return each.name == name; };
  return find_builtin(name) != nullptr || find_metric(name) != nullptr ||
         std::any_of(code.lets.begin(), code.lets.end(), same) ||
         std::any_of(code.functions.begin(), code.functions.end(),
                     [&](const FunctionCode& each) { return !each.local && same(each); });
}

/// Who knows a name of `-D` or of `--over`.
struct Known {
  std::string name;
  std::string option;
  std::vector<std::string> unknown_to;
  bool known = false;
};

class Reader {
 public:
  Reader(const CompetitorOptions& options, const std::vector<Axis>& axes) : options_(options), axes_(axes) {}

  Result<Competitors> read() {
    Result<std::vector<NamedText>> common = common_parameters(options_.schedules);
    if (!common) return common.failure();
    for (const NamedText& each : *common)
      common_.push_back({each.name, fmt::format("-D {}={}", each.name, each.value), {}, false});
    for (const Axis& each : axes_) swept_.push_back({each.name, "--over " + each.name, {}, false});
    if (options_.library) {
      const Result<std::vector<LibraryFile>> files = read_library();
      if (!files) return files.failure();
      for (const LibraryFile& file : files.value())
        if (const Result<void> added = add({file.path, *common}, true); !added) return added.failure();
    }
    Result<std::vector<ScheduleArgument>> named = schedule_arguments(options_.schedules, true);
    if (!named) return named.failure();
    for (const ScheduleArgument& each : *named)
      if (const Result<void> added = add(each, false); !added) return added.failure();
    if (result_.all.empty()) return Failure{"the library is empty"};
    for (const std::vector<Known>* names : {&common_, &swept_})
      for (const Known& each : *names)
        if (const Result<void> noted = note(each); !noted) return noted.failure();
    label();
    return std::move(result_);
  }

 private:
  Result<void> add(const ScheduleArgument& schedule, bool of_library) {
    // `--cost` comes later, when it may use the names of axes.
    ScheduleOptions without = options_.schedules;
    without.cost.clear();
    Result<Loaded> loaded = load(schedule.file, without);
    if (!loaded) return loaded.failure();
    Competitor competitor;
    competitor.loaded = std::move(*loaded);
    competitor.roles.assign(axes_.size(), AxisRole::None);
    own_.emplace_back();
    if (!competitor.loaded.ok()) {
      competitor.label = competitor.loaded.name();
      result_.all.push_back(std::move(competitor));
      return {};
    }
    competitor.label = competitor.loaded.is_csv ? competitor.loaded.name() : competitor.loaded.compiled->name();
    const std::vector<std::string> parameters = competitor.loaded.compiled->parameters();
    std::vector<NamedText> given;
    for (std::size_t i = 0; i < schedule.parameters.size(); ++i) {
      const NamedText& each = schedule.parameters[i];
      if (i >= common_.size()) {
        own_.back() += fmt::format(" {}={}", each.name, each.value);
      } else if (has(parameters, each.name)) {
        common_[i].known = true;
      } else {
        common_[i].unknown_to.push_back(competitor.label);
        continue;
      }
      given.push_back(each);
    }
    const Result<std::vector<Argument>> arguments = read_arguments(given);
    if (!arguments) return arguments.failure();
    competitor.arguments = arguments.value();
    const Result<void> costs = put_on(competitor, parameters);
    if (!costs && !of_library) return costs.failure();
    if (!costs) {
      competitor.reason = "--cost speaks of what it does not have";
      competitor.loaded.compiled.reset();
    }
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (competitor.roles[a] == AxisRole::None) {
        swept_[a].unknown_to.push_back(competitor.label);
        continue;
      }
      swept_[a].known = true;
      for (const Argument& each : competitor.arguments)
        if (each.name == axes_[a].name)
          return Failure{
              fmt::format("parameter `{}` of `{}` has a value and a range of --over", each.name, competitor.label)};
    }
    if (options_.schedules.map == kBestMap) {
      const Result<std::string> found = place_best(competitor.loaded, competitor.arguments);
      if (!found) return found.failure();
      if (!found.value().empty()) result_.notes.push_back(fmt::format("{} {}", competitor.label, found.value()));
    }
    known_.insert(known_.end(), parameters.begin(), parameters.end());
    if (competitor.loaded.ok())
      for (const OpCode& op : competitor.loaded.compiled->code->ops) known_.push_back(op.name);
    result_.all.push_back(std::move(competitor));
    return {};
  }

  /// `--cost` and the axes, in an order in which `--cost` may use the names of axes, and an axis of a cost comes last.
  Result<void> put_on(Competitor& competitor, const std::vector<std::string>& parameters) {
    const std::string& cost = options_.schedules.cost;
    std::optional<Compiled>& compiled = competitor.loaded.compiled;
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      const std::string& name = axes_[a].name;
      if (has(parameters, name)) {
        competitor.roles[a] = AxisRole::Parameter;
      } else if (!with_cost_parameter(*compiled, name) && is_word_of(cost, name)) {
        if (is_taken(*compiled->code, name))
          return Failure{fmt::format("--over {}: `{}` means something else in `{}`; choose another name", name, name,
                                     competitor.label)};
        compiled = with_parameter(*compiled, name, axes_[a].values[0]);
        competitor.roles[a] = AxisRole::Cost;
      }
    }
    if (!cost.empty())
      if (const Result<void> replaced = replace_costs(competitor.loaded, cost); !replaced) return replaced.failure();
    for (std::size_t a = 0; a < axes_.size(); ++a) {
      if (competitor.roles[a] != AxisRole::None) continue;
      std::optional<Compiled> with = with_cost_parameter(*compiled, axes_[a].name);
      if (!with) continue;
      for (const Rational value : axes_[a].values)
        if (value < Rational(0))
          return Failure{fmt::format("--over {}: no cost may be below 0, and {} is", axes_[a].name, value_text(value))};
      compiled = std::move(with);
      competitor.roles[a] = AxisRole::Cost;
    }
    return {};
  }

  Result<void> note(const Known& name) {
    if (!name.known) {
      const std::string_view nearest = nearest_name(name.name, {known_.begin(), known_.end()});
      return Failure{fmt::format("{}: no schedule here has {} called `{}`{}", name.option,
                                 name.option.starts_with("-D") ? "a parameter" : "a parameter or a cost", name.name,
                                 nearest.empty() ? "" : fmt::format("; did you mean `{}`?", nearest))};
    }
    if (!name.unknown_to.empty())
      result_.notes.push_back(fmt::format("{} means nothing to {}", name.option, fmt::join(name.unknown_to, ", ")));
    return {};
  }

  void label() {
    const std::vector<Competitor>& all = result_.all;
    const auto several = [&](const std::string& label) {
      return std::count_if(all.begin(), all.end(), [&](const Competitor& each) { return each.label == label; }) > 1;
    };
    std::vector<std::string> labels;
    for (std::size_t i = 0; i < all.size(); ++i)
      labels.push_back(all[i].label + (several(all[i].label) ? own_[i] : ""));
    for (std::size_t i = 0; i < all.size(); ++i) {
      const auto before = std::count(labels.begin(), labels.begin() + static_cast<std::ptrdiff_t>(i), labels[i]);
      result_.all[i].label = before == 0 ? labels[i] : fmt::format("{} #{}", labels[i], before + 1);
    }
  }

  const CompetitorOptions& options_;
  const std::vector<Axis>& axes_;
  Competitors result_;
  std::vector<Known> common_;
  std::vector<Known> swept_;
  /// Parameters and costs of all, for the nearest name.
  std::vector<std::string> known_ = {"message"};
  /// By competitor: " V=2 N=4", what stands after its file.
  std::vector<std::string> own_;
};

}  // namespace

std::vector<Argument> Competitor::arguments_at(const std::vector<Axis>& axes,
                                               const std::vector<std::size_t>& at) const {
  std::vector<Argument> result = arguments;
  for (std::size_t a = 0; a < axes.size(); ++a)
    if (roles[a] != AxisRole::None) result.push_back(make_argument(axes[a].name, axes[a].values[at[a]]));
  return result;
}

Result<Competitors> read_competitors(const CompetitorOptions& options, const std::vector<Axis>& axes) {
  return Reader(options, axes).read();
}

}  // namespace stave
