// Models and clusters: published counts of parameters, operations and bytes, and the times that follow from them.
#include "scheduler/model.h"

#include <memory>
#include <string>

#include "doctest/doctest.h"
#include "scheduler/cluster.h"
#include "scheduler/layer_times.h"
#include "scheduler/layer_work.h"
#include "scheduler/model_prices.h"
#include "scheduler/stage_layers.h"
#include "scheduler/toml.h"

namespace stave {

namespace {

Model model_of(const std::string& text) {
  Sources sources;
  Diagnostics sink;
  const std::optional<Model> model = read_model(sources, sources.add("model", text), sink);
  for (const Diagnostic& each : sink.all()) MESSAGE(each.message);
  REQUIRE(model);
  return *model;
}

Model shipped(const std::string& name) {
  Sources sources;
  const Result<SourceId> source = read_toml_source(sources, STAVE_SOURCE_DIR "/schedules/models/" + name + ".toml");
  REQUIRE(source.ok());
  return model_of(sources[source.value()].text);
}

Cluster cluster_of(const std::string& text) {
  Sources sources;
  Diagnostics sink;
  const std::optional<Cluster> cluster = read_cluster(sources, sources.add("cluster", text), sink);
  for (const Diagnostic& each : sink.all()) MESSAGE(each.message);
  REQUIRE(cluster);
  return *cluster;
}

/// A layer of the kind that Korthikanti et al. count.
std::string plain(const std::string& head) {
  return "hidden = 1536\nsequence = 512\nprecision = 'fp16'\n" + head +
         "\n[[layer]]\nkind = 'transformer'\nheads = 12\nffn = 6144\nbias = true\ndropout = true\n";
}

constexpr double kH = 1536;
constexpr double kS = 512;
constexpr double kA = 12;

/// Ranks that share a sequence evenly.
Site alike(const Model& model) {
  Site result;
  result.ulysses = model.parallel.ulysses;
  result.ring = model.parallel.ring;
  return result;
}

double kept_a_token(const std::string& head) {
  const Model model = model_of(plain(head));
  return local_activation_bytes(model, work_of(model, model.layers[0]), alike(model)) / kS;
}

}  // namespace

TEST_CASE("parameters of the shipped models") {
  // As published with the weights: meta-llama/Meta-Llama-3-8B and 70B.
  CHECK(parameters_of(shipped("llama3_8b")) == 8030261248.0);
  CHECK(parameters_of(shipped("llama3_70b")) == 70553706496.0);
  // Brown et al., arXiv:2005.14165, table D.1: 174,600 million.
  CHECK(parameters_of(shipped("gpt3_175b")) / 1e6 == doctest::Approx(174600).epsilon(1e-4));
  // torchvision's vit_l_16.
  CHECK(parameters_of(shipped("vit_l16")) == 304326632.0);
  // DeepSeek-AI, arXiv:2412.19437, abstract: 671B, of which 37B are active for a token.
  const Model v3 = shipped("deepseek_v3");
  CHECK(parameters_of(v3) / 1e9 == doctest::Approx(671).epsilon(1e-3));
  double active = parameters_of(v3);
  for (const Layer& layer : v3.layers) active -= work_of(v3, layer).expert_parameters * (1 - 8.0 / 256);
  CHECK(active / 1e9 == doctest::Approx(37).epsilon(0.02));
}

TEST_CASE("activations of a layer and token: 34h + 5as, and what ranks and recomputation leave") {
  // Korthikanti et al., arXiv:2205.05198, equations 1, 2, 4 and section 5.
  CHECK(kept_a_token("") == 34 * kH + 5 * kA * kS);
  CHECK(kept_a_token("[parallel]\ntensor = 4") == doctest::Approx(kH * (10 + 24 / 4.0) + 5 * kA * kS / 4));
  CHECK(kept_a_token("[parallel]\ntensor = 4\nsequence = true") == doctest::Approx((34 * kH + 5 * kA * kS) / 4));
  CHECK(kept_a_token("recompute = 'selective'") == 34 * kH);
  CHECK(kept_a_token("recompute = 'full'") == 2 * kH);
  CHECK(kept_a_token("[parallel]\nulysses = 2\nring = 2") == doctest::Approx((34 * kH + 5 * kA * kS) / 4));
}

TEST_CASE("operations of the shipped models") {
  // Narayanan et al., arXiv:2104.04473, appendix: forward 24 B s l h^2 (1 + s / 6h + V / 12lh).
  const double s = 2048, l = 96, h = 12288, v = 50257;
  CHECK(forward_flops(shipped("gpt3_175b")) ==
        doctest::Approx(24 * s * l * h * h * (1 + s / (6 * h) + v / (12 * l * h))));
  // Two operations a weight and token (no table of words, no norms), and causal attention 2 s^2 h a layer.
  const auto llama = [](double parameters, double hidden, double layers, double words) {
    const double weights = parameters - words * hidden - (2 * layers + 1) * hidden;
    return 2 * weights * 8192 + 2 * 8192.0 * 8192.0 * hidden * layers;
  };
  CHECK(forward_flops(shipped("llama3_8b")) == doctest::Approx(llama(8030261248.0, 4096, 32, 128256)));
  CHECK(forward_flops(shipped("llama3_70b")) == doctest::Approx(llama(70553706496.0, 8192, 80, 128256)));
  // 64 pictures: 196 patches, 24 layers of 24 s h^2 + 4 s^2 h, one class read off.
  CHECK(forward_flops(shipped("vit_l16")) ==
        doctest::Approx(64 * (196 * 2 * 768 * 1024.0 + 24 * (24 * 197.0 * 1024 * 1024 + 4 * 197.0 * 197 * 1024) +
                              2 * 1000 * 1024.0)));
  // Active weights, and scores over 128 heads of 192 and values of 128.
  const Model v3 = shipped("deepseek_v3");
  double weights = -129280.0 * 7168;
  for (const Layer& layer : v3.layers) {
    const LayerWork work = work_of(v3, layer);
    weights += work.parameters - work.expert_parameters * (1 - 8.0 / 256);
    if (layer.kind == LayerKind::Block) weights -= 2 * 7168 + 1536 + 512 + (layer.router_bias ? 256 : 0);
  }
  weights -= 7168;
  CHECK(forward_flops(v3) == doctest::Approx(2 * weights * 4096 + 61 * 4096.0 * 4096 * 128 * (192 + 128)));
}

TEST_CASE("gradients take as much as the forward, attention's own twice that") {
  // Qi et al., arXiv:2401.10241, table 1: sbh(24h + 4s), sbh(24h + 8s), sbh(24h).
  const Model model = model_of(plain(""));
  const LayerWork work = work_of(model, model.layers[0]);
  CHECK(work.weight_flops + work.core_flops == doctest::Approx(kS * kH * (24 * kH + 4 * kS)));
  CHECK(work.weight_flops + work.core_gradient_flops == doctest::Approx(kS * kH * (24 * kH + 8 * kS)));
  CHECK(work.weight_flops == doctest::Approx(kS * kH * 24 * kH));
}

TEST_CASE("slices of a sequence do together what the whole does, if each sees what is before it") {
  const Model model = model_of(plain("causal = true"));
  const Tokens whole = tokens_of(model, 1, 512, 0);
  const Tokens first = tokens_of(model, 1, 128, 0);
  const Tokens second = tokens_of(model, 1, 384, 128);
  CHECK(first.count + second.count == whole.count);
  CHECK(first.seen + second.seen == whole.seen);
}

TEST_CASE("a window: tokens see what is before them until it is full") {
  const Model model = model_of(plain("causal = true"));
  Layer layer = model.layers[0];
  layer.window = 3;
  const auto seen = [&](double length, double before) {
    return work_of(model, layer, tokens_of(model, 1, length, before)).core_flops / (4 * kH);
  };
  // 0.5 + 1.5 + 2.5 + 5 * 3.
  CHECK(seen(8, 0) == 19.5);
  CHECK(seen(2, 0) + seen(3, 2) + seen(3, 5) == 19.5);
  CHECK(seen(3, 0) == 4.5);
  layer.window = 512;
  CHECK(seen(512, 0) == 512.0 * 512 / 2);
  const Model both_sides = model_of(plain(""));
  layer.window = 3;
  CHECK(work_of(both_sides, layer).core_flops / (4 * kH) == 3.0 * 512);
}

TEST_CASE("times on a machine by hand") {
  const Cluster cluster = cluster_of(
      "[device.d]\npeak = { fp16 = '1 TFLOP/s' }\nmemory = '1 GB'\nmemory_bandwidth = '1 PB/s'\nefficiency = 0.5\n"
      "[link.l]\nlatency = '1 ms'\nbandwidth = '1 MB/s'\n[[node]]\ndevice = 'd'\ncount = 4\ninside = 'l'\n");
  const Model model = model_of(plain("[parallel]\ntensor = 4"));
  const Site site{&cluster.accelerators[0], &cluster.links[0], nullptr, nullptr, {}};
  const LayerTimes times = layer_times(model, model.layers[0], microbatch_tokens(model), site);
  // A quarter of the operations at half the peak; two sums over four ranks, each 2 * 3/4 of the bytes and 6 latencies.
  const double compute = kS * kH * (24 * kH + 4 * kS) / 4 / 0.5e12;
  const double sum = 2 * 0.75 * (kS * kH * 2) / 1e6 + 6e-3;
  CHECK(times.forward == doctest::Approx(compute + 2 * sum));
  CHECK(times.weight == doctest::Approx(kS * kH * 24 * kH / 4 / 0.5e12));
  CHECK(times.again == 0);
}

TEST_CASE("unlike ranks of a sequence share it by their rates, and take equally long") {
  const Cluster cluster = cluster_of(
      "[device.d]\npeak = { fp16 = '3 TFLOP/s' }\nmemory = '1 GB'\nmemory_bandwidth = '1 PB/s'\n"
      "[device.e]\npeak = { fp16 = '1 TFLOP/s' }\nmemory = '2 GB'\nmemory_bandwidth = '1 PB/s'\n"
      "[link.l]\nlatency = '0 s'\nbandwidth = '1 PB/s'\n"
      "[[node]]\ndevice = 'd'\ncount = 3\ninside = 'l'\nnetwork = 'l'\n"
      "[[node]]\ndevice = 'e'\ncount = 1\ninside = 'l'\nnetwork = 'l'\n");
  const Model model = model_of(plain("[parallel]\nring = 2"));
  const ModelPrices prices(std::make_shared<const Model>(model), std::make_shared<const Cluster>(cluster), {});
  CHECK(prices.site(0).ranks.empty());
  const Site mixed = prices.site(1);
  REQUIRE(mixed.ranks.size() == 2);
  CHECK(mixed.ranks[0].share == doctest::Approx(0.75));
  CHECK(mixed.accelerator->name == "e");
  CHECK(prices.smallest(1).name == "d");
  const double work = kS * kH * (24 * kH + 4 * kS);
  const auto forward = [&](const Site& site) {
    return layer_times(model, model.layers[0], microbatch_tokens(model), site).forward;
  };
  CHECK(forward(prices.site(0)) == doctest::Approx(work / 6e12).epsilon(1e-4));
  CHECK(forward(mixed) == doctest::Approx(work / 4e12).epsilon(1e-4));
  const LayerWork all = work_of(model, model.layers[0]);
  CHECK(local_activation_bytes(model, all, mixed) == doctest::Approx(1.5 * local_activation_bytes(model, all, alike(model))));
}

TEST_CASE("a short sequence is shared by as many ranks as its degree says, and exchanges nothing where that is one") {
  const Cluster cluster = cluster_of(
      "[device.d]\npeak = { fp16 = '1 TFLOP/s' }\nmemory = '1 GB'\nmemory_bandwidth = '1 PB/s'\n"
      "[link.l]\nlatency = '1 ms'\nbandwidth = '1 MB/s'\n[[node]]\ndevice = 'd'\ncount = 4\ninside = 'l'\n");
  const Model model = model_of(plain("[parallel]\nulysses = 4\ndegree = [{ up_to = 512, ulysses = 1 }]"));
  REQUIRE(model.parallel.degrees.size() == 1);
  CHECK(model.parallel.width() == 4);
  const ModelPrices prices(std::make_shared<const Model>(model), std::make_shared<const Cluster>(cluster), {});
  const double work = kS * kH * (24 * kH + 4 * kS);
  const auto forward = [&](const Site& site) {
    return layer_times(model, model.layers[0], microbatch_tokens(model), site).forward;
  };
  CHECK(forward(prices.site(0, model.parallel.degrees[0])) == doctest::Approx(work / 1e12).epsilon(1e-4));
  // Queries, keys, values and outputs, 4 h a token of which a rank has a quarter: 3/4 of it in three steps, and the latencies
  // of the other three exchanges.
  const double exchanged = 0.75 * (kS / 4 * 4 * kH * 2) / 1e6 + 3e-3 + 9e-3;
  CHECK(forward(prices.site(0)) == doctest::Approx(work / 4e12 + exchanged).epsilon(1e-4));
}

TEST_CASE("efficiency lies on the line between two points over the logarithm") {
  const Cluster cluster = cluster_of(
      "[device.d]\npeak = { bf16 = '1 TFLOP/s' }\nmemory = '1 GB'\nmemory_bandwidth = '1 TB/s'\n"
      "efficiency = [{ flops = 1e6, share = 0.2 }, { flops = 1e8, share = 0.6 }]\n[[node]]\ndevice = 'd'\n");
  const Accelerator& device = cluster.accelerators[0];
  CHECK(device.efficiency_of(1) == 0.2);
  CHECK(device.efficiency_of(1e7) == doctest::Approx(0.4));
  CHECK(device.efficiency_of(1e9) == 0.6);
}

TEST_CASE("links: by pair before node before region before network") {
  const std::string device =
      "[device.d]\npeak = { bf16 = '1 TFLOP/s' }\nmemory = '1 GB'\nmemory_bandwidth = '1 TB/s'\n";
  const std::string link = "latency = '1 us'\nbandwidth = '1 GB/s'\n";
  const Cluster cluster = cluster_of(
      device + "[link.in]\n" + link + "[link.net]\n" + link + "[link.wan]\n" + link + "[link.wire]\n" + link +
      "[[node]]\nregion = 'a'\ndevice = 'd'\ncount = 2\ncopies = 2\ninside = 'in'\nnetwork = 'net'\n"
      "[[node]]\nregion = 'b'\ndevice = 'd'\ncount = 2\nnetwork = 'net'\n"
      "[[node]]\nregion = 'c'\nname = 'twin'\ndevice = 'd'\ncopies = 2\nnetwork = 'net'\n"
      "[[node]]\nregion = 'c'\nname = 'odd'\ndevice = 'd'\n"
      "[[between]]\nregions = ['b', 'a']\nlink = 'wan'\n[[between]]\ndevices = [5, 0]\nlink = 'wire'\n"
      "[[between]]\nnodes = ['twin', 'twin']\nlink = 'in'\n[[between]]\nregions = ['c', 'c']\nlink = 'wan'\n");
  CHECK(cluster.size == 9);
  const auto name = [&](std::uint32_t a, std::uint32_t b) {
    const std::uint32_t found = cluster.link(a, b);
    return found == Cluster::kNone ? std::string() : cluster.links[found].name;
  };
  CHECK(name(0, 1) == "in");
  CHECK(name(1, 2) == "net");
  CHECK(name(1, 4) == "wan");
  CHECK(name(0, 5) == "wire");
  CHECK(name(4, 5).empty());
  CHECK(name(7, 6) == "in");
  // Within a region too its link comes before the network.
  CHECK(name(6, 8) == "wan");
  CHECK(name(5, 6).empty());
}

TEST_CASE("layers of a split: the front with the first stage, the end with the last") {
  const Model model = shipped("llama3_8b");
  const std::vector<LayerRange> ranges = ranges_of(model, {10, 10, 12});
  CHECK(ranges[0].first == 0);
  CHECK(ranges[0].end == 11);
  CHECK(ranges[1].end == 21);
  CHECK(ranges[2].end == 34);
}

TEST_CASE("quantities: units of their own, and none other") {
  const auto read = [](const std::string& text, Quantity quantity) {
    Sources sources;
    Diagnostics sink;
    const std::optional<TomlValue> root = parse_toml(sources, sources.add("q", "q = '" + text + "'"), sink);
    REQUIRE(root);
    return read_quantity(root->members[0].value, quantity, "`q`", sink);
  };
  CHECK(*read("450 GB/s", Quantity::BytesPerSecond) == 450e9);
  CHECK(*read("100 Gbit/s", Quantity::BytesPerSecond) == 12.5e9);
  CHECK(*read("1.5 ms", Quantity::Time) == doctest::Approx(1.5e-3));
  CHECK(*read("2GiB", Quantity::Bytes) == 2147483648.0);
  CHECK(*read("0 us", Quantity::Time) == 0);
  CHECK_FALSE(read("450", Quantity::BytesPerSecond));
  CHECK_FALSE(read("450 GB", Quantity::BytesPerSecond));
  CHECK_FALSE(read("-1 us", Quantity::Time));
  CHECK_FALSE(read("1e9 s", Quantity::Time));
  CHECK_FALSE(read("GB/s", Quantity::BytesPerSecond));
  CHECK_FALSE(read("nan us", Quantity::Time));
  CHECK_FALSE(read("1 2 us", Quantity::Time));
}

}  // namespace stave
