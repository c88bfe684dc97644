#include "scheduler/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "compiler/nearest.h"
#include "scheduler/cluster.h"
#include "scheduler/layer_work.h"
#include "scheduler/toml.h"

namespace stave {

namespace {

constexpr std::uint32_t kMostSize = 1u << 30;

class Reading {
 public:
  Reading(const TomlValue& root, Diagnostics& sink) : root_(root, sink, "a model"), sink_(sink) {}

  std::optional<Model> all() {
    const std::size_t before = sink_.errors();
    model_.span = root_.table().span;
    model_.name = root_.text("name").value_or("");
    root_.find("source");
    model_.hidden = root_.whole("hidden", 1, kMostSize).value_or(0);
    model_.sequence = root_.whole("sequence", 1, kMostSize).value_or(1);
    model_.microbatch = root_.whole("microbatch", 1, kMostSize).value_or(1);
    model_.causal = root_.truth("causal").value_or(false);
    model_.precision = precision(root_, "precision").value_or(3);
    if (const TomlMember* const found = root_.find("precision")) model_.precision_span = found->span;
    model_.weight_bytes = kPrecisions[model_.precision].bytes;
    recomputation();
    part("message", [&](TomlReader& reader) { message(reader); });
    part("optimizer", [&](TomlReader& reader) { optimizer(reader); });
    part("parallel", [&](TomlReader& reader) { parallel(reader); });
    for (const TomlValue* each : root_.tables("layer")) layers(*each);
    // Layers with times of their own need none.
    model_.hidden = std::max<std::uint64_t>(model_.hidden, 1);
    if (model_.layers.empty() && sink_.errors() == before)
      refuse(sink_, "toml-missing", root_.table().span, "a model needs layers", "", {"as `[[layer]]` with a `kind`"});
    const bool sizes = std::any_of(model_.layers.begin(), model_.layers.end(),
                                   [](const Layer& layer) { return layer.kind != LayerKind::Timed; });
    if (sizes)
      for (const char* key : {"hidden", "sequence"}) root_.need(key);
    root_.refuse_others();
    if (sink_.errors() == before) ranks();
    if (sink_.errors() == before) order();
    if (sink_.errors() == before) fits();
    if (sink_.errors() != before) return std::nullopt;
    return std::move(model_);
  }

 private:
  template <class Read>
  void part(const char* key, const Read& read) {
    const TomlMember* const found = root_.find(key);
    if (found == nullptr) return;
    if (found->value.kind != TomlValue::Kind::Table)
      return refuse(sink_, "toml-type", found->value.span,
                    fmt::format("`{}` takes a table, and this is {}", key, kind_words(found->value.kind)));
    TomlReader reader(found->value, sink_, fmt::format("`{}`", key));
    read(reader);
    reader.refuse_others();
  }

  /// The index of a name in `names`; none, and said, if it is none of them.
  std::optional<std::size_t> one_of(TomlReader& reader, std::string_view key, const std::vector<std::string_view>& names) {
    const std::optional<std::string> name = reader.text(key);
    if (!name) return std::nullopt;
    const auto found = std::find(names.begin(), names.end(), *name);
    if (found != names.end()) return found - names.begin();
    refuse(sink_, "toml-name", reader.find(key)->value.span,
           fmt::format("`{}` is one of {}, and not `{}`", key, fmt::join(names, ", "), *name));
    return std::nullopt;
  }

  std::optional<std::size_t> precision(TomlReader& reader, std::string_view key) {
    std::vector<std::string_view> names;
    for (const PrecisionInfo& each : kPrecisions) names.push_back(each.name);
    return one_of(reader, key, names);
  }

  void recomputation() {
    model_.recomputation =
        static_cast<Recomputation>(one_of(root_, "recompute", {"none", "selective", "full"}).value_or(0));
  }

  void message(TomlReader& reader) {
    const std::size_t as = precision(reader, "precision").value_or(model_.precision);
    model_.message_bytes_per_number = kPrecisions[as].bytes;
    model_.message_ratio = reader.number("ratio", 1e-6, 1).value_or(1);
    model_.message_seconds = read_quantity(reader, "time", Quantity::Time).value_or(0);
    has_message_ = true;
  }

