// The files of schedules/std/, which schedules use by name, as part of the program. Their texts are put in by the build.
#pragma once

namespace stave {

inline constexpr const char* kTrainingName = "schedules/std/training.sched";
extern const char* const kTrainingText;

inline constexpr const char* kInferenceName = "schedules/std/inference.sched";
extern const char* const kInferenceText;

}  // namespace stave
