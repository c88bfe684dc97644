// The files of schedules/std/, which every schedule reads, as part of the program. Their texts are put in by the build.
#pragma once

namespace stave {

inline constexpr const char* kTrainingName = "schedules/std/training.sched";
extern const char* const kTrainingText;

}  // namespace stave