  void optimizer(TomlReader& reader) {
    model_.weight_bytes = reader.number("weight_bytes", 0, 64).value_or(model_.weight_bytes);
    model_.gradient_bytes = reader.number("gradient_bytes", 0, 64).value_or(model_.gradient_bytes);
    model_.optimizer_bytes = reader.number("state_bytes", 0, 256).value_or(model_.optimizer_bytes);
  }

  void parallel(TomlReader& reader) {
    Parallel& into = model_.parallel;
    into.tensor = reader.whole("tensor", 1, 4096).value_or(1);
    into.sequence = reader.truth("sequence").value_or(false);
    into.ulysses = reader.whole("ulysses", 1, 4096).value_or(1);
    into.ring = reader.whole("ring", 1, 4096).value_or(1);
    for (const char* key : {"tensor", "ulysses"})
      if (const TomlMember* const found = reader.find(key)) heads_span_ = found->value.span;
    if (const TomlMember* const found = reader.find("expert")) expert_span_ = found->value.span;
    for (const TomlValue* each : reader.tables("degree")) degree(*each, into);
    into.expert = reader.whole("expert", 1, 4096).value_or(1);
    into.data = reader.whole("data", 1, 65536).value_or(1);
    into.zero = reader.truth("zero").value_or(false);
    if (std::uint64_t(into.tensor) * into.ulysses * into.ring > kMaxAccelerators ||
        std::uint64_t(into.tensor) * into.ulysses * into.ring * into.expert > kMaxAccelerators) {
      refuse(sink_, "toml-value", reader.table().span,
             fmt::format("one stage is spread over more than {} accelerators", kMaxAccelerators));
      into = {};
    }
  }

  void degree(const TomlValue& table, Parallel& into) {
    TomlReader reader(table, sink_, "a degree");
    const TomlMember* const up_to = reader.need("up_to");
    Degree row;
    row.span = table.span;
    row.up_to = reader.whole("up_to", 1, kMostSize).value_or(0);
    row.ulysses = reader.whole("ulysses", 1, 4096).value_or(1);
    row.ring = reader.whole("ring", 1, 4096).value_or(1);
    reader.refuse_others();
    if (row.up_to == 0) return;
    if (!into.degrees.empty() && row.up_to <= into.degrees.back().up_to)
      return refuse(sink_, "toml-value", up_to->value.span,
                    fmt::format("the degrees stand by rising length, and {} comes after {}", row.up_to,
                                into.degrees.back().up_to));
    if (into.context() % row.ranks() != 0)
      return refuse(sink_, "toml-value", row.span,
                    fmt::format("{} context ranks do not divide the {} of a stage", row.ranks(), into.context()));
    into.degrees.push_back(row);
  }

  /// Tensor ranks have whole heads, and ulysses ranks whole ones of those; expert ranks have whole experts.
  void ranks() {
    const std::uint32_t tensor = model_.parallel.tensor;
    const auto heads = [&](std::uint32_t ulysses, Span span) {
      for (const Layer& layer : model_.layers) {
        if (layer.kind != LayerKind::Block || layer.heads % (std::uint64_t(ulysses) * tensor) == 0) continue;
        std::string what = fmt::format("{} tensor ranks", tensor);
        if (ulysses > 1) what = fmt::format("{} ulysses ranks{}", ulysses, tensor > 1 ? " of " + what : "");
        return refuse(sink_, "toml-value", span,
                      fmt::format("the {} heads of `{}` do not divide over {}", layer.heads, layer.name, what));
      }
    };
    heads(model_.parallel.ulysses, heads_span_);
    for (const Degree& each : model_.parallel.degrees)
      if (each.ulysses > 1) heads(each.ulysses, each.span);
    for (const Layer& layer : model_.layers)
      if (layer.experts % model_.parallel.expert != 0)
        return refuse(sink_, "toml-value", expert_span_,
                      fmt::format("the {} experts of `{}` do not divide over {} ranks", layer.experts, layer.name,
                                  model_.parallel.expert));
  }

