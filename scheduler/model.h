// Model: what a schedule trains: its layers, the sizes of its messages and of what it keeps, and how one stage is spread
// over several accelerators. Read from TOML; docs/models.md is its reference. What a layer takes is layer_work.h.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compiler/diagnostics.h"
#include "compiler/source.h"

namespace stave {

enum class LayerKind : std::uint8_t { Embedding, Patches, Block, Head, Timed };
/// As files write them.
inline constexpr std::array<std::string_view, 5> kLayerKinds = {"embedding", "patches", "transformer", "head", "timed"};

/// Which keys it has depends on its kind; what is not its own is 0.
struct Layer {
  LayerKind kind = LayerKind::Block;
  std::string name;
  Span span;

  /// Embedding, Head: rows of the table. Patches, Head of a vision model: the same as `classes`.
  std::uint64_t vocabulary = 0;
  /// Embedding, Patches: learned positions; 0 without.
  std::uint64_t positions = 0;
  /// Patches: side in pixels, and channels; with a vector for the class.
  std::uint64_t patch = 0;
  std::uint64_t channels = 0;
  bool class_token = false;
  /// Head: its table is the embedding's.
  bool tied = false;
  /// Head, with a normalization before it.
  bool norm = true;

  std::uint64_t heads = 0;
  std::uint64_t kv_heads = 0;
  std::uint64_t head_size = 0;
  /// Tokens that one sees at most; 0 for all.
  std::uint64_t window = 0;
  std::uint64_t ffn = 0;
  bool gated = false;
  /// Projections and products have a bias.
  bool bias = false;
  /// Normalizations have a bias too (layer norm, not RMS norm).
  bool norm_bias = false;
  bool dropout = false;
  /// The scores of attention are never stored.
  bool flash = false;

  /// Multi-head latent attention: sizes of the two latents and of the parts of a head; 0 without.
  std::uint64_t query_latent = 0;
  std::uint64_t kv_latent = 0;
  std::uint64_t rope_size = 0;
  std::uint64_t nope_size = 0;
  std::uint64_t value_size = 0;

  /// Mixture of experts: how many, how many a token takes, how many it always takes, and their inner size; 0 without.
  std::uint64_t experts = 0;
  std::uint64_t active = 0;
  std::uint64_t shared = 0;
  std::uint64_t expert_ffn = 0;
  bool router_bias = false;

  /// Timed: where it stands, and, of a microbatch on any accelerator, seconds and bytes.
  enum class End : std::uint8_t { None, Front, Back };
  End end = End::None;
  double forward_seconds = 0;
  double input_seconds = 0;
  double weight_seconds = 0;
  double activation_bytes = 0;
  double weight_bytes = 0;
};

enum class Recomputation : std::uint8_t { None, Selective, Full };

/// How many context ranks share a sequence of at most so many tokens.
struct Degree {
  std::uint32_t up_to = UINT32_MAX;
  std::uint32_t ulysses = 1;
  std::uint32_t ring = 1;
  Span span;

  std::uint32_t ranks() const { return ulysses * ring; }
};

/// How one stage is spread: `width` accelerators for each replica of the data.
struct Parallel {
  std::uint32_t tensor = 1;
  /// Norms and dropout are split along the sequence over the tensor ranks.
  bool sequence = false;
  /// Context: all-to-all over the heads, and rings over keys and values.
  std::uint32_t ulysses = 1;
  std::uint32_t ring = 1;
  /// Of shorter sequences, by rising length; the ranks that one does not take stand idle.
  std::vector<Degree> degrees;
  /// Ranks that share the experts, each with microbatches of its own.
  std::uint32_t expert = 1;
  /// Copies of the whole pipeline.
  std::uint32_t data = 1;
  /// The optimizer's state is spread over the copies.
  bool zero = false;

  std::uint32_t context() const { return ulysses * ring; }
  std::uint32_t width() const { return tensor * context() * expert; }
  /// That of the longest sequences: all ranks.
  Degree all() const { return {UINT32_MAX, ulysses, ring, {}}; }
};

struct Model {
  std::string name;
  std::uint64_t hidden = 0;
  /// Tokens of a sequence, and sequences of a microbatch.
  std::uint64_t sequence = 0;
  std::uint64_t microbatch = 1;
  /// Index into kPrecisions: of products and of activations.
  std::size_t precision = 3;
  /// Tokens see only those before them, and the products beyond are skipped.
  bool causal = false;
  Recomputation recomputation = Recomputation::None;

  /// Messages: bytes of a number, what compression leaves of them, and the time it takes at each end together.
  double message_bytes_per_number = 2;
  double message_ratio = 1;
  double message_seconds = 0;

  /// Bytes a parameter.
  double weight_bytes = 2;
  double gradient_bytes = 4;
  double optimizer_bytes = 12;

  Parallel parallel;
  std::vector<Layer> layers;
  Span precision_span;
  Span span;

  /// Layers of the front (embedding, patches) and of the end (head); the others are shared out over the stages.
  std::size_t front() const;
  std::size_t back() const;
  std::size_t blocks() const { return layers.size() - front() - back(); }
};

/// Most layers of a model.
inline constexpr std::size_t kMaxLayers = 1u << 16;

/// Errors: none, with diagnostics: no TOML, keys of other layers or of none, sizes that are missing or do not divide each
/// other, no layers, or sizes that overflow a count of bytes.
std::optional<Model> read_model(const Sources& sources, SourceId source, Diagnostics& sink);

}  // namespace stave
