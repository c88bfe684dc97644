// LanguageStage: a stage of the language model, wherever it computes: it can say what its parts lost.
#pragma once

#include <vector>

#include "executor/stage/stage.h"

namespace stave {

class LanguageStage : public Stage {
 public:
  /// Adds the loss of every part that ended here to sums[microbatch * slices + slice]. Once the step has ended.
  virtual void add_losses(std::vector<double>& sums) const = 0;
};

}  // namespace stave