  void layers(const TomlValue& table) {
    TomlReader reader(table, sink_, "a layer");
    reader.need("kind");
    const std::optional<std::size_t> kind = one_of(reader, "kind", {kLayerKinds.begin(), kLayerKinds.end()});
    const std::uint32_t count = reader.whole("count", 1, kMaxLayers).value_or(1);
    if (!kind) return;
    Layer layer;
    layer.kind = static_cast<LayerKind>(*kind);
    layer.span = table.span;
    layer.name = reader.text("name").value_or(std::string(kLayerKinds[*kind]));
    switch (layer.kind) {
      case LayerKind::Embedding:
        layer.vocabulary = size(reader, "vocabulary", true);
        layer.positions = size(reader, "positions");
        layer.dropout = reader.truth("dropout").value_or(false);
        break;
      case LayerKind::Patches:
        layer.patch = size(reader, "patch", true);
        layer.channels = size(reader, "channels", true);
        layer.positions = size(reader, "positions");
        layer.class_token = reader.truth("class_token").value_or(false);
        layer.bias = reader.truth("bias").value_or(false);
        break;
      case LayerKind::Block: block(reader, layer); break;
      case LayerKind::Head:
        layer.vocabulary = size(reader, "vocabulary", true);
        layer.tied = reader.truth("tied").value_or(false);
        layer.bias = reader.truth("bias").value_or(false);
        layer.class_token = reader.truth("class_token").value_or(false);
        norms(reader, layer);
        break;
      case LayerKind::Timed: timed(reader, layer); break;
    }
    reader.refuse_others();
    if (model_.layers.size() + count > kMaxLayers)
      return refuse(sink_, "toml-value", table.span, fmt::format("a model has at most {} layers", kMaxLayers));
    model_.layers.insert(model_.layers.end(), count, layer);
  }

  std::uint64_t size(TomlReader& reader, std::string_view key, bool needed = false) {
    if (needed) reader.need(key);
    return reader.whole(key, 1, kMostSize).value_or(0);
  }

  void norms(TomlReader& reader, Layer& layer) {
    const std::size_t norm = one_of(reader, "norm", {"layer", "rms", "none"}).value_or(0);
    layer.norm_bias = norm == 0;
    layer.norm = norm != 2;
  }

  void block(TomlReader& reader, Layer& layer) {
    layer.heads = size(reader, "heads", true);
    layer.window = size(reader, "window");
    layer.gated = reader.truth("gated").value_or(false);
    layer.bias = reader.truth("bias").value_or(false);
    layer.dropout = reader.truth("dropout").value_or(false);
    layer.flash = reader.truth("flash").value_or(false);
    norms(reader, layer);
    attention(reader, layer);
    layer.ffn = size(reader, "ffn");
    layer.experts = size(reader, "experts");
    if (layer.experts > 0) {
      layer.active = size(reader, "active", true);
      layer.expert_ffn = size(reader, "expert_ffn", true);
      layer.shared = size(reader, "shared");
      layer.router_bias = reader.truth("router_bias").value_or(false);
      if (layer.active > layer.experts)
        refuse(sink_, "toml-value", reader.find("active")->value.span,
               fmt::format("a token takes {} of {} experts", layer.active, layer.experts));
      if (const TomlMember* const ffn = reader.find("ffn"))
        refuse(sink_, "toml-value", ffn->span, "a layer has `ffn` or `experts`, not both");
    } else if (layer.ffn == 0 && reader.find("ffn") == nullptr) {
      reader.need("ffn");
    }
  }

