#include "kernels/table.h"

namespace stave::fake {

std::span<const Kernel> kernels() {
  static const std::vector<Kernel> all = {};
  return all;
}

}  // namespace stave::fake
