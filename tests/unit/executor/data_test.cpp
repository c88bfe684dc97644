#include "executor/data.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "executor/stage/config.h"

namespace stave {
namespace {

/// A file of this process alone: several runs of the tests at once must not write over each other.
std::string write_file(const std::string& name, const std::string& text) {
  const std::string path =
      (std::filesystem::temp_directory_path() / (name + "_" + std::to_string(getpid()))).string();
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

TEST_CASE("several files are one text") {
  const std::string paths[] = {write_file("stave_data_a", "abc"), write_file("stave_data_b", "defg")};
  const Result<Corpus> corpus = Corpus::load(paths, 7);
  REQUIRE(corpus);
  CHECK(corpus.value().size() == 7);
}

TEST_CASE("a file that shrinks after it was read changes nothing") {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("stave_shrinks_" + std::to_string(::getpid()));
  std::ofstream(path) << "abcdefghijklmnop";
  const std::string name = path.string();
  Result<Corpus> corpus = Corpus::load({&name, 1}, 8);
  REQUIRE(corpus);
  std::filesystem::resize_file(path, 2);
  std::uint32_t sum = 0;
  for (std::uint32_t m = 0; m < 50; ++m)
    for (std::uint8_t each : corpus->window(1, 0, m, 0, 16)) sum += each;
  CHECK(sum == 50 * (16 * 'a' + 120));
  CHECK(!Corpus::load({&name, 1}, 8));
  std::filesystem::remove(path);
}

TEST_CASE("a file that is missing, a folder, a text too short: named, with sizes") {
  const std::string missing[] = {"/nonexistent/stave"};
  const Result<Corpus> none = Corpus::load(missing, 1);
  REQUIRE(!none);
  CHECK(none.failure().message == "cannot read `/nonexistent/stave`: No such file or directory");

  const std::string folder[] = {std::filesystem::temp_directory_path().string()};
  CHECK(!Corpus::load(folder, 1));

  const std::string small[] = {write_file("stave_data_small", "abc")};
  const Result<Corpus> few = Corpus::load(small, 65);
  REQUIRE(!few);
  CHECK(few.failure().message == "`" + small[0] + "`: 3 bytes are too few to train on; the sequence length needs at least 65");
}

TEST_CASE("a window depends on all of its numbers and on nothing else") {
  std::vector<std::uint8_t> bytes(10000);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(i * 7 % 251);
  const Corpus corpus(bytes);
  const auto at = [&](std::uint64_t seed, std::uint64_t step, std::uint32_t m, std::uint32_t row) {
    return corpus.window(seed, step, m, row, 33).data();
  };
  CHECK(at(1, 2, 3, 4) == at(1, 2, 3, 4));
  CHECK(at(1, 2, 3, 4) != at(2, 2, 3, 4));
  CHECK(at(1, 2, 3, 4) != at(1, 3, 3, 4));
  CHECK(at(1, 2, 3, 4) != at(1, 2, 4, 4));
  CHECK(at(1, 2, 3, 4) != at(1, 2, 3, 5));
  CHECK(Corpus(std::vector<std::uint8_t>(33)).window(1, 2, 3, 4, 33).size() == 33);
}

TEST_CASE("entropy of bytes") {
  CHECK(Corpus({1, 1, 1}).byte_entropy() == doctest::Approx(0));
  CHECK(Corpus({1, 2, 1, 2}).byte_entropy() == doctest::Approx(std::log(2)));
  std::vector<std::uint8_t> all(256);
  for (std::size_t i = 0; i < 256; ++i) all[i] = static_cast<std::uint8_t>(i);
  CHECK(Corpus(all).byte_entropy() == doctest::Approx(std::log(256)));
}

TEST_CASE("settings outside their bounds are named with their value") {
  const auto message = [](ModelConfig config) { return validate(config).failure().message; };
  CHECK(validate(ModelConfig{}).ok());
  ModelConfig config;
  config.width = 0;
  CHECK(message(config) == "width is 0, but must lie between 4 and 4096");
  config = {};
  config.heads = 5;
  CHECK(message(config) == "width is 96, which 5 heads do not divide");
  config = {};
  config.sequence = 5000;
  CHECK(message(config) == "sequence is 5000, but must lie between 2 and 4096");
  config = {};
  config.learning_rate = std::nan("");
  CHECK(message(config) == "the learning rate is nan, but must be above 0 and at most 10");
  config = {};
  config.warmup = 10;
  config.decay = 10;
  CHECK(message(config) == "the learning rate rises until step 10 (warmup), but has fallen by step 10 (decay)");
}

TEST_CASE("a run of more steps that decays at the same one learns at the same rates") {
  ModelConfig shorter;
  shorter.steps = 20;
  shorter.decay = 100;
  ModelConfig longer = shorter;
  longer.steps = 200;
  for (std::uint64_t step = 0; step < 20; ++step) CHECK(learning_rate_at(shorter, step) == learning_rate_at(longer, step));
  CHECK(learning_rate_at(longer, 9) == doctest::Approx(longer.learning_rate));
  CHECK(learning_rate_at(longer, 99) == doctest::Approx(longer.learning_rate / 10));
  CHECK(learning_rate_at(longer, 150) == learning_rate_at(longer, 99));
}

TEST_CASE("the learning rate rises, then falls to a tenth") {
  ModelConfig config;
  config.steps = 100;
  config.learning_rate = 1;
  CHECK(learning_rate_at(config, 0) == doctest::Approx(0.1));
  CHECK(learning_rate_at(config, 9) == doctest::Approx(1));
  CHECK(learning_rate_at(config, 99) == doctest::Approx(0.1));
  config.steps = 1;
  CHECK(learning_rate_at(config, 0) == doctest::Approx(1));
}

}  // namespace
}  // namespace stave
