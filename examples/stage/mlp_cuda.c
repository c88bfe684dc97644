/* The stages of mlp.c behind the interface of a library for CUDA (docs/stage.md): all memory is the GPU's, and a call only
 * enqueues on its stream. To need no compiler for GPUs, and to give the same bits as mlp.c, each call brings what it reads
 * to the host, computes there in a host function, and takes it back; a stage of your own launches its kernels instead.
 *
 *   cc -O2 -fPIC -shared -I STAVE/executor/stage -I CUDA/include mlp_cuda.c -o mlp_cuda.so -L CUDA/lib64 -lcudart -lm */
#include <cuda_runtime_api.h>

#define stave_stage stave_stage_of_mlp
#include "mlp.c"
#undef stave_stage

enum what { FORWARD, INPUT_GRADIENT, WEIGHT_GRADIENT, OPTIMIZER };

struct gpu_stage;

/* A call that the stream has yet to come to. */
struct job {
  struct gpu_stage* stage;
  enum what what;
  struct stave_stage_call call;
  void* stash;
  int has_input;
  int has_output;
};

/* Buffers of the host, which the calls of the stage use one after another, as the stream takes them. */
struct gpu_stage {
  struct mlp* mlp;
  uint64_t weight_bytes;
  uint64_t value_bytes;
  /* Of one piece, which begins here. */
  double* loss;
  float* parameters;
  float* gradients;
  float* to;
  void* stash;
  void* input;
  void* output;
  /* As many as a step can have, since the host waits at its end; taken in turn. */
  struct job* jobs;
  uint64_t count;
  uint64_t next;
};

static int failed(cudaError_t status) { return status == cudaSuccess ? 0 : fail(cudaGetErrorString(status)); }

static void gpu_destroy(void* self) {
  struct gpu_stage* stage = self;
  if (stage == NULL) return;
  cudaFreeHost(stage->loss);
  free(stage->jobs);
  destroy(stage->mlp);
  free(stage);
}

static int prepare(struct gpu_stage* stage, const struct stave_stage_shape* shape,
                   const struct stave_stage_memory* memory) {
  struct stave_stage_sizes needed;
  struct stave_stage_memory mine = {0};
  void* made = NULL;
  char* buffer;
  if (sizes(shape, &needed) != 0) return 1;
  stage->weight_bytes = needed.parameters * sizeof(float);
  stage->value_bytes = needed.value_bytes;
  stage->count = 8 * (uint64_t)shape->microbatches + 8;
  stage->jobs = calloc(stage->count, sizeof *stage->jobs);
  if (stage->jobs == NULL) return fail("no memory");
  if (failed(cudaMallocHost((void**)&stage->loss, sizeof(double) + 3 * stage->weight_bytes + 2 * stage->value_bytes +
                                                      needed.stash_bytes)))
    return 1;
  buffer = (char*)(stage->loss + 1);
  stage->parameters = (float*)buffer;
  stage->gradients = (float*)(buffer += stage->weight_bytes);
  stage->to = (float*)(buffer += stage->weight_bytes);
  stage->input = buffer += stage->weight_bytes;
  stage->output = buffer += stage->value_bytes;
  stage->stash = buffer + stage->value_bytes;
  mine.parameters = stage->parameters;
  if (create(shape, &mine, &made) != 0) return 1;
  stage->mlp = made;
  return failed(cudaMemcpy(memory->parameters, stage->parameters, stage->weight_bytes, cudaMemcpyDefault));
}

static int gpu_create(const struct stave_stage_shape* shape, const struct stave_stage_memory* memory, void** self) {
  struct gpu_stage* stage = calloc(1, sizeof *stage);
  if (stage == NULL) return fail("no memory");
  if (prepare(stage, shape, memory) != 0) return gpu_destroy(stage), 1;
  *self = stage;
  return 0;
}

