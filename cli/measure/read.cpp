#include "cli/measure/read.h"

#include <fmt/format.h>

#include <fstream>
#include <istream>

#include "compiler/source.h"

namespace stave {

bool looks_like_timeline(const std::string& path) {
  if (path == "-") return false;
  std::ifstream in(path, std::ios::binary);
  char first = 0;
  return in >> first && first == '{';
}

Result<RecordedTimeline> load_timeline(const std::string& path) {
  Sources sources;
  const Result<SourceId> source = read_source(sources, path);
  if (!source) return source.failure();
  Result<RecordedTimeline> timeline = read_timeline(sources[source.value()].text);
  if (!timeline) return Failure{fmt::format("`{}` cannot be used: {}", path, timeline.failure().message)};
  return timeline;
}

}  // namespace stave
