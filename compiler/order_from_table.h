// The order of the devices from the rows of a `table`.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/evaluate.h"
#include "compiler/expansion.h"
#include "compiler/schedule.h"

namespace stave {

/// Fills `orders`, one list a device, and notes the kinds that are run. Cost: some ns a cell. Errors: a diagnostic for
/// each wrong cell, up to one a row, and Stop at the end.
void order_from_table(Evaluator& evaluator, const Expansion& expansion, IdVector<DeviceId, DeviceOrder>& orders,
                 std::vector<bool>& run);

/// The cell of `device` that runs `op`.
std::optional<Origin> find_cell(const Expansion& expansion, std::uint32_t device, OpId op, std::uint32_t occurrence);

}  // namespace stave
