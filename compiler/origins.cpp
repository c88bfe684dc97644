#include "compiler/origins.h"

#include "compiler/needs.h"
#include "compiler/order_from_lists.h"
#include "compiler/order_from_table.h"

namespace stave {

namespace {

class ExpandedOrigins : public Origins {
 public:
  explicit ExpandedOrigins(std::shared_ptr<const Expansion> expansion) : expansion_(std::move(expansion)) {}

  Origin of(DeviceId device, OpId op, std::uint32_t occurrence) const override {
    const std::optional<Origin> found = expansion_->code->table != nullptr
                                            ? find_cell(*expansion_, device.value, op, occurrence)
                                            : find_origin(*expansion_, device.value, op, occurrence);
    return found.value_or(Origin{});
  }

  Span need(OpId op, OpId needed) const override {
    Diagnostics ignored;
    try {
      Evaluator evaluator(*expansion_->code, ignored);
      set_parameters(evaluator, expansion_->arguments);
      return find_need(evaluator, expansion_->world, op, needed);
    } catch (const Stop&) {
      return Span();
    }
  }

 private:
  std::shared_ptr<const Expansion> expansion_;
};

}  // namespace

std::shared_ptr<const Origins> make_origins(std::shared_ptr<const Expansion> expansion) {
  return std::make_shared<ExpandedOrigins>(std::move(expansion));
}

}  // namespace stave
