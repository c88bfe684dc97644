/* The example's stages as a library of GPUs, for the stand-in for CUDA, whose memory the host reaches: each call becomes a host
 * function on the stream, as kernels would be, and so is done in the order of the stream alone. */
#include <cuda_runtime_api.h>
#include <stdlib.h>
#include <string.h>

#define stave_stage stage_of_the_host
#include "examples/stage/mlp.c"
#undef stave_stage

enum what { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, OPTIMIZER };

struct job {
  enum what what;
  struct stave_stage_call call;
  void* stash;
  const void* from;
  void* to;
};

static void run(void* data) {
  struct job* job = data;
  const struct stave_stage_table* host = stage_of_the_host();
  job->call.stashes = &job->stash;
  switch (job->what) {
    case FORWARD: host->forward(&job->call, job->from, job->to); break;
    case INPUT_GRADIENT: host->input_gradient(&job->call, job->from, job->to); break;
    case WEIGHT_GRADIENT: host->weight_gradient(&job->call); break;
    case OPTIMIZER: host->optimizer(&job->call, job->to); break;
  }
  free(job);
}

static int enqueue(enum what what, const struct stave_stage_call* call, const void* from, void* to) {
  struct job* job = malloc(sizeof *job);
  if (call->stream == NULL) return fail("there is no stream");
  job->what = what;
  job->call = *call;
  job->stash = call->stashes == NULL ? NULL : call->stashes[0];
  job->from = from;
  job->to = to;
  return cudaLaunchHostFunc((cudaStream_t)call->stream, run, job) == cudaSuccess ? 0 : fail("cudaLaunchHostFunc");
}

static int enqueue_forward(const struct stave_stage_call* call, const void* input, void* output) {
  return enqueue(FORWARD, call, input, output);
}
static int enqueue_input_gradient(const struct stave_stage_call* call, const void* gradient, void* output) {
  return enqueue(INPUT_GRADIENT, call, gradient, output);
}
static int enqueue_weight_gradient(const struct stave_stage_call* call) { return enqueue(WEIGHT_GRADIENT, call, NULL, NULL); }
static int enqueue_optimizer(const struct stave_stage_call* call, float* to) { return enqueue(OPTIMIZER, call, NULL, to); }

const struct stave_stage_table* stave_stage(void) {
  static struct stave_stage_table table;
  table = *stage_of_the_host();
  table.forward = enqueue_forward;
  table.input_gradient = enqueue_input_gradient;
  table.weight_gradient = enqueue_weight_gradient;
  table.optimizer = enqueue_optimizer;
  table.backward = NULL;
  table.recompute = NULL;
  table.computes_on = STAVE_STAGE_ON_CUDA;
  return &table;
}
