// The interface of a stage of your own: a shared library that exports the function `stave_stage`, which gives a table of
// functions. In C, so that any compiler and version can make one. docs/stage.md explains it; examples/stage/mlp.c is one.
//
// The rules: the host owns all memory, and hands it over with every call; what must live on lies in it, so that checkpoints
// and replicas work. A call enqueues its work on the stream given, and neither waits for it nor allocates; on the CPU the
// stream is null and the work is done on return. Of a library that computes on GPUs all memory is that of a GPU, which is the
// current one of the thread, and the stream a cudaStream_t; what create() does is done on return. The same calls must give
// the same bits. 0 is success; of any other value `message` may say more, and the run ends with both. Buffers begin on 64
// bytes.
// Calls of one stage come from one thread at a time, those of different stages from several at once.
#ifndef STAVE_STAGE_H
#define STAVE_STAGE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define STAVE_STAGE_VERSION 1u

/* Which stage of which model. */
struct stave_stage_shape {
  uint32_t stage;
  uint32_t stages;
  uint32_t microbatches;
  /* Most slices of a microbatch. */
  uint32_t slices;
  /* Whether some microbatch begins, or ends, its way at this stage. */
  uint32_t begins;
  uint32_t ends;
  /* As the command line has them; never null. */
  const char* options;
};

struct stave_stage_sizes {
  /* Bytes of what stages hand to each other, forwards and backwards; the same for all stages. */
  uint64_t value_bytes;
  /* Kept of a slice of a microbatch from forward to weight gradient. */
  uint64_t stash_bytes;
  /* Parameters, as 32-bit floats; there are as many gradients. */
  uint64_t parameters;
  /* Kept from step to step beside the parameters: moments, counters. All zero to begin with. */
  uint64_t state_bytes;
};

/* The memory of a stage, or of one of its replicas. */
struct stave_stage_memory {
  /* Of the version of the weights that the call reads. */
  float* parameters;
  float* gradients;
  void* state;
  /* The step's loss, 0 when a step begins: a stage where microbatches end adds the share of each. */
  double* loss;
};

/* A call: what it is about, and where things lie. */
struct stave_stage_call {
  struct stave_stage_memory memory;
  /* What create() made; null if nothing. */
  void* self;
  /* Counted from 0. */
  uint64_t step;
  uint32_t microbatch;
  uint32_t slice;
  /* The microbatch begins, or ends, its way here. */
  uint32_t begins;
  uint32_t ends;
  /* Forward need only keep the input; recompute() comes before the input gradient. */
  uint32_t recomputed;
  /* Of every slice of the microbatch at this stage; the call's own is stashes[slice]. */
  void* const* stashes;
  void* stream;
};

struct stave_stage_table {
  /* STAVE_STAGE_VERSION and sizeof(struct stave_stage_table), as the library was compiled with. */
  uint32_t version;
  uint32_t size;

  int (*sizes)(const struct stave_stage_shape* shape, struct stave_stage_sizes* sizes);
  /* Sets the parameters; `*self` may be left null. */
  int (*create)(const struct stave_stage_shape* shape, const struct stave_stage_memory* memory, void** self);
  /* `input` is null where the microbatch begins, `output` where it ends. They may be one buffer. */
  int (*forward)(const struct stave_stage_call* call, const void* input, void* output);
  /* `gradient` of the output is null where the microbatch ends, `output`, the input's, where it begins. */
  int (*input_gradient)(const struct stave_stage_call* call, const void* gradient, void* output);
  /* Adds to the gradients, which are zero when a step begins and after an update. */
  int (*weight_gradient)(const struct stave_stage_call* call);
  /* Makes `to` from the call's parameters, which may be the same. */
  int (*optimizer)(const struct stave_stage_call* call, float* to);

  /* From here on each may be null. Without recompute no schedule with R runs. */
  int (*recompute)(const struct stave_stage_call* call);
  void (*destroy)(void* self);
  /* Of the last call that failed on this thread; in memory of the library's own. */
  const char* (*message)(void);
  /* Input gradient and weight gradient at once, with the same bits, for schedules with B. A table may end before it. */
  int (*backward)(const struct stave_stage_call* call, const void* gradient, void* output);
  /* Where the calls compute; a table that ends before it is of the host. */
  uint32_t computes_on;
};

#define STAVE_STAGE_ON_HOST 0u
#define STAVE_STAGE_ON_CUDA 1u

/* The one symbol that the library exports. */
#define STAVE_STAGE_SYMBOL "stave_stage"
typedef const struct stave_stage_table* (*stave_stage_function)(void);

#ifdef __cplusplus
}
#endif

#endif