  void attention(TomlReader& reader, Layer& layer) {
    const TomlMember* const latent = reader.find("latent");
    if (latent != nullptr && latent->value.kind == TomlValue::Kind::Table) {
      TomlReader sizes(latent->value, sink_, "`latent`");
      layer.query_latent = size(sizes, "query");
      layer.kv_latent = size(sizes, "key_value", true);
      layer.rope_size = size(sizes, "rope", true);
      layer.nope_size = size(sizes, "nope", true);
      layer.value_size = size(sizes, "value", true);
      sizes.refuse_others();
      layer.kv_heads = layer.heads;
      layer.head_size = layer.rope_size + layer.nope_size;
      return;
    }
    if (latent != nullptr)
      refuse(sink_, "toml-type", latent->value.span, "`latent` takes a table, as { key_value = 512, ... }");
    layer.kv_heads = size(reader, "kv_heads");
    layer.head_size = size(reader, "head_size");
    if (layer.heads == 0) return;
    if (layer.kv_heads == 0) layer.kv_heads = layer.heads;
    if (layer.heads % layer.kv_heads != 0)
      refuse(sink_, "toml-value", reader.find("kv_heads")->value.span,
             fmt::format("{} heads do not share {} heads of keys and values", layer.heads, layer.kv_heads));
    if (layer.head_size == 0) {
      // If there is none, or a wrong one, that is said.
      if (model_.hidden % layer.heads != 0)
        refuse(sink_, "toml-value", reader.find("heads")->value.span,
               fmt::format("the hidden size {} does not divide over {} heads; `head_size` says it otherwise", model_.hidden,
                           layer.heads));
      layer.head_size = model_.hidden / layer.heads;
    }
    layer.value_size = layer.head_size;
  }

  void timed(TomlReader& reader, Layer& layer) {
    layer.end = static_cast<Layer::End>(one_of(reader, "end", {"none", "front", "back"}).value_or(0));
    layer.forward_seconds = read_quantity(reader, "F", Quantity::Time).value_or(0);
    layer.input_seconds = read_quantity(reader, "I", Quantity::Time).value_or(0);
    layer.weight_seconds = read_quantity(reader, "W", Quantity::Time).value_or(0);
    layer.activation_bytes = read_quantity(reader, "activation", Quantity::Bytes).value_or(0);
    layer.weight_bytes = read_quantity(reader, "weights", Quantity::Bytes).value_or(0);
  }

  /// Embeddings and patches come first, heads last; a layer with times of its own is one that is shared out.
  void order() {
    for (std::size_t i = model_.front(); i < model_.layers.size() - model_.back(); ++i) {
      const Layer& layer = model_.layers[i];
      if (layer.kind == LayerKind::Block || (layer.kind == LayerKind::Timed && layer.end == Layer::End::None)) continue;
      refuse(sink_, "toml-value", layer.span,
             fmt::format("layer {}, `{}`, stands between others: an embedding comes first, and a head last", i, layer.name));
      return;
    }
    if (!has_message_) model_.message_bytes_per_number = kPrecisions[model_.precision].bytes;
  }

  /// Bytes of the whole model and of a microbatch through it, as if nothing were split.
  void fits() {
    double bytes = 0;
    for (const Layer& layer : model_.layers) {
      const LayerWork work = work_of(model_, layer);
      bytes += work.parameters * (model_.weight_bytes + model_.gradient_bytes + model_.optimizer_bytes);
      bytes += work.activation_bytes;
      if (bytes < 1e18) continue;
      return refuse(sink_, "toml-value", layer.span, "the sizes of the model overflow: more than 10^18 bytes with this layer");
    }
  }

  TomlReader root_;
  Diagnostics& sink_;
  Model model_;
  bool has_message_ = false;
  /// Of what shares heads, and experts.
  Span heads_span_;
  Span expert_span_;
};

bool is_front(const Layer& layer) {
  return layer.kind == LayerKind::Embedding || layer.kind == LayerKind::Patches || layer.end == Layer::End::Front;
}
bool is_back(const Layer& layer) { return layer.kind == LayerKind::Head || layer.end == Layer::End::Back; }

}  // namespace

std::size_t Model::front() const {
  std::size_t result = 0;
  while (result < layers.size() && is_front(layers[result])) ++result;
  return result;
}

std::size_t Model::back() const {
  std::size_t result = 0;
  while (result < layers.size() && is_back(layers[layers.size() - 1 - result])) ++result;
  return result;
}

std::optional<Model> read_model(const Sources& sources, SourceId source, Diagnostics& sink) {
  const std::optional<TomlValue> root = parse_toml(sources, source, sink);
  if (!root) return std::nullopt;
  return Reading(*root, sink).all();
}

}  // namespace stave
