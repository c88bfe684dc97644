/* Libraries that are no stage, for the test of the loader; which one is said by BROKEN. */
#include <stddef.h>

#include "executor/stage/stave_stage.h"

#if BROKEN == 1
int another_symbol(void);
int another_symbol(void) { return 0; }
#else
const struct stave_stage_table* stave_stage(void);
const struct stave_stage_table* stave_stage(void) {
#if BROKEN == 2
  static const struct stave_stage_table table = {.version = STAVE_STAGE_VERSION + 1, .size = sizeof table};
#else
  static const struct stave_stage_table table = {.version = STAVE_STAGE_VERSION, .size = sizeof table};
#endif
  return &table;
}
#endif
