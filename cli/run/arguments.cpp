#include "cli/run/arguments.h"

#include <fmt/format.h>

#include "executor/control/launcher_variables.h"
#include "executor/replicate.h"
#include "executor/transport/transports.h"

namespace stave {

namespace {

std::string range(const Bounds& bounds) { return fmt::format("{} to {}", bounds.least, bounds.most); }

void whole(CLI::App& command, const std::string& name, std::uint32_t& value, const Bounds& bounds, const std::string& what) {
  command.add_option(name, value, fmt::format("{}; {}", what, range(bounds)))
      ->check(whole_between(bounds.least, bounds.most))
      ->type_name("N")
      ->capture_default_str();
}

}  // namespace

void add_model_arguments(CLI::App& command, RunArguments& arguments) {
  ModelConfig& model = arguments.model;
  command.add_option("--data", arguments.data, "a text to train on; may be given several times")
      ->type_name("FILE")
      ->allow_extra_args(false);
  whole(command, "--width", model.width, kWidthBounds, "width of the model");
  whole(command, "--heads", model.heads, kHeadsBounds, "attention heads");
  whole(command, "--blocks", model.blocks, kBlocksBounds, "transformer blocks; 0 for one a stage, or as many as\n`stages` lists layers");
  whole(command, "--sequence", model.sequence, kSequenceBounds, "tokens of a row");
  whole(command, "--rows", model.rows, kRowsBounds, "rows of a microbatch");
}

void add_run_arguments(CLI::App& command, RunArguments& arguments) {
  arguments.schedule.add_to(command);
  command.add_option("--workload", arguments.workload, "what the stages compute: transformer, integer or sleep")
      ->check(CLI::IsMember({"transformer", "integer", "sleep"}))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--stage", arguments.stage, "a shared library whose stages are trained in place of a workload\n(docs/stage.md)")
      ->type_name("FILE.so");
  command.add_option("--stage-options", arguments.stage_options, "what that library is told")->type_name("TEXT");
  ModelConfig& model = arguments.model;
  whole(command, "--steps", model.steps, kStepsBounds, "training steps, those before a --resume counted");
  add_model_arguments(command, arguments);
  command.add_option("--learning-rate", model.learning_rate, fmt::format("above 0, at most {}", kMostLearningRate))
      ->check(between(1e-12, kMostLearningRate))
      ->type_name("X")
      ->capture_default_str();
  command.add_option("--warmup", model.warmup, "steps in which the learning rate rises; 0: a tenth of --decay")
      ->check(whole_between(0, kStepsBounds.most))
      ->type_name("N");
  command.add_option("--decay", model.decay, "the step at which the learning rate has fallen to a tenth, where\nit stays; 0: the last")
      ->check(whole_between(0, kStepsBounds.most))
      ->type_name("N");
  command.add_flag("--tied", model.tied, "the last stage makes its logits with the embedding of the first:\none matrix, whose gradients the two add");
  command.add_option("--clip", arguments.clip, "most norm of all gradients together; they are scaled down to it")
      ->check(between(1e-12, 1e12))
      ->type_name("X");
  command.add_option("--replicas", arguments.replicas, "copies of the whole schedule side by side, each with microbatches\nof its own; their gradients are summed")
      ->check(whole_between(1, kMaxReplicas))
      ->type_name("N");
  command.add_option("--checkpoint", arguments.checkpoint, "a folder for checkpoints; the last two are kept. An interrupt\nends the run after the step under way, with one")->type_name("FOLDER");
  command.add_option("--checkpoint-every", arguments.checkpoint_every, "steps from one checkpoint to the next; without it one is\nwritten at the end")
      ->check(whole_between(1, kStepsBounds.most))
      ->type_name("N");
  command.add_flag("--resume", arguments.resume, "go on from the last checkpoint of the folder, bit for bit");
  command.add_option("--log", arguments.log, "a new file, or when resuming one to go on with: a JSON object a\nline for every step")->type_name("FILE");
  command.add_option("--timeline", arguments.timeline, "a file to write: start and end of every op and message of the\nmeasured step, as JSON, for `stave diff` and `stave profile`")
      ->type_name("FILE");
  command.add_option("--seed", model.seed, "of the parameters and of the choice of data")
      ->check(whole_between(0, UINT64_MAX))
      ->type_name("N")
      ->capture_default_str();
  command.add_option("--clock", arguments.clock, "wall, virtual, or auto: wall with two cores a device")
      ->check(CLI::IsMember({"auto", "wall", "virtual"}))
      ->type_name("NAME")
      ->capture_default_str();
  std::vector<std::string> transports;
  for (const TransportInfo& info : kTransports) transports.emplace_back(info.name);
  command.add_option("--ranks", arguments.ranks, "start so many ranks on this host, processes with a device each")
      ->check(whole_between(1, kMostRanks))
      ->type_name("N");
  command.add_option("--transport", arguments.transport,
                     "inproc: all devices in this process; gloo or mpi: this\nprocess is a rank, of those that --ranks, mpirun, srun or\n"
                     "torchrun have started; of --backend cuda: local, all\ndevices on one GPU, or nccl, a GPU for each device,\nin one process or a rank each")
      ->check(CLI::IsMember(transports))
      ->type_name("NAME");
  command.add_option("--backend", arguments.backend, "cpu or cuda")
      ->check(CLI::IsMember({"cpu", "cuda"}))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_option("--graph", arguments.graph, "of cuda: iter captures a step as one graph and replays it")
      ->check(CLI::IsMember({"iter"}))
      ->type_name("WHAT");
  command.add_flag("--serial", arguments.serial,
                   "of nccl: all messages on one communicator and one stream,\nin place of one of both a directed edge");
  command.add_option("--precision", arguments.precision, "of cuda: fp32, or bf16 for the factors of products")
      ->check(CLI::IsMember({"fp32", "bf16"}))
      ->type_name("NAME")
      ->capture_default_str();
  command.add_flag("--rendezvous", arguments.rendezvous, "of mpi: a send waits for its receive, nothing is buffered");
  command.add_option("--unit-ms", arguments.unit_ms, "what one unit of the costs is, for sleeps and messages, in ms, where a\ncosts file does not say")
      ->check(between(1e-6, 1e6))
      ->type_name("X")
      ->capture_default_str();
  command.add_option("--message-kib", arguments.message_kib, "of sleeps: what a message carries, in KiB")
      ->check(whole_between(0, 1 << 20))
      ->type_name("N");
  command.add_option("--memory", arguments.memory_gib, "most memory for parameters and buffers, in GiB")
      ->check(between(0.001, 4096))
      ->type_name("X")
      ->capture_default_str();
  command.add_option("--every", arguments.every, "print every Nth step; 0 for about fifteen lines")
      ->check(whole_between(0, 4294967295))
      ->type_name("N")
      ->capture_default_str();
  command.add_flag("--unchecked", arguments.unchecked,
                    "run the table in its own order, each send right after its\n"
                    "op, each receive right before the op that needs it, nothing\n"
                    "buffered and no order of messages planned: also a table that\n"
                    "`check` proves may stop so; says who waits for whom");
  command.add_flag("--verify", arguments.verify,
                    "compare the gradients of step 1 with those of the same model\n"
                    "run in sequence (integers are always compared)");
  command.add_flag("--json", arguments.json, "one JSON object at the end, times in us");
}

}  // namespace stave