/* In the stream's turn, on a thread of CUDA's. */
static void run(void* data) {
  struct job* job = data;
  struct gpu_stage* stage = job->stage;
  struct stave_stage_call* call = &job->call;
  const void* input = job->has_input ? stage->input : NULL;
  void* output = job->has_output ? stage->output : NULL;
  switch (job->what) {
    case FORWARD: forward(call, input, output); break;
    case INPUT_GRADIENT: input_gradient(call, input, output); break;
    case WEIGHT_GRADIENT: weight_gradient(call); break;
    case OPTIMIZER: optimizer(call, stage->to); break;
  }
}

static int enqueue(const struct stave_stage_call* call, enum what what, const void* input, void* output, float* to) {
  struct gpu_stage* stage = call->self;
  struct job* job = &stage->jobs[stage->next++ % stage->count];
  cudaStream_t stream = call->stream;
  void* stash = call->stashes == NULL ? NULL : call->stashes[call->slice];
  /* What a call may change, on the GPU and on the host. */
  struct {
    void* there;
    void* here;
    uint64_t bytes;
  } const both[] = {{call->memory.gradients, stage->gradients, stage->weight_bytes},
                    {call->memory.loss, stage->loss, call->memory.loss == NULL ? 0 : sizeof(double)},
                    {stash, stage->stash, stash == NULL ? 0 : 2 * stage->value_bytes}};
  const int count = sizeof both / sizeof *both;
  int wrong, i;
  job->stage = stage;
  job->what = what;
  job->call = *call;
  job->call.self = stage->mlp;
  job->call.memory.parameters = stage->parameters;
  job->call.memory.gradients = stage->gradients;
  job->call.memory.loss = stage->loss;
  job->stash = stage->stash;
  job->call.slice = 0;
  job->call.stashes = &job->stash;
  job->has_input = input != NULL;
  job->has_output = output != NULL;
  wrong = failed(cudaMemcpyAsync(stage->parameters, call->memory.parameters, stage->weight_bytes, cudaMemcpyDefault, stream));
  if (!wrong && input != NULL)
    wrong = failed(cudaMemcpyAsync(stage->input, input, stage->value_bytes, cudaMemcpyDefault, stream));
  for (i = 0; i < count && !wrong; ++i)
    if (both[i].bytes != 0)
      wrong = failed(cudaMemcpyAsync(both[i].here, both[i].there, both[i].bytes, cudaMemcpyDefault, stream));
  if (!wrong) wrong = failed(cudaLaunchHostFunc(stream, run, job));
  for (i = 0; i < count && !wrong; ++i)
    if (both[i].bytes != 0)
      wrong = failed(cudaMemcpyAsync(both[i].there, both[i].here, both[i].bytes, cudaMemcpyDefault, stream));
  if (!wrong && output != NULL)
    wrong = failed(cudaMemcpyAsync(output, stage->output, stage->value_bytes, cudaMemcpyDefault, stream));
  if (!wrong && to != NULL)
    wrong = failed(cudaMemcpyAsync(to, stage->to, stage->weight_bytes, cudaMemcpyDefault, stream));
  return wrong;
}

static int gpu_forward(const struct stave_stage_call* call, const void* input, void* output) {
  return enqueue(call, FORWARD, input, output, NULL);
}
static int gpu_input_gradient(const struct stave_stage_call* call, const void* gradient, void* output) {
  return enqueue(call, INPUT_GRADIENT, gradient, output, NULL);
}
static int gpu_weight_gradient(const struct stave_stage_call* call) {
  return enqueue(call, WEIGHT_GRADIENT, NULL, NULL, NULL);
}
static int gpu_optimizer(const struct stave_stage_call* call, float* to) {
  return enqueue(call, OPTIMIZER, NULL, NULL, to);
}

const struct stave_stage_table* stave_stage(void) {
  static const struct stave_stage_table table = {
      .version = STAVE_STAGE_VERSION,
      .size = sizeof table,
      .sizes = sizes,
      .create = gpu_create,
      .forward = gpu_forward,
      .input_gradient = gpu_input_gradient,
      .weight_gradient = gpu_weight_gradient,
      .optimizer = gpu_optimizer,
      .destroy = gpu_destroy,
      .message = last_message,
      .computes_on = STAVE_STAGE_ON_CUDA,
  };
  return &table;
}
