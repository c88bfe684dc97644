/* An example of a stage of your own (executor/stage/stave_stage.h, docs/stage.md): stages of a small network, y = x + tanh(w x),
 * that learns the mean of its first two inputs. Options: "width=N", 2 to 1024; without it 16.
 *
 *   cc -O2 -fPIC -shared -I STAVE/executor/stage mlp.c -o mlp.so -lm */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "stave_stage.h"

/* Rows of a microbatch. */
#define ROWS 4
#define RATE 0.05f

/* What is said of a call that failed: by thread, since stages call from several. */
static _Thread_local char message[120];

static int fail(const char* what) {
  snprintf(message, sizeof message, "%s", what);
  return 1;
}

/* 0, with a message, if the options are wrong. */
static uint64_t width_of(const char* options) {
  char* end;
  long width;
  if (*options == 0) return 16;
  if (strncmp(options, "width=", 6) != 0) return fail("the one option is width=N"), 0;
  width = strtol(options + 6, &end, 10);
  if (end == options + 6 || *end != 0 || width < 2 || width > 1024) return fail("the width is 2 to 1024"), 0;
  return (uint64_t)width;
}

/* In -1 to 1, the same for the same numbers: SplitMix64's finalizer. */
static float noise(uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  x ^= x >> 31;
  return (float)((double)(x >> 11) / 4503599627370496.0 - 1.0);
}

static float example(const struct stave_stage_call* call, uint64_t row, uint64_t column) {
  return noise((((call->step * 65536 + call->microbatch) * ROWS + row) << 12) + column + 1);
}

/* What lives on from call to call. */
struct mlp {
  uint64_t width;
  uint32_t microbatches;
};

static int sizes(const struct stave_stage_shape* shape, struct stave_stage_sizes* sizes) {
  const uint64_t width = width_of(shape->options);
  if (width == 0) return 1;
  if (shape->slices != 1) return fail("microbatches are not cut here");
  sizes->value_bytes = ROWS * width * sizeof(float);
  /* The input, and what tanh gave, which the input gradient turns into its own. */
  sizes->stash_bytes = 2 * sizes->value_bytes;
  sizes->parameters = width * width;
  sizes->state_bytes = 0;
  return 0;
}

static int create(const struct stave_stage_shape* shape, const struct stave_stage_memory* memory, void** self) {
  const uint64_t width = width_of(shape->options);
  struct mlp* mlp = malloc(sizeof *mlp);
  uint64_t i;
  if (mlp == NULL) return fail("no memory");
  mlp->width = width;
  mlp->microbatches = shape->microbatches;
  for (i = 0; i < width * width; ++i)
    memory->parameters[i] = 0.3f * noise(((uint64_t)shape->stage << 32) + i) / sqrtf((float)width);
  *self = mlp;
  return 0;
}

static void destroy(void* self) { free(self); }

static int forward(const struct stave_stage_call* call, const void* input, void* output) {
  const struct mlp* mlp = call->self;
  const uint64_t n = mlp->width;
  float* x = call->stashes[call->slice];
  float* t = x + ROWS * n;
  uint64_t r, i, j;
  for (r = 0; r < ROWS; ++r)
    for (i = 0; i < n; ++i) x[r * n + i] = call->begins ? example(call, r, i) : ((const float*)input)[r * n + i];
  for (r = 0; r < ROWS; ++r)
    for (i = 0; i < n; ++i) {
      float sum = 0;
      for (j = 0; j < n; ++j) sum += call->memory.parameters[i * n + j] * x[r * n + j];
      t[r * n + i] = tanhf(sum);
    }
  if (call->ends)
    for (r = 0; r < ROWS; ++r) {
      const float wanted = 0.5f * (example(call, r, 0) + example(call, r, 1));
      const float error = x[r * n] + t[r * n] - wanted;
      *call->memory.loss += (double)(error * error) / (ROWS * mlp->microbatches);
    }
  if (output != NULL)
    for (i = 0; i < ROWS * n; ++i) ((float*)output)[i] = x[i] + t[i];
  return 0;
}

static int input_gradient(const struct stave_stage_call* call, const void* gradient, void* output) {
  const struct mlp* mlp = call->self;
  const uint64_t n = mlp->width;
  const float* x = call->stashes[call->slice];
  float* t = (float*)call->stashes[call->slice] + ROWS * n;
  float dy[1024];
  uint64_t r, i, j;
  for (r = 0; r < ROWS; ++r) {
    for (i = 0; i < n; ++i) dy[i] = call->ends ? 0 : ((const float*)gradient)[r * n + i];
    if (call->ends) {
      const float wanted = 0.5f * (example(call, r, 0) + example(call, r, 1));
      dy[0] = 2 * (x[r * n] + t[r * n] - wanted) / (float)(ROWS * mlp->microbatches);
    }
    for (i = 0; i < n; ++i) t[r * n + i] = dy[i] * (1 - t[r * n + i] * t[r * n + i]);
    if (output == NULL) continue;
    for (j = 0; j < n; ++j) {
      float sum = dy[j];
      for (i = 0; i < n; ++i) sum += call->memory.parameters[i * n + j] * t[r * n + i];
      ((float*)output)[r * n + j] = sum;
    }
  }
  return 0;
}

static int weight_gradient(const struct stave_stage_call* call) {
  const struct mlp* mlp = call->self;
  const uint64_t n = mlp->width;
  const float* x = call->stashes[call->slice];
  const float* d = x + ROWS * n;
  uint64_t r, i, j;
  for (i = 0; i < n; ++i)
    for (j = 0; j < n; ++j) {
      float sum = 0;
      for (r = 0; r < ROWS; ++r) sum += d[r * n + i] * x[r * n + j];
      call->memory.gradients[i * n + j] += sum;
    }
  return 0;
}

/* Where it pays, one pass over the data; here one after the other. */
static int backward(const struct stave_stage_call* call, const void* gradient, void* output) {
  const int failed = input_gradient(call, gradient, output);
  return failed != 0 ? failed : weight_gradient(call);
}

static int optimizer(const struct stave_stage_call* call, float* to) {
  const struct mlp* mlp = call->self;
  uint64_t i;
  for (i = 0; i < mlp->width * mlp->width; ++i)
    to[i] = call->memory.parameters[i] - RATE * call->memory.gradients[i];
  return 0;
}

static const char* last_message(void) { return message; }

const struct stave_stage_table* stave_stage(void) {
  static const struct stave_stage_table table = {
      .version = STAVE_STAGE_VERSION,
      .size = sizeof table,
      .sizes = sizes,
      .create = create,
      .forward = forward,
      .input_gradient = input_gradient,
      .weight_gradient = weight_gradient,
      .optimizer = optimizer,
      .destroy = destroy,
      .message = last_message,
      .backward = backward,
  };
  return &table;
}
