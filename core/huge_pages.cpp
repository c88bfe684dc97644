// The memory of large arrays in huge pages, for the whole program this is linked into: a walk over the devices of a table
// touches some twenty arrays in as many places as there are devices, far more pages of 4 KiB than a processor keeps the
// addresses of. Where the kernel has no huge pages to give, nothing changes. And what one step gives back is kept for the
// next: the kernel would clear each page anew, which takes as long as all that is then written to it.
#include <malloc.h>
#include <sys/mman.h>

#include <cstdlib>
#include <new>

namespace {

constexpr std::size_t kPage = std::size_t(2) << 20;
/// At most a third of an array is in a page that is not full.
constexpr std::size_t kLarge = 2 * kPage;

void* allocate(std::size_t bytes) {
  if (bytes < kLarge) return std::malloc(bytes > 0 ? bytes : 1);
  const std::size_t whole = (bytes + kPage - 1) / kPage * kPage;
  void* const memory = whole < bytes ? nullptr : std::aligned_alloc(kPage, whole);
  if (memory != nullptr) madvise(memory, whole, MADV_HUGEPAGE);
  return memory;
}

/// No array is mapped by itself, and nothing goes back to the kernel before the end.
[[maybe_unused]] const bool kept = mallopt(M_MMAP_MAX, 0) == 1 && mallopt(M_TRIM_THRESHOLD, -1) == 1;

}  // namespace

void* operator new(std::size_t bytes) {
  for (;;) {
    if (void* const memory = allocate(bytes)) return memory;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
