#include "executor/stage/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <utility>
#include <vector>

#include "executor/stage/stave_stage.h"

namespace stave {

namespace {

/// Of what one stage says that it needs.
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 40;
/// Of a message, in an error.
constexpr std::size_t kMostMessage = 1000;

// A loaded library with its table.
class Library {
 public:
  Library(std::string path, void* handle, const stave_stage_table& table) : path_(std::move(path)), handle_(handle) {
    // One that was compiled with an earlier header ends earlier.
    std::memcpy(&table_, &table, std::min<std::size_t>(table.size, sizeof(table_)));
  }
  ~Library() { dlclose(handle_); }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const stave_stage_table& table() const { return table_; }

  /// What is said of a call that returned `code`.
  std::string failure(const char* call, int code) const {
    std::string result = std::string(call) + " of `" + path_ + "` failed with code " + std::to_string(code);
    const char* const text = table_.message == nullptr ? nullptr : table_.message();
    if (text == nullptr || *text == 0) return result;
    return result + ": " + std::string(text, strnlen(text, kMostMessage));
  }
  void check(const char* call, int code) const {
    if (code != 0) throw std::runtime_error(failure(call, code));
  }

 private:
  std::string path_;
  void* handle_;
  stave_stage_table table_ = {};
};

class PluginStage : public Stage {
 public:
  PluginStage(const Library& library, const stave_stage_shape& shape, const stave_stage_sizes& sizes,
              std::uint32_t versions, StageHomes& homes, DeviceId device)
      : library_(library),
        stage_(shape.stage),
        sizes_(sizes),
        memory_(homes.memory(device)),
        stream_(homes.stream(device)),
        gradient_(memory_, weight_bytes()),
        state_(memory_, sizes.state_bytes),
        loss_(memory_, sizeof(double)) {
    for (std::uint32_t v = 0; v < versions; ++v) weights_.emplace_back(memory_, weight_bytes());
    const stave_stage_memory memory = memory_of(0);
    library.check("create", library.table().create(&shape, &memory, &self_));
  }

  ~PluginStage() override {
    if (library_.table().destroy != nullptr) library_.table().destroy(self_);
  }

  void begin_step(std::uint64_t step) override {
    step_ = step;
    memory_.clear(loss_.data(), sizeof(double));
    clear();
  }

  void forward(const Part& part, const std::byte* input, std::byte* output) override {
    const stave_stage_call call = call_of(part);
    library_.check("forward", library_.table().forward(&call, input, output));
  }

  void recompute(const Part& part) override {
    const stave_stage_call call = call_of(part);
    library_.check("recompute", library_.table().recompute(&call));
  }

  void input_gradient(const Part& part, const std::byte* gradient, std::byte* output) override {
    const stave_stage_call call = call_of(part);
    library_.check("input_gradient", library_.table().input_gradient(&call, gradient, output));
  }

  void weight_gradient(const Part& part) override {
    begin_update();
    const stave_stage_call call = call_of(part);
    library_.check("weight_gradient", library_.table().weight_gradient(&call));
  }

  void backward(const Part& part, const std::byte* gradient, std::byte* output) override {
    if (library_.table().backward == nullptr) return Stage::backward(part, gradient, output);
    begin_update();
    const stave_stage_call call = call_of(part);
    library_.check("backward", library_.table().backward(&call, gradient, output));
  }

  void optimizer_step(std::uint32_t from, std::uint32_t to) override {
    begin_update();
    stave_stage_call call = {};
    call.memory = memory_of(from);
    call.self = self_;
    call.step = step_;
    call.stream = stream_;
    library_.check("optimizer", library_.table().optimizer(&call, floats(weights_[to])));
    used_ = true;
  }

  void settle(std::uint32_t newest) override { std::swap(weights_[0], weights_[newest]); }

  std::span<std::byte> weights(std::uint32_t version) override {
    return {weights_[version].data(), weight_bytes()};
  }

  GradientView gradients() override {
    begin_update();
    return {Element::Float32, gradient_.data(), sizes_.parameters};
  }

  std::vector<ParameterView> parameters() const override {
    return {{"stage" + std::to_string(stage_), Element::Float32, weights_[0].data(), gradient_.data(), sizes_.parameters}};
  }

