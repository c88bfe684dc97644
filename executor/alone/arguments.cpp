#include "executor/alone/arguments.h"

#include <array>
#include <charconv>
#include <string_view>

namespace stave {

namespace {

/// An option with a value; `read` says whether the value is one of it.
struct Option {
  std::string_view name;
  std::string_view due;
  bool (*read)(const std::string& value, AloneArguments& into);
};

template <class T>
bool whole(const std::string& text, T& into) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), into);
  return error == std::errc() && end == text.data() + text.size();
}

/// One of two words; `into` becomes whether it is the second.
bool either(const std::string& value, std::string_view first, std::string_view second, bool& into) {
  into = value == second;
  return into || value == first;
}

constexpr std::string_view kWhole = "a whole number that fits";

constexpr std::array kOptions = {
    Option{"--workload", "transformer or integer",
           [](const std::string& value, AloneArguments& into) { return either(value, "integer", "transformer", into.trains); }},
    Option{"--backend", "cpu or cuda",
           [](const std::string& value, AloneArguments& into) { return either(value, "cpu", "cuda", into.is_on_gpus); }},
    Option{"--transport", "local or nccl",
           [](const std::string& value, AloneArguments& into) { return either(value, "local", "nccl", into.gpu.is_nccl); }},
    Option{"--precision", "fp32 or bf16",
           [](const std::string& value, AloneArguments& into) { return either(value, "fp32", "bf16", into.gpu.is_bf16); }},
    Option{"--graph", "iter", [](const std::string& value, AloneArguments& into) { return into.gpu.is_graph = value == "iter"; }},
    Option{"--data", "a file",
           [](const std::string& value, AloneArguments& into) {
             into.data.push_back(value);
             return !value.empty();
           }},
    Option{"--steps", kWhole, [](const std::string& value, AloneArguments& into) { return whole(value, into.model.steps); }},
    Option{"--width", kWhole, [](const std::string& value, AloneArguments& into) { return whole(value, into.model.width); }},
    Option{"--heads", kWhole, [](const std::string& value, AloneArguments& into) { return whole(value, into.model.heads); }},
    Option{"--blocks", kWhole, [](const std::string& value, AloneArguments& into) { return whole(value, into.model.blocks); }},
    Option{"--sequence", kWhole, [](const std::string& value, AloneArguments& into) { return whole(value, into.model.sequence); }},
    Option{"--rows", kWhole, [](const std::string& value, AloneArguments& into) { return whole(value, into.model.rows); }},
    Option{"--seed", kWhole, [](const std::string& value, AloneArguments& into) { return whole(value, into.model.seed); }},
};

const Option* find(std::string_view name) {
  for (const Option& each : kOptions)
    if (each.name == name) return &each;
  return nullptr;
}

}  // namespace

const char* const kAloneUsage =
    "usage: stave-run FILE [--workload transformer|integer] [--data TEXT]... [--steps N] [--width N] [--heads N]\n"
    "                 [--blocks N] [--sequence N] [--rows N] [--seed N] [--verify]\n"
    "                 [--backend cpu|cuda] [--transport local|nccl] [--graph iter] [--precision fp32|bf16]\n"
    "FILE is a program: stave table SCHEDULE --format program -o FILE\n";

Result<AloneArguments> read_alone_arguments(int argc, char** argv) {
  AloneArguments result;
  bool is_of_gpus = false;
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--verify") {
      result.verify = true;
    } else if (!word.starts_with("--")) {
      if (!result.program.empty()) return Failure{"one program at a time, not " + result.program + " and " + word};
      result.program = word;
    } else {
      const Option* option = find(word);
      if (option == nullptr) return Failure{"unknown option " + word + "\n" + kAloneUsage};
      if (i + 1 == argc) return Failure{word + " needs a value: " + std::string(option->due)};
      const std::string value = argv[++i];
      if (!option->read(value, result)) return Failure{word + " is " + std::string(option->due) + ", not '" + value + "'"};
      is_of_gpus |= word == "--transport" || word == "--graph" || word == "--precision";
    }
  }
  if (result.program.empty()) return Failure{std::string("no program is named\n") + kAloneUsage};
  if (is_of_gpus && !result.is_on_gpus) return Failure{"--transport, --graph and --precision are of --backend cuda"};
  return result;
}

}  // namespace stave
