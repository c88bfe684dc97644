/* Libraries that are no stage, for the test of the loader, and two whose backward fails, one of which ends before it; which
   one is said by BROKEN. */
#include <stddef.h>

#include "executor/stage/stave_stage.h"

#if BROKEN == 1
int another_symbol(void);
int another_symbol(void) { return 0; }
#elif BROKEN >= 4
#define stave_stage stage_of_example
#include "examples/stage/mlp.c"
#undef stave_stage
static int refuse(const struct stave_stage_call* call, const void* gradient, void* output) {
  (void)call, (void)gradient, (void)output;
  return 7;
}
const struct stave_stage_table* stave_stage(void);
const struct stave_stage_table* stave_stage(void) {
  static struct stave_stage_table table;
  table = *stage_of_example();
  table.backward = refuse;
  if (BROKEN == 5) table.size = offsetof(struct stave_stage_table, backward);
  return &table;
}
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