  std::vector<std::span<std::byte>> state() override { return {weights(0), {state_.data(), sizes_.state_bytes}}; }

  /// Where the step's loss is, of the home's memory.
  const std::byte* loss() const { return loss_.data(); }

 private:
  static float* floats(const MemoryBlock& block) { return reinterpret_cast<float*>(block.data()); }
  std::size_t weight_bytes() const { return sizes_.parameters * sizeof(float); }
  stave_stage_memory memory_of(std::uint32_t version) {
    return {floats(weights_[version]), floats(gradient_), state_.data(), reinterpret_cast<double*>(loss_.data())};
  }

  // Valid until the next call.
  stave_stage_call call_of(const Part& part) {
    stashes_.assign(part.stashes.begin(), part.stashes.end());
    return {memory_of(part.weights), self_, step_, part.microbatch, part.slice, part.begins, part.ends,
            part.recomputed, stashes_.data(), stream_};
  }

  void clear() {
    memory_.clear(gradient_.data(), weight_bytes());
    used_ = false;
  }

  // Gradients that an update has used are not used again.
  void begin_update() {
    if (used_) clear();
  }

  const Library& library_;
  std::uint32_t stage_;
  const stave_stage_sizes sizes_;
  Memory& memory_;
  void* stream_;
  // By version.
  std::vector<MemoryBlock> weights_;
  MemoryBlock gradient_;
  MemoryBlock state_;
  MemoryBlock loss_;
  void* self_ = nullptr;
  std::vector<void*> stashes_;
  bool used_ = false;
  std::uint64_t step_ = 0;
};

class PluginWorkload : public Workload {
 public:
  PluginWorkload(std::unique_ptr<Library> library, std::string options, std::unique_ptr<StageHomes> homes)
      : library_(std::move(library)), options_(std::move(options)), homes_(std::move(homes)) {}

  Result<void> configure(const Partition& partition) override {
    if (!partition.recomputed.empty() && library_->table().recompute == nullptr)
      return Failure{"the schedule recomputes, and the stage library has no function for it"};
    if (!(partition == partition_)) made_.clear();
    partition_ = partition;
    sizes_.clear();
    for (std::uint32_t s = 0; s < partition.stages; ++s) {
      const stave_stage_shape shape = shape_of(s);
      stave_stage_sizes sizes = {};
      if (const int code = library_->table().sizes(&shape, &sizes); code != 0)
        return Failure{library_->failure("sizes", code)};
      if (sizes.parameters > kMostBytes / sizeof(float) ||
          std::max({sizes.value_bytes, sizes.stash_bytes, sizes.state_bytes}) > kMostBytes)
        return Failure{"stage " + std::to_string(s) + " of the stage library needs more than 2^40 bytes for one thing"};
      if (s > 0 && sizes.value_bytes != sizes_[0].value_bytes)
        return Failure{"stage " + std::to_string(s) + " of the stage library hands on " +
                       std::to_string(sizes.value_bytes) + " bytes, stage 0 " + std::to_string(sizes_[0].value_bytes)};
      sizes_.push_back(sizes);
    }
    return {};
  }

  void create() override {
    if (!made_.empty()) return;
    std::vector<std::vector<std::unique_ptr<PluginStage>>> made(partition_.stages);
    for (std::uint32_t s = 0; s < partition_.stages; ++s)
      for (DeviceId d : partition_.devices[StageId(s)]) {
        made[s].push_back(nullptr);
        if (!partition_.is_here(d)) continue;
        homes_->enter(d);
        made[s].back() = std::make_unique<PluginStage>(*library_, shape_of(s), sizes_[s],
                                                       partition_.kept_of(StageId(s)), *homes_, d);
        homes_->leave(d);
      }
    made_ = std::move(made);
  }

