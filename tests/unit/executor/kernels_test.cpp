#include "executor/cpu/kernels.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "executor/cpu/matmul.h"
#include "executor/random.h"

namespace stave {
namespace {

std::vector<float> numbers(std::size_t n, std::uint64_t seed, double scale) {
  RandomStream random(seed);
  std::vector<float> result(n);
  for (float& x : result) x = static_cast<float>(scale * (2 * random.uniform() - 1));
  return result;
}

double exact_gelu(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

TEST_CASE("gelu and its gradient, over the whole range of fp32") {
  std::vector<float> x = numbers(1000, 1, 8);
  for (float extreme : {0.0f, -0.0f, 1e30f, -1e30f, 1e-30f, 100.0f, -100.0f, 20.0f, -20.0f}) x.push_back(extreme);
  std::vector<float> y(x.size());
  gelu(x.data(), x.size(), y.data());
  for (std::size_t i = 0; i < x.size(); ++i)
    CHECK(y[i] == doctest::Approx(exact_gelu(static_cast<double>(x[i]))).epsilon(1e-5));
  const std::vector<float> ones(1000, 1.0f);
  std::vector<float> gradient(x.begin(), x.begin() + 1000);
  gelu_gradient(ones.data(), 1000, gradient.data());
  for (std::size_t i = 0; i < 1000; ++i) {
    const double at = static_cast<double>(x[i]);
    CHECK(gradient[i] == doctest::Approx((exact_gelu(at + 1e-5) - exact_gelu(at - 1e-5)) / 2e-5).epsilon(1e-4));
  }
}

TEST_CASE("causal softmax: rows sum to 1 and see nothing that comes later") {
  for (std::size_t t : {1u, 2u, 7u, 64u}) {
    std::vector<float> scores = numbers(t * t, t, 30);
    const std::vector<float> before = scores;
    causal_softmax(scores.data(), t, 0, 0.5f);
    for (std::size_t i = 0; i < t; ++i) {
      double sum = 0;
      double exact = 0;
      for (std::size_t j = 0; j <= i; ++j)
        exact += std::exp(0.5 * (static_cast<double>(before[i * t + j]) - static_cast<double>(before[i * t])));
      for (std::size_t j = 0; j < t; ++j) {
        if (j > i) CHECK(scores[i * t + j] == 0);
        sum += static_cast<double>(scores[i * t + j]);
      }
      CHECK(sum == doctest::Approx(1));
      CHECK(scores[i * t] == doctest::Approx(1 / exact).epsilon(1e-5));
    }
  }
}

TEST_CASE("causal softmax of the last rows alone is that of all rows, and so is its gradient") {
  const std::size_t t = 9;
  std::vector<float> all = numbers(t * t, 4, 3);
  std::vector<float> d_all = numbers(t * t, 5, 3);
  const std::size_t before = 5;
  std::vector<float> last(all.begin() + before * t, all.end());
  std::vector<float> d_last(d_all.begin() + before * t, d_all.end());
  causal_softmax(all.data(), t, 0, 0.5f);
  causal_softmax(last.data(), t - before, before, 0.5f);
  CHECK(last == std::vector<float>(all.begin() + before * t, all.end()));
  causal_softmax_gradient(all.data(), d_all.data(), t, 0, 0.5f);
  causal_softmax_gradient(last.data(), d_last.data(), t - before, before, 0.5f);
  CHECK(d_last == std::vector<float>(d_all.begin() + before * t, d_all.end()));
}

TEST_CASE("cross-entropy of equal logits is ln of their number, and its gradient sums to 0") {
  std::vector<float> logits(2 * 256, 3.5f);
  const std::uint8_t targets[] = {0, 255};
  CHECK(cross_entropy(logits.data(), targets, 2, 256, 1.0f) == doctest::Approx(2 * std::log(256)));
  double sum = 0;
  for (float g : logits) sum += static_cast<double>(g);
  CHECK(std::abs(sum) < 1e-5);
  CHECK(logits[0] == doctest::Approx(1.0 / 256 - 1));
}

TEST_CASE("matrix products: all layouts, odd sizes, adding up") {
  use_one_thread();
  const std::int64_t m = 5;
  const std::int64_t n = 7;
  const std::int64_t k = 3;
  const std::vector<float> a = numbers(15, 1, 1);
  const std::vector<float> b = numbers(21, 2, 1);
  for (Layout layout_a : {Layout::Plain, Layout::Transposed}) {
    for (Layout layout_b : {Layout::Plain, Layout::Transposed}) {
      std::vector<float> c(35, 1.0f);
      const bool plain_a = layout_a == Layout::Plain;
      const bool plain_b = layout_b == Layout::Plain;
      matmul(layout_a, layout_b, m, n, k, a.data(), plain_a ? k : m, b.data(), plain_b ? n : k, 1, c.data(), n);
      for (std::int64_t i = 0; i < m; ++i) {
        for (std::int64_t j = 0; j < n; ++j) {
          double exact = 1;
          for (std::int64_t l = 0; l < k; ++l)
            exact += static_cast<double>(a[static_cast<std::size_t>(plain_a ? i * k + l : l * m + i)]) *
                     static_cast<double>(b[static_cast<std::size_t>(plain_b ? l * n + j : j * k + l)]);
          CHECK(c[static_cast<std::size_t>(i * n + j)] == doctest::Approx(exact).epsilon(1e-5));
        }
      }
    }
  }
}

TEST_CASE("Adam's first step moves every parameter by the learning rate") {
  std::vector<float> value = {1, 2};
  const std::vector<float> gradient = {0.5f, -3};
  std::vector<float> first(2);
  std::vector<float> second(2);
  adam(value.data(), gradient.data(), first.data(), second.data(), 2, 0.25f, 1);
  CHECK(value[0] == doctest::Approx(0.75));
  CHECK(value[1] == doctest::Approx(2.25));
}

}  // namespace
}  // namespace stave
