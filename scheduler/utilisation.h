// Utilisation: what share of the machine's peak a schedule puts to the model's own work.
#pragma once

#include <optional>

#include "compiler/schedule.h"
#include "core/table.h"
#include "core/ticks.h"

namespace stave {

/// Model FLOPs utilisation: the operations of the table's F, I and W over the makespan times the peak rates of all
/// devices (Chowdhery et al., PaLM, arXiv:2204.02311, appendix B). What is recomputed does not count, and a share of W that
/// is frozen neither. Attention's operations are those that the model says: of a causal one half (layer_work.h), where the paper
/// counts all.
///
/// Times are in microseconds, as a model's are. None without a model, or where its times were measured.
std::optional<double> model_utilisation(const Schedule& schedule, const Table& table, Ticks makespan,
                                        Ticks ticks_per_unit);

}  // namespace stave