  Stage* stage(StageId s, std::uint32_t replica) override {
    return replica < made_[s.value].size() ? made_[s.value][replica].get() : nullptr;
  }
  std::size_t payload_bytes(std::string_view payload, std::uint32_t, std::uint32_t) const override {
    return payload_bytes(payload);
  }
  std::size_t payload_bytes(std::string_view payload) const override {
    if (payload == "activation" || payload == "gradient") return sizes_.empty() ? 0 : sizes_[0].value_bytes;
    if (payload != "weights") return 0;
    std::uint64_t most = 0;
    for (const stave_stage_sizes& each : sizes_) most = std::max(most, each.parameters);
    return most * sizeof(float);
  }
  std::size_t stash_bytes(StageId s) const override { return sizes_[s.value].stash_bytes; }
  std::uint64_t parameter_bytes() const override {
    std::uint64_t sum = 0;
    for (std::uint32_t s = 0; s < sizes_.size(); ++s) {
      const std::uint64_t weights = sizes_[s].parameters * sizeof(float);
      sum += partition_.replicas_here(StageId(s)) * (weights * (1 + partition_.kept_of(StageId(s))) + sizes_[s].state_bytes);
    }
    return sum;
  }
  double loss() const override {
    double sum = 0;
    for (const auto& replicas : made_)
      for (const std::unique_ptr<PluginStage>& stage : replicas) {
        double mine = 0;
        if (stage != nullptr) homes_->copy(&mine, stage->loss(), sizeof mine);
        sum += mine;
      }
    return sum;
  }
  bool is_on_host() const override { return homes_->where() == STAVE_STAGE_ON_HOST; }
  void copy(void* to, const void* from, std::size_t bytes) const override { homes_->copy(to, from, bytes); }

 private:
  stave_stage_shape shape_of(std::uint32_t s) const {
    return {s, partition_.stages, partition_.microbatches, partition_.slices,
            partition_.begins_some(StageId(s)), partition_.ends_some(StageId(s)), options_.c_str()};
  }

  // Before the stages, which call it when they go.
  std::unique_ptr<Library> library_;
  std::string options_;
  std::unique_ptr<StageHomes> homes_;
  Partition partition_;
  // By stage.
  std::vector<stave_stage_sizes> sizes_;
  // By stage and replica.
  std::vector<std::vector<std::unique_ptr<PluginStage>>> made_;
};

}  // namespace

Result<std::unique_ptr<Workload>> load_stage(const std::string& path, const std::string& options,
                                             std::unique_ptr<StageHomes> homes) {
  const std::string file = path.find('/') == std::string::npos ? "./" + path : path;
  void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* const why = dlerror();
    return Failure{"the stage library `" + path + "` cannot be loaded: " + (why == nullptr ? "no reason given" : why)};
  }
  const auto refused = [&](const std::string& why) {
    dlclose(handle);
    return Failure{"`" + path + "` is no stage library: " + why};
  };
  const auto function = reinterpret_cast<stave_stage_function>(dlsym(handle, STAVE_STAGE_SYMBOL));
  if (function == nullptr) return refused("it does not export `" STAVE_STAGE_SYMBOL "`");
  const stave_stage_table* const table = function();
  if (table == nullptr) return refused("`" STAVE_STAGE_SYMBOL "` gives no table");
  if (table->version != STAVE_STAGE_VERSION)
    return refused("it has version " + std::to_string(table->version) + " of the interface, and this program " +
                   std::to_string(STAVE_STAGE_VERSION));
  if (constexpr std::size_t kLeast = offsetof(stave_stage_table, backward); table->size < kLeast)
    return refused("its table has " + std::to_string(table->size) + " bytes, and must have " + std::to_string(kLeast));
  const std::pair<const char*, bool> needed[] = {{"sizes", table->sizes != nullptr},
                                                 {"create", table->create != nullptr},
                                                 {"forward", table->forward != nullptr},
                                                 {"input_gradient", table->input_gradient != nullptr},
                                                 {"weight_gradient", table->weight_gradient != nullptr},
                                                 {"optimizer", table->optimizer != nullptr}};
  for (const auto& [name, is_there] : needed)
    if (!is_there) return refused(std::string("its table has no `") + name + "`");
  auto library = std::make_unique<Library>(path, handle, *table);
  if (const std::uint32_t where = library->table().computes_on; where != homes->where()) {
    if (where > STAVE_STAGE_ON_CUDA)
      return Failure{"`" + path + "` computes on " + std::to_string(where) + ", which this program does not know"};
    return Failure{"`" + path + "` computes on " +
                   (where == STAVE_STAGE_ON_HOST ? "the host: run it with --backend cpu" : "GPUs: run it with --backend cuda")};
  }
  return std::unique_ptr<Workload>(std::make_unique<PluginWorkload>(std::move(library), options, std::move(homes)));
}

}  // namespace stave
